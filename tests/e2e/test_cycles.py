"""No layer, network or program takes more cycles on the RTL than it did before."""

from collections.abc import Callable

import pytest
from digits import INT8_MODEL, load_images, model_input
from e2e.cycles import BASELINE, MEASURES, NETWORKS, UPDATE, read_baseline

import vitral
from vitral.bench.layers import RESNET18
from vitral.program import MemoryModel

LONG = {"c3", "c5", "c6", "c8", "c9", "c11"}
"""Half a million cycles each; their kinds are also among the others."""
Record = Callable[[str, object], None]


def check(name: str, record_property: Record) -> None:
    cycles, before = MEASURES[name](), read_baseline()[name]
    assert cycles <= before, (
        f"{name}: {cycles:,} cycles, {cycles - before:,} more than {BASELINE.name} says;"
        f" if that is meant: {UPDATE}"
    )
    if cycles < before:
        record_property(
            "note", f"{name}: {cycles:,} cycles, {before - cycles:,} fewer than before; {UPDATE}"
        )


@pytest.mark.parametrize("name", [name for name in MEASURES if name not in {*LONG, *NETWORKS}])
def test_takes_no_more_cycles(name: str, record_property: Record) -> None:
    check(name, record_property)


@pytest.mark.parametrize("name", sorted(LONG))
def test_long_layer_takes_no_more_cycles(name: str, record_property: Record) -> None:
    check(name, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_network_takes_no_more_cycles(name: str, record_property: Record) -> None:
    check(name, record_property)


def test_every_measure_has_a_baseline() -> None:
    assert list(read_baseline()) == list(MEASURES)
    assert set(RESNET18) > LONG


def test_a_core_starts_within_the_promised_cycles() -> None:
    """ResNet-18's C2 with bias, requantisation and ReLU."""
    assert read_baseline()["c2"] <= 520_000


@pytest.mark.parametrize("name", ["c7", "digits", "lenet5_layer2", "matrix_maxpool"])
def test_cycles_are_reproducible(name: str) -> None:
    assert MEASURES[name]() == MEASURES[name]()


def test_cycles_do_not_depend_on_the_image() -> None:
    """The same core and session, three images: the programs take the same cycles each time."""
    module = vitral.compile(INT8_MODEL)
    cycles = set()
    with vitral.Session(module, device="tsim") as session:
        for pixels in load_images("demo").pixels[:3]:
            session.run(None, {"image": model_input(pixels)})
            cycles.add(tuple(outcome.cycles for outcome in session.outcomes()))
    assert len(cycles) == 1


def test_a_slower_memory_shows() -> None:
    """The measure follows the memory, so it is one."""
    module = vitral.compile(INT8_MODEL)
    slow = MemoryModel(latency=200, write_latency=200)
    with vitral.Session(module, device="tsim", memory_model=slow) as session:
        session.run(None, {"image": model_input(load_images("demo").pixels[0])})
        cycles = sum(outcome.cycles or 0 for outcome in session.outcomes())
    assert cycles > 1.02 * read_baseline()["digits"]
