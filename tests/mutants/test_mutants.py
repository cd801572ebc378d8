"""The random programs notice every mistake of the catalogue, and find nothing in the core itself.

All mutants are one build. The programs run with random latency and back-pressure; some have a
mistake of their own, whose status is known.
"""

import inspect
from collections.abc import Iterator

import pytest
from programs import CONFIGS
from programs.trials import trials

from mutants import MUTANTS, Edit, Hunt, Mutant
from mutants.weave import woven
from vitral.hw.core.gemm import Gemm

pytestmark = pytest.mark.xdist_group("mutants")

CONFIG = CONFIGS["block4"]
GOOD = 480
BAD = 80


@pytest.fixture(scope="module")
def hunt() -> Iterator[Hunt]:
    programs = tuple(trials(CONFIG, range(GOOD), bad=BAD, long_every=4))
    with Hunt(CONFIG, MUTANTS, programs) as made:
        yield made


def test_nothing_is_found_in_the_core_itself(hunt: Hunt) -> None:
    assert len(hunt.trials) > GOOD + BAD // 2
    assert list(hunt.failures(None)) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught(hunt: Hunt, mutant: Mutant) -> None:
    assert next(hunt.failures(mutant), None) is not None, (
        f"{mutant.name}: none of {len(hunt.trials)} programs notices"
    )


def test_the_core_is_whole_again_after_the_mutants(hunt: Hunt) -> None:
    next(hunt.failures(MUTANTS[0]), None)
    assert list(hunt.failures(None)) == []


def test_names_differ() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize(
    ("good", "times"), [("not_there(reading)", 0), ("reading.dst", 3), ("valid[2] & adding", 0)]
)
def test_an_edit_needs_its_expression_exactly_once(good: str, times: int) -> None:
    with pytest.raises(ValueError, match=f"once, found it {times} times"):
        woven(Gemm._accumulate, [(1, Edit(Gemm._accumulate, good, "0"))])


def test_the_hardware_keeps_its_code(hunt: Hunt) -> None:
    for mutant in hunt.mutants:
        for edit in mutant.edits:
            assert inspect.unwrap(edit.function).__code__.co_filename.endswith(".py")
