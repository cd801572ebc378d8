"""The requantiser against the definition in exact integers, and against known answers."""

import numpy as np
import numpy.typing as npt
import pytest
from amaranth.sim import Simulator, SimulatorContext
from bench.execute import pack, unpack
from bench.requant_vectors import FIELDS, vectors

from vitral.arithmetic import requantize
from vitral.hw.core.requant import LATENCY, Requantizer
from vitral.isa import PARAM_FIELDS, Rounding

LANES = 8

Rows = dict[str, npt.NDArray[np.int64]]


def _param_word(row: dict[str, int]) -> int:
    return sum(f.insert(row[f.name], "PARAM") for f in PARAM_FIELDS)


def _run(rows: Rows, rounding: Rounding, stall: int | None = None) -> list[int]:
    """The low 8 bits, signed, of every row; with `stall`, every so many cycles nothing moves."""
    dut = Requantizer(LANES)
    count = len(rows["acc"])
    results: list[int] = []

    async def drive(ctx: SimulatorContext) -> None:
        ctx.set(dut.rounding, rounding)
        cycle = first = 0
        while len(results) < count:
            cycle += 1
            enable = stall is None or cycle % stall != 0
            valid = first < count and cycle % 3 != 1
            picked = [
                {name: int(rows[name][n % count]) for name in FIELDS}
                for n in range(first, first + LANES)
            ]
            ctx.set(dut.enable, enable)
            ctx.set(dut.valid, valid)
            ctx.set(dut.acc, pack([row["acc"] for row in picked], 32))
            ctx.set(dut.params, pack([_param_word(row) for row in picked], 128))
            await ctx.tick()
            if enable and ctx.get(dut.out_valid):
                results.extend(unpack(ctx.get(dut.y), 8, LANES))
            first += LANES * (valid and enable)
            assert cycle < 8 * count + 8 * LATENCY

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
    return results[:count]


def _expected(rows: Rows, rounding: Rounding) -> list[int]:
    return requantize(**rows, rounding=rounding).astype(np.int8).tolist()


def _mismatch(rows: Rows, rounding: Rounding, got: list[int]) -> list[object]:
    wanted = _expected(rows, rounding)
    return [
        ({name: int(rows[name][n]) for name in FIELDS}, got[n], wanted[n])
        for n in range(len(got))
        if got[n] != wanted[n]
    ]


@pytest.mark.parametrize("rounding", Rounding)
def test_equals_the_definition(rounding: Rounding) -> None:
    rows = vectors(rounding, 250, seed=7 + rounding)
    assert not _mismatch(rows, rounding, _run(rows, rounding))[:3]


def test_stalls_change_nothing() -> None:
    rows = vectors(Rounding.FLOAT32, 20, seed=5)
    assert not _mismatch(rows, Rounding.FLOAT32, _run(rows, Rounding.FLOAT32, stall=2))[:3]


# acc, mult, shift, mode -> rounded: published cases of single, double and even rounding
KNOWN = [
    (7984, 1583594044, 40, Rounding.HALF_UP, 11),
    (7984, 1583594044, 40, Rounding.DOUBLE, 12),
    (-2840, 1790507473, 38, Rounding.HALF_UP, -18),
    (-2840, 1790507473, 38, Rounding.DOUBLE, -19),
    (-1605, 1712383196, 40, Rounding.HALF_UP, -2),
    (-1605, 1712383196, 40, Rounding.DOUBLE, -3),
    (1, 1 << 30, 32, Rounding.HALF_UP, 0),
    (1, 1 << 30, 32, Rounding.DOUBLE, 1),
    *((x, 1, 1, Rounding.HALF_EVEN, y) for x, y in ((-5, -2), (-3, -2), (-1, 0), (1, 0), (3, 2))),
    *((x, 1, 1, Rounding.HALF_UP, y) for x, y in ((-5, -2), (-3, -1), (-1, 0), (1, 1), (3, 2))),
    *((x, 1, 1, Rounding.FLOAT32, y) for x, y in ((-5, -2), (-3, -2), (-1, 0), (1, 0), (3, 2))),
    # a tie in the first of the two roundings goes up, one in the second away from zero
    *((x, 1 << 30, 31, Rounding.DOUBLE, y) for x, y in ((-3, -1), (3, 2), (-1, 0), (1, 1))),
    *((x, 1 << 30, 32, Rounding.DOUBLE, y) for x, y in ((-3, -1), (-5, -1), (-6, -2), (5, 2))),
    # float32 cannot tell products near a tie from it: both ends of that neighbourhood
    (826379, 1949, 30, Rounding.FLOAT32, 1),
    (5298068, 304, 30, Rounding.FLOAT32, 2),
    (10180864, 791, 30, Rounding.FLOAT32, 8),
    (-14190728, 7680, 30, Rounding.FLOAT32, -102),
    *((x, m, 30, Rounding.FLOAT32, 2) for x, m in ((367871, 7297), (9320676, 288))),
    (1475731, 1819, 30, Rounding.FLOAT32, 3),
    (15613696, 447, 30, Rounding.FLOAT32, 6),
    (710219, 9827, 30, Rounding.FLOAT32, 7),
    (16711936, 257, 33, Rounding.FLOAT32, 0),
    (1795555, 299, 30, Rounding.FLOAT32, 1),
    (15794944, 6832, 30, Rounding.FLOAT32, 100),
    (-1280737, 84257, 30, Rounding.FLOAT32, -101),
    (-32, 1 << 30, 31, Rounding.HALF_EVEN, -16),
    (5, 1, 255, Rounding.HALF_EVEN, 0),
    (5, 1, 0, Rounding.FLOAT32, 5),
]


@pytest.mark.parametrize("rounding", Rounding)
def test_known_answers(rounding: Rounding) -> None:
    cases = [case for case in KNOWN if case[3] is rounding]
    rows = {name: np.zeros(len(cases), np.int64) for name in FIELDS}
    for n, (acc, mult, shift, _, _) in enumerate(cases):
        for name, value in (("acc", acc), ("mult", mult), ("shift", shift)):
            rows[name][n] = value
        rows["low"][n], rows["high"][n] = -128, 127
    assert _run(rows, rounding) == [case[4] for case in cases]


def test_known_float32_answers_are_those_of_float32() -> None:
    for acc, mult, shift, rounding, wanted in KNOWN:
        if rounding is Rounding.FLOAT32:
            scale = np.float32(mult * 2.0**-shift)
            assert np.rint(np.float32(acc) * scale) == wanted, (acc, mult, shift)


def test_clamps_after_the_zero_point_and_keeps_the_low_byte() -> None:
    """uint8 bounds come out as bytes; min(max(y, low), high) also when low is above high."""
    table = [
        (300, 0, 0, 255, -1),
        (-5, 3, 0, 255, 0),
        (120, 10, -128, 127, 127),
        (1 << 30, -32768, -128, 127, 127),
        (-(1 << 31), 32767, -128, 127, -128),
        (50, 0, 100, -100, -100),
    ]
    rows = {name: np.zeros(len(table), np.int64) for name in FIELDS} | {
        "mult": np.ones(len(table), np.int64)
    }
    for n, (acc, zero_point, low, high, _) in enumerate(table):
        rows["acc"][n], rows["zero_point"][n] = acc, zero_point
        rows["low"][n], rows["high"][n] = low, high
    assert _run(rows, Rounding.HALF_EVEN) == [row[4] for row in table]
