"""LOAD and STORE: which elements change, and what they hold."""

import numpy as np
import pytest
from engines import EVERY, engine
from programs import assembled
from programs.assembled import DATA, OUT

from vitral.arithmetic import requantize
from vitral.config import CoreConfig
from vitral.isa import Memory, Rounding
from vitral.program import GUARD, OnChip

CONFIG = CoreConfig()
MEMORIES = ("UOP", "INP", "WGT", "ACC", "ACC_8BIT", "PARAM")


def dram_elements(memory: str, data: bytes, onchip: OnChip) -> np.ndarray:
    """`data` as elements of a memory, in the form they have on chip."""
    if memory == "ACC_8BIT":
        return np.frombuffer(data, np.int8).astype(np.int32).reshape(-1, 1, 16)
    array = on_chip(memory, onchip)
    return np.frombuffer(data, array.dtype).reshape(-1, *array.shape[1:])


def on_chip(memory: str, onchip: OnChip) -> np.ndarray:
    return getattr(onchip, "acc" if memory == "ACC_8BIT" else memory.lower())


def run_load(name: str, line: str, memory: str, count: int = 60) -> tuple[np.ndarray, ...]:
    """(before, after, DRAM elements) of a memory around one LOAD; all else must not change."""
    rng = np.random.default_rng(5)
    onchip = OnChip.random(CONFIG, rng)
    before = onchip.copy()
    size = {"UOP": 4, "WGT": 256, "ACC": 64, "PARAM": 256}.get(memory, 16)
    data = rng.bytes(size * count)
    case = assembled(f"{line}\nFINISH", data=data)
    outcome = engine(name, CONFIG).run(case.launch, case.dram, onchip=onchip)
    assert outcome.ok, outcome.message
    after = on_chip(memory, onchip).copy()
    on_chip(memory, onchip)[:] = on_chip(memory, before)
    assert onchip.differences(before) == [], "another memory changed"
    return on_chip(memory, before), after, dram_elements(memory, data, onchip)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", EVERY)
def test_load_pads_four_sides(name: str, memory: str) -> None:
    line = f"LOAD {memory} sram=3 y=3 x=5 stride=8 pad=1,2,1,3"
    before, after, dram = run_load(name, line, memory)
    want = before.copy()
    for row in range(6):
        for column in range(9):
            inside = 1 <= row <= 3 and 1 <= column <= 5
            want[3 + 9 * row + column] = dram[(row - 1) * 8 + column - 1] if inside else 0
    assert np.array_equal(after, want)


@pytest.mark.parametrize("base", range(4))
@pytest.mark.parametrize("count", range(1, 6))
@pytest.mark.parametrize("name", EVERY)
def test_load_of_single_micro_ops(name: str, base: int, count: int) -> None:
    line = f"LOAD UOP sram={base} dram={base + count} y=1 x={count} stride=0"
    before, after, dram = run_load(name, line, "UOP")
    before = before.copy()
    before[base : base + count] = dram[base + count : base + 2 * count]
    assert np.array_equal(after, before)


@pytest.mark.parametrize(("x", "y"), [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", EVERY)
def test_an_empty_load_writes_nothing_pads_or_not(name: str, memory: str, x: int, y: int) -> None:
    line = f"LOAD {memory} sram=65535 dram=0xffffffff y={y} x={x} stride=9 pad=3,3,3,3"
    before, after, _ = run_load(name, line, memory)
    assert np.array_equal(after, before)


@pytest.mark.parametrize("name", EVERY)
def test_load_across_a_page_with_pads(name: str) -> None:
    rng = np.random.default_rng(6)
    onchip = OnChip.random(CONFIG, rng)
    want = onchip.inp.copy()
    case = assembled("LOAD INP sram=5 dram=0x1fc y=2 x=40 stride=44 pad=1,1,1,1\nFINISH")
    rows = rng.integers(-128, 128, (2, 40, 1, 16), np.int8)
    for number, row in enumerate(rows):
        case.dram.write(DATA + 0x1FC0 + number * 44 * 16, row)
    assert engine(name, CONFIG).run(case.launch, case.dram, onchip=onchip).ok
    want[5 : 5 + 4 * 42] = np.pad(rows, ((1, 1), (1, 1), (0, 0), (0, 0))).reshape(-1, 1, 16)
    assert np.array_equal(onchip.inp, want)


@pytest.mark.parametrize("name", EVERY)
def test_load_of_micro_ops_after_gemm_loops(name: str) -> None:
    onchip = OnChip.zeros(CONFIG)
    data = np.arange(100, 164, dtype=np.uint32)
    case = assembled(
        "GEMM uop=0:3 iter=2,2 dst=1,1 src=1,1 wgt=1,1\n"
        "LOAD UOP sram=2 dram=0x7 y=1 x=300 stride=300\n"
        "FINISH",
        data=data,
    )
    assert engine(name, CONFIG).run(case.launch, case.dram, onchip=onchip).ok
    assert onchip.uop[:2].tolist() == [0, 0]
    assert onchip.uop[2:59].tolist() == list(range(107, 164))
    assert (onchip.uop[59:302] == 0xA5A5A5A5).all()
    assert not onchip.uop[302:].any()


@pytest.mark.parametrize("memory", ["INP", "WGT", "ACC", "ACC_8BIT"])
@pytest.mark.parametrize("name", EVERY)
def test_pad_register(name: str, memory: str) -> None:
    register = "ACC_PAD" if memory == "ACC_8BIT" else f"{memory}_PAD"
    value = -300
    line = f"CONFIG {register} value={value}\nLOAD {memory} pad_value sram=1 y=1 x=1 pad=0,0,2,1"
    before, after, dram = run_load(name, line, memory)
    want = before.copy()
    want[1:5] = value if memory.startswith("ACC") else np.int64(value).astype(np.int8)
    want[3] = dram[0]
    assert np.array_equal(after, want)


@pytest.mark.parametrize("name", EVERY)
def test_pad_registers_are_cleared_at_launch(name: str) -> None:
    onchip = OnChip.zeros(CONFIG)
    for program in ("CONFIG INP_PAD value=5\nFINISH", "LOAD INP pad_value y=1 x=1 pad=1,0,0,0"):
        case = assembled(f"{program}\nFINISH" if "LOAD" in program else program)
        assert engine(name, CONFIG).run(case.launch, case.dram, onchip=onchip).ok
    assert (onchip.inp[0] == 0).all()


@pytest.mark.parametrize("name", EVERY)
def test_store_keeps_the_low_bytes_and_nothing_around(name: str) -> None:
    onchip = OnChip.zeros(CONFIG)
    values = np.array([300, -129, 127, -128, 255, 1 << 30] + [0] * 10)
    onchip.acc[7:13, 0] = values
    case = assembled("STORE OUT sram=7 dram=0x4 y=2 x=3 stride=5\nFINISH")
    assert engine(name, CONFIG).run(case.launch, case.dram, onchip=onchip).ok
    want = np.full(16 * 20, GUARD, np.uint8).view(np.int8)
    for row in range(2):
        for column in range(3):
            start = 16 * (4 + 5 * row + column)
            want[start : start + 16] = values.astype(np.int8)
    assert case.out(16 * 20).tolist() == want.tolist()


@pytest.mark.parametrize("name", EVERY)
def test_store_of_accumulators(name: str) -> None:
    onchip = OnChip.random(CONFIG, np.random.default_rng(8))
    case = assembled(
        "STORE ACC sram=9 dram=0x1 y=2 x=3 stride=3\nFINISH",
        bases={Memory.ACC: OUT, Memory.OUT: DATA},
    )
    assert engine(name, CONFIG).run(case.launch, case.dram, onchip=onchip).ok
    got = case.out(64 * 8, np.int32).reshape(8, 1, 16)
    assert np.array_equal(got[1:7], onchip.acc[9:15])
    assert (case.out(64, np.uint8) == GUARD).all()


@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("advance", ["none", "row", "element"])
@pytest.mark.parametrize("name", EVERY)
def test_requantising_store(name: str, advance: str, rounding: Rounding) -> None:
    rng = np.random.default_rng(int(rounding))
    onchip = OnChip.random(CONFIG, rng)
    lanes = random_lanes(rng, CONFIG.param_depth)
    onchip.param[:] = lanes.view(np.uint8).reshape(onchip.param.shape)
    line = f"STORE OUT requant sram=2 y=5 x=7 stride=7 rounding={rounding.name} advance={advance}"
    case = assembled(f"{line} param=11\nFINISH")
    assert engine(name, CONFIG).run(case.launch, case.dram, onchip=onchip).ok
    number = np.arange(35)
    entry = 11 + {"none": 0 * number, "row": number // 7, "element": number}[advance]
    want = requantize(
        onchip.acc[2:37, 0],
        **{name: lanes[name][entry].astype(np.int64) for name in PARAM_NAMES},
        rounding=rounding,
    )
    assert np.array_equal(case.out(35 * 16).reshape(35, 16), want.astype(np.int8))


LANE = np.dtype(
    [
        ("bias", "<i4"),
        ("mult", "<u4"),
        ("shift", "u1"),
        ("spare", "u1"),
        ("zero_point", "<i2"),
        ("low", "<i2"),
        ("high", "<i2"),
    ]
)


PARAM_NAMES = ("bias", "mult", "shift", "zero_point", "low", "high")


def random_lanes(rng: np.random.Generator, depth: int) -> np.ndarray:
    """(depth, 16) parameter lanes, many of which scale an int32 to about 16 bits."""
    lanes = np.frombuffer(rng.bytes(depth * 16 * 16), LANE).reshape(depth, 16).copy()
    lanes["mult"] &= (1 << 24) - 1
    lanes["shift"] = np.where(rng.random((depth, 16)) < 0.8, rng.integers(24, 48, 16), 200)
    lanes["low"] = np.where(rng.random((depth, 16)) < 0.5, -32768, lanes["low"])
    lanes["high"] = np.where(rng.random((depth, 16)) < 0.5, 32767, lanes["high"])
    return lanes
