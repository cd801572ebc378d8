"""Random programs: legal, independent of the order of execution, and covering everything."""

from collections import Counter

import pytest
from programs import CONFIGS, generate
from programs.compare import differences, state_after
from programs.coverage import COVERAGE, missing
from programs.tokens import TokenPlacer

from vitral.sim.reference import Reference

PER_CONFIG = 12
ORDERS = range(5)


def in_order(seed: int, name: str, order: int | None) -> tuple:
    program = generate(seed, CONFIGS[name])
    dram, onchip = program.dram.copy(), program.onchip.copy()
    reference = Reference(program.config)
    outcome = reference.run(program.launch, dram, onchip=onchip, order_seed=order)
    return outcome, dram, onchip


@pytest.mark.parametrize("name", CONFIGS)
def test_no_legal_order_changes_the_result(name: str) -> None:
    for seed in range(PER_CONFIG):
        wanted = in_order(seed, name, None)
        assert wanted[0].ok, f"seed {seed}: {wanted[0].message}"
        for order in ORDERS:
            found = differences(in_order(seed, name, order), wanted)
            assert found == [], f"seed {seed}, order {order}"


def test_without_ordering_tokens_results_do_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the test above can see a missing token."""
    monkeypatch.setattr(TokenPlacer, "_needs", lambda *_: {})
    changed = sum(
        bool(differences(in_order(seed, "block4", order), in_order(seed, "block4", None)))
        for seed in range(10)
        for order in ORDERS
    )
    assert changed > 10


def test_a_seed_names_a_program() -> None:
    config = CONFIGS["block4"]
    first, second, other = generate(3, config), generate(3, config), generate(4, config)
    assert first.text == second.text
    assert (first.dram.data == second.dram.data).all()
    assert first.onchip.differences(second.onchip) == []
    assert first.text != other.text


def test_every_kind_of_instruction_comes_up() -> None:
    counts: Counter[str] = Counter()
    for seed in range(400):
        counts += generate(seed, CONFIGS["block4"]).coverage
    assert set(counts) == set(COVERAGE)


def test_2000_programs_cover_everything_20_times() -> None:
    counts: Counter[str] = Counter()
    configs = list(CONFIGS.values())
    for seed in range(2000):
        counts += generate(seed, configs[seed % len(configs)]).coverage
    assert missing(counts, 20) == []


def test_status_and_memories_are_compared() -> None:
    program = generate(1, CONFIGS["block4"])
    one, two = (state_after(program, Reference(program.config)) for _ in range(2))
    assert differences(one, two) == []
    two[1].data[7] ^= 1
    two[2].wgt[1, 0, 0] ^= 1
    assert len(differences(one, two)) == 2
