"""The store stage: right bytes at the rate of the bus, faults, order, tokens after the memory."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from bench.execute import small_config
from bench.store import StoreBench, random_params, stored_bytes

from vitral.config import CoreConfig
from vitral.hw.core.interfaces import Wait, granule_bytes
from vitral.isa import Advance, Cause, Instruction, Load, Memory, Profile, Rounding, Store

SMALL = small_config(block=4)
WIDE = small_config(block=16)

CONFIGS = {
    "16": WIDE,
    "4": SMALL,
    "8": small_config(block=8),
    "32": small_config(block=32),
    "2x4": small_config(block=4, batch=2),
    "2x8": small_config(block=8, batch=2),
    "16, 128-bit bus": replace(WIDE, data_bits=128),
    "4x4, 128-bit bus": replace(small_config(block=4, batch=4), data_bits=128),
    "16, 4 lanes": replace(WIDE, requant_lanes=4),
    "16, 1 lane, 256-bit bus": replace(WIDE, requant_lanes=1, data_bits=256),
    "2x8, 2 lanes": replace(small_config(block=8, batch=2), requant_lanes=2),
}

FORMS: dict[str, dict[str, Any]] = {
    "low bytes": {},
    "requantised": {"requant": True, "rounding": Rounding.FLOAT32},
    "per row": {"requant": True, "rounding": Rounding.HALF_UP, "advance": Advance.ROW},
    "per element": {"requant": True, "advance": Advance.ELEMENT, "param_base": 3},
    "32-bit": {"memory": Memory.ACC},
}


def _all_forms() -> list[Store]:
    return [
        Store(sram_base=n, x_size=3, y_size=2, x_stride=7, dram_base=64 * n, **form)
        for n, form in enumerate(FORMS.values())
    ]


def _bytes(bench: StoreBench, program: Sequence[Instruction]) -> bytes:
    stores = [insn for insn in program if isinstance(insn, Store)]
    return b"".join(stored_bytes(bench.config, i, bench.acc, bench.params) for i in stores)


@pytest.mark.parametrize("ready", [1.0, 0.5])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_all_forms_one_after_the_other(config: CoreConfig, ready: float) -> None:
    program = _all_forms() + _all_forms()[::-1]
    bench = StoreBench(config, ready=ready, seed=3)
    trace = bench.run(program, cycles=1500)
    assert trace.data == _bytes(bench, program)
    for command, insn in zip(trace.commands, program, strict=True):
        names = ("dram_base", "y_size", "x_size", "x_stride")
        assert command == {n: getattr(insn, n) for n in names} | {"wide": insn.memory is Memory.ACC}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("config", [WIDE, SMALL], ids=["16", "4"])
def test_one_granule_per_cycle(form: dict[str, Any], config: CoreConfig) -> None:
    """Also from one STORE to the next of its form."""
    program = [Store(sram_base=n, x_size=4, y_size=3, **form) for n in (0, 9)]
    bench = StoreBench(config)
    trace = bench.run(program)
    assert trace.data == _bytes(bench, program)
    count = len(trace.data) // granule_bytes(config)
    gaps = trace.granules[-1] - trace.granules[0] + 1 - count
    assert gaps <= 2


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_a_lane_per_cycle(lanes: int) -> None:
    """Fewer lanes than a granule has bytes cost the requantised form cycles, and no other."""
    config = replace(WIDE, requant_lanes=lanes)
    for form, slower in (("low bytes", 1), ("per element", 8 // lanes), ("32-bit", 1)):
        program = [Store(sram_base=0, x_size=4, y_size=3, **FORMS[form])]
        trace = StoreBench(config).run(program)
        span = trace.granules[-1] - trace.granules[0]
        assert span == slower * (len(trace.granules) - 1), form


NOTHING = [Store(x_size=0, y_size=3), Store(x_size=3, y_size=0), Load(memory=Memory.PARAM)]


def test_a_store_of_nothing_only_moves_tokens() -> None:
    tokens: dict[str, Any] = {"pop_prev": True, "push_prev": True}
    program = [type(insn)(**(vars(insn) | tokens)) for insn in NOTHING] * 5
    trace = StoreBench(SMALL).run(program)
    assert not trace.data
    assert not trace.commands
    assert len(trace.given) == 15
    assert trace.given[-1] <= 40


BOUNDS = {
    "last element": (Store(sram_base=30, x_size=2, y_size=1), None),
    "one past": (Store(sram_base=30, x_size=3, y_size=1), Cause.SRAM_BOUNDS),
    "far past": (Store(sram_base=0, x_size=65535, y_size=65535), Cause.SRAM_BOUNDS),
    "base past": (Store(sram_base=32, x_size=1, y_size=1), Cause.SRAM_BOUNDS),
    "nothing at a base past": (Store(sram_base=65535, x_size=0, y_size=1), None),
    "last parameters": (
        Store(x_size=4, y_size=2, requant=True, advance=Advance.ROW, param_base=126),
        None,
    ),
    "a row past": (
        Store(x_size=4, y_size=3, requant=True, advance=Advance.ROW, param_base=126),
        Cause.PARAM_BOUNDS,
    ),
    "an element past": (
        Store(x_size=3, y_size=1, requant=True, advance=Advance.ELEMENT, param_base=126),
        Cause.PARAM_BOUNDS,
    ),
    "the same entry for all": (Store(x_size=3, y_size=3, requant=True, param_base=127), None),
    "parameters past": (
        Store(x_size=1, y_size=1, requant=True, param_base=128),
        Cause.PARAM_BOUNDS,
    ),
}


@pytest.mark.parametrize(("insn", "cause"), BOUNDS.values(), ids=BOUNDS)
def test_bounds(insn: Store, cause: Cause | None) -> None:
    first = Store(x_size=1, y_size=1)
    bench = StoreBench(SMALL)
    trace = bench.run([first, insn])
    assert trace.fault == (None if cause is None else (cause, 1))
    if cause is None:
        assert trace.data == _bytes(bench, [first, insn])


def test_tokens_follow_the_acknowledgement_and_later_stores_do_not_wait() -> None:
    program = [Store(x_size=1, y_size=1, push_prev=True) for _ in range(4)]
    trace = StoreBench(SMALL, latency=60).run(program)
    assert trace.begun[3] < 20
    assert len(trace.given) == 4
    assert trace.given[0] >= trace.granules[0] + 60
    assert trace.given[3] <= trace.granules[3] + 62


def test_parameters_in_use_are_not_replaced() -> None:
    """A LOAD PARAM between two STOREs with the same entry; the memory changes at its command."""
    store = Store(x_size=4, y_size=2, requant=True, param_base=5)
    program = [store, Load(memory=Memory.PARAM, sram_base=5, x_size=1, y_size=1), store]
    loaded = random_params(SMALL, seed=77)
    bench = StoreBench(SMALL, loaded=loaded, ready=0.7)
    trace = bench.run(program)
    expected = stored_bytes(SMALL, store, bench.acc, bench.params)
    expected += stored_bytes(SMALL, store, bench.acc, loaded)
    assert trace.data == expected


def test_a_load_of_parameters_does_not_overtake_with_its_token() -> None:
    """The LOAD ends long before the STORE is acknowledged; the tokens keep program order."""
    program = [
        Store(x_size=8, y_size=1, push_prev=True),
        Load(memory=Memory.PARAM, x_size=1, y_size=1, push_prev=True),
        Store(x_size=0, push_prev=True),
    ]
    trace = StoreBench(SMALL, latency=30).run(program)
    assert len(trace.given) == 3
    assert trace.given[0] >= trace.granules[-1] + 30
    assert trace.given == list(range(trace.given[0], trace.given[0] + 3)) or trace.given[1:] == [
        trace.given[1],
        trace.given[1] + 1,
    ]


WAITS = {
    "pop prev": ({"tokens": 0}, [Store(pop_prev=True, x_size=1, y_size=1)], Wait.POP_PREV, 0),
    "push prev": (
        {"room": 1},
        [Store(push_prev=True), Store(push_prev=True), Store(push_prev=True)],
        Wait.PUSH_PREV,
        1,
    ),
    "acknowledgement": ({"latency": 999}, [Store(x_size=1, y_size=1)], Wait.MEMORY, 0),
    "bus": ({"ready": 0}, [Store(x_size=1, y_size=1)], Wait.MEMORY, 0),
    "parameters": (
        {"latency": 999},
        [Store(), Load(memory=Memory.PARAM, x_size=1, y_size=1), Store()],
        Wait.MEMORY,
        1,
    ),
}


@pytest.mark.parametrize(("options", "program", "code", "index"), WAITS.values(), ids=WAITS)
def test_wait_codes(
    options: dict[str, Any], program: list[Instruction], code: Wait, index: int
) -> None:
    trace = StoreBench(SMALL, **options).run(program, cycles=60)
    assert trace.waits[-1] == (code, index)


def test_a_store_begins_with_its_token() -> None:
    program = [Store(pop_prev=True, x_size=1, y_size=1)] * 2
    trace = StoreBench(SMALL, tokens=0, grants=[10, 25]).run(program)
    assert trace.begun == [10, 25]


def test_the_vta_profile_ignores_what_only_vitral_has() -> None:
    program = [Store(x_size=2, y_size=2, requant=True, rounding=Rounding.DOUBLE, param_base=200)]
    bench = StoreBench(SMALL, profile=Profile.VTA)
    trace = bench.run(program)
    assert trace.data == stored_bytes(SMALL, Store(x_size=2, y_size=2), bench.acc, bench.params)
