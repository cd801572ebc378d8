"""Loads: every on-chip element after a LOAD is the wanted one, and the bus sees legal bursts."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from amaranth import Module, Shape, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory as HdlMemory
from amaranth.sim import Simulator
from bench.axi import BusLog, Stall, read_slave

from vitral.config import CoreConfig
from vitral.hw.bus.reader import Reader
from vitral.hw.core.load_engine import LoadEngine
from vitral.hw.core.load_plan import memory_geometry
from vitral.hw.core.scratchpad import Scratchpad
from vitral.isa import Cause, Load, Memory

SENTINEL = 0xA5
PADS = {Memory.INP: 0x5A, Memory.WGT: 0xC3, Memory.ACC: -123456789}
LOAD_MEMORIES = (Memory.INP, Memory.WGT)
COMPUTE_MEMORIES = (Memory.UOP, Memory.ACC, Memory.ACC_8BIT)
SMALL: dict[str, Any] = {
    "uop_buffer": 2048,
    "inp_buffer": 4096,
    "wgt_buffer": 16384,
    "acc_buffer": 8192,
    "param_depth": 8,
}


class Bench(wiring.Component):
    """A load engine with its memories on a read channel; ACC is a plain memory."""

    def __init__(self, config: CoreConfig, memories: tuple[Memory, ...]) -> None:
        self.config = config
        self.engine = LoadEngine(config, memories)
        self.reader = Reader(config, clients=1)
        self.memories = memories
        self.pads: dict[Memory, Scratchpad] = {}
        if Memory.ACC in memories:
            bits = config.layout.acc_bytes * 8
            self.acc = HdlMemory(shape=unsigned(bits), depth=config.layout.acc_depth, init=[])
        for memory in memories:
            if memory not in (Memory.ACC, Memory.ACC_8BIT):
                geometry = memory_geometry(config, memory)
                self.pads[memory] = Scratchpad(
                    element_bytes=geometry.element_bytes,
                    depth=geometry.depth,
                    beat_bytes=geometry.beat_bytes,
                )
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.engine = self.engine
        m.submodules.reader = self.reader
        wiring.connect(m, self.engine.read, self.reader.clients[0])
        for memory, pad in self.pads.items():
            m.submodules[memory.name] = pad
            wiring.connect(m, getattr(self.engine, f"write_{memory.name.lower()}"), pad.write)
        if Memory.ACC in self.memories:
            m.submodules.acc = self.acc
            port = self.acc.write_port()
            write = self.engine.write_acc
            m.d.comb += [
                port.en.eq(write.mask),
                port.addr.eq(write.row),
                port.data.eq(write.data),
            ]
        return m

    def arrays(self, memory: Memory) -> list[HdlMemory]:
        return [self.acc] if memory is Memory.ACC else list(self.pads[memory].memories)

    def fill(self, ctx: Any) -> None:
        for memory in self.targets:
            for array in self.arrays(memory):
                byte_count = Shape.cast(array.shape).width // 8
                word = int.from_bytes(bytes([SENTINEL] * byte_count), "little")
                for row in range(array.depth):
                    ctx.set(array.data[row], word)

    def contents(self, ctx: Any, memory: Memory) -> np.ndarray:
        """uint8 (depth, element bytes)."""
        arrays = self.arrays(memory)
        size = Shape.cast(arrays[0].shape).width // 8
        lanes = [
            [ctx.get(array.data[row]).to_bytes(size, "little") for row in range(array.depth)]
            for array in arrays
        ]
        words = b"".join(lane[row] for row in range(arrays[0].depth) for lane in lanes)
        return np.frombuffer(words, np.uint8).reshape(-1, size)

    @property
    def targets(self) -> list[Memory]:
        return [memory for memory in self.memories if memory is not Memory.ACC_8BIT]


@dataclass
class Result:
    contents: dict[Memory, np.ndarray]
    tickets: list[int]
    fault: tuple[int, int] | None
    log: BusLog
    cycles: int = 0
    waits: list[int] = field(default_factory=list)


def run(
    config: CoreConfig,
    loads: list[Load],
    dram: np.ndarray,
    *,
    base: int = 0,
    p: float = 0.0,
    latency: int = 8,
    seed: int = 1,
    limits: tuple[int, int] = (0, 1 << 32),
    error_beat: int | None = None,
    max_cycles: int = 20000,
) -> Result:
    """Runs the loads to the end (or the fault) and collects what happened."""
    served = LOAD_MEMORIES if loads[0].memory in LOAD_MEMORIES else COMPUTE_MEMORIES
    if loads[0].memory is Memory.PARAM:
        served = (Memory.PARAM,)
    bench = Bench(config, served)
    engine = bench.engine
    slave, log = read_slave(
        bench.reader.channel,
        dram,
        limit=config.burst_beats,
        latency=latency,
        stall=Stall(p, seed),
        base=base,
        error_beat=error_beat,
    )
    result = Result({}, [], None, log)
    pushback = Stall(p, seed + 1)

    async def drive(ctx: Any) -> None:
        bench.fill(ctx)
        for memory in served:
            ctx.set(getattr(engine, f"base_{memory.name.lower()}"), base)
            if memory in PADS:
                ctx.set(getattr(engine, f"pad_{memory.name.lower()}"), PADS[memory])
        ctx.set(engine.limits.low, limits[0])
        ctx.set(engine.limits.high, limits[1])
        issued = 0
        while len(result.tickets) < len(loads) and result.fault is None:
            if issued < len(loads):
                _put(ctx, engine.command, loads[issued], issued)
            ctx.set(engine.command.valid, issued < len(loads))
            ctx.set(engine.done.ready, not pushback())
            taken, done, ready, ticket, fault, cause, index = (
                await ctx.tick().sample(
                    engine.command.ready,
                    engine.done.valid,
                    engine.done.ready,
                    engine.done.p.index,
                    engine.fault.valid,
                    engine.fault.cause,
                    engine.fault.index,
                )
            )[2:]
            issued += bool(taken and issued < len(loads))
            if done and ready:
                result.tickets.append(ticket)
            if fault:
                result.fault = (cause, index)
            result.cycles += 1
            assert result.cycles < max_cycles, f"stuck after {len(result.tickets)} loads"
        for memory in bench.targets:
            result.contents[memory] = bench.contents(ctx, memory)
        assert log.most_in_flight <= config.outstanding

    sim = Simulator(bench)
    sim.add_clock(1e-6)
    sim.add_testbench(slave, background=True)
    sim.add_testbench(drive)
    sim.run()
    return result


def _put(ctx: Any, command: Any, load: Load, index: int) -> None:
    ctx.set(command.p.ticket.index, index)
    for name in (
        "memory",
        "sram_base",
        "dram_base",
        "y_size",
        "x_size",
        "x_stride",
        "y_pad_0",
        "y_pad_1",
        "x_pad_0",
        "x_pad_1",
        "pad_value",
    ):
        ctx.set(getattr(command.p, name), int(getattr(load, name)))


def expected(
    config: CoreConfig, loads: list[Load], dram: np.ndarray, targets: list[Memory]
) -> dict[Memory, np.ndarray]:
    """What the memories hold afterwards, one element at a time."""
    memories = {}
    for memory in targets:
        geometry = memory_geometry(config, memory)
        memories[memory] = np.full(
            (geometry.depth, geometry.element_bytes), SENTINEL, dtype=np.uint8
        )
    for load in loads:
        _apply(config, load, dram, memories)
    return memories


def _apply(
    config: CoreConfig, load: Load, dram: np.ndarray, memories: dict[Memory, np.ndarray]
) -> None:
    if not load.x_size or not load.y_size:
        return
    octets = load.memory is Memory.ACC_8BIT
    target = Memory.ACC if octets else load.memory
    size = memory_geometry(config, load.memory).element_bytes
    array = memories[target]
    pad = PADS.get(target, 0) if load.pad_value else 0
    lanes = np.full(array.shape[1] // 4, pad, "<i4") if target is Memory.ACC else None
    filler = lanes.view(np.uint8) if lanes is not None else np.uint8(pad & 0xFF)
    element = load.sram_base
    for y in range(-load.y_pad_0, load.y_size + load.y_pad_1):
        for x in range(-load.x_pad_0, load.x_size + load.x_pad_1):
            if 0 <= y < load.y_size and 0 <= x < load.x_size:
                start = (load.dram_base + y * load.x_stride + x) * size
                value = dram[start : start + size]
                if octets:
                    value = value.view(np.int8).astype("<i4").view(np.uint8)
                array[element] = value
            else:
                array[element] = filler
            element += 1


def check(config: CoreConfig, loads: list[Load], *, size: int = 1 << 16, **how: Any) -> Result:
    dram = np.random.default_rng(7).integers(0, 256, size, dtype=np.uint8)
    result = run(config, loads, dram, **how)
    assert result.fault is None
    assert result.tickets == list(range(len(loads)))
    want = expected(config, loads, dram, list(result.contents))
    for memory, contents in result.contents.items():
        depth = want[memory].shape[0]
        wrong = np.flatnonzero((contents[:depth] != want[memory]).any(axis=1))
        assert not len(wrong), f"{memory.name}: elements {wrong[:8]} differ ({loads}, {how})"
    return result


STALLS = [0.0, 0.5]
CONFIG = CoreConfig(**SMALL)


@pytest.mark.parametrize(("bits", "p"), [(64, 0.0), (64, 0.5), (128, 0.2)])
def test_micro_ops_change_exactly_their_range(bits: int, p: float) -> None:
    config = replace(CONFIG, data_bits=bits)
    loads = [
        Load(memory=Memory.UOP, sram_base=32 * k + base, dram_base=dram, y_size=1, x_size=count)
        for k, (base, dram, count) in enumerate(
            (base, 5 * base + count, count) for base in range(4) for count in range(1, 4)
        )
    ]
    check(config, loads, p=p)


def test_long_micro_op_load_takes_several_bursts() -> None:
    load = Load(memory=Memory.UOP, sram_base=1, dram_base=3, y_size=1, x_size=300, x_stride=300)
    result = check(CONFIG, [load])
    assert len(result.log.bursts) == 10  # 151 beats of 8 bytes


@pytest.mark.parametrize("p", STALLS)
@pytest.mark.parametrize("memory", [Memory.INP, Memory.WGT, Memory.ACC, Memory.ACC_8BIT])
def test_padded_area(memory: Memory, p: float) -> None:
    with_zeros = Load(
        memory=memory,
        sram_base=2,
        dram_base=3,
        y_size=3,
        x_size=5,
        x_stride=8,
        y_pad_0=1,
        y_pad_1=2,
        x_pad_0=1,
        x_pad_1=3,
    )
    with_register = replace(with_zeros, pad_value=True, sram_base=60, dram_base=9)
    config = replace(CONFIG, wgt_buffer=1 << 15)
    check(config, [with_zeros, with_register], p=p)


def test_row_is_cut_at_the_page() -> None:
    load = Load(memory=Memory.INP, dram_base=0x1FC0 // 16, y_size=2, x_size=40, x_stride=48)
    padded = replace(load, sram_base=84, y_pad_0=1, y_pad_1=1, x_pad_0=1, x_pad_1=1)
    result = check(CONFIG, [load, padded])
    assert result.log.bursts[:2] == [(0x1FC0, 8), (0x2000, 16)]


def test_pads_of_15() -> None:
    pads: dict[str, Any] = dict.fromkeys(("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), 15)
    config = replace(CONFIG, inp_buffer=32 << 10)
    check(config, [Load(memory=Memory.INP, y_size=1, x_size=1, x_stride=1, **pads)])


@pytest.mark.parametrize("memory", [Memory.INP, Memory.UOP])
def test_empty_load_only_hands_on_its_ticket(memory: Memory) -> None:
    empty = Load(memory=memory, y_size=0, x_size=4, y_pad_0=3, x_pad_0=2)
    other = Load(memory=memory, y_size=2, x_size=0, y_pad_0=3, sram_base=65535)
    real = Load(memory=memory, sram_base=9, y_size=1, x_size=3)
    result = check(CONFIG, [empty, other, real, empty])
    assert len(result.log.bursts) == 1


def test_abutting_rows_are_one_transfer() -> None:
    joined = Load(memory=Memory.INP, y_size=16, x_size=1, x_stride=1, y_pad_0=2, y_pad_1=1)
    apart = replace(joined, x_stride=2, sram_base=32)
    result = check(CONFIG, [joined, apart])
    assert len(result.log.bursts) == 2 + 16


@pytest.mark.parametrize(("block", "bits"), [(4, 64), (8, 128), (16, 512), (32, 256)])
def test_every_memory_of_every_block(block: int, bits: int) -> None:
    config = replace(CONFIG, block=block, data_bits=bits, wgt_buffer=32768, acc_buffer=16384)
    area: dict[str, Any] = {
        "y_size": 3,
        "x_size": 5,
        "x_stride": 7,
        "y_pad_0": 1,
        "x_pad_0": 1,
        "x_pad_1": 1,
    }
    for memories in (LOAD_MEMORIES, COMPUTE_MEMORIES, (Memory.PARAM,)):
        depth = min(memory_geometry(config, memory).depth for memory in memories)
        if depth < 28:
            area = {"y_size": 2, "x_size": 2, "x_stride": 3, "x_pad_1": 1}
        loads = [
            Load(memory=memory, sram_base=base, dram_base=dram, **area)
            for dram, memory in enumerate(memories, 5)
            for base in (0, 1, min(depth - 28, 33) if depth > 28 else 2)
        ]
        check(config, loads, p=0.2)


def test_overlapping_loads_keep_their_order() -> None:
    rng = np.random.default_rng(3)
    loads = []
    for _ in range(24):
        x, y = (int(v) for v in rng.integers(1, 6, 2))
        loads.append(
            Load(
                memory=Memory.INP,
                sram_base=int(rng.integers(0, 24)),
                dram_base=int(rng.integers(0, 500)),
                y_size=y,
                x_size=x,
                x_stride=int(rng.integers(x, 9)),
                x_pad_0=int(rng.integers(0, 3)),
                x_pad_1=int(rng.integers(0, 3)),
                y_pad_1=int(rng.integers(0, 3)),
                pad_value=bool(rng.integers(2)),
            )
        )
    check(CONFIG, loads, p=0.3)


def test_loads_run_at_the_rate_of_the_bus() -> None:
    loads = [
        Load(memory=Memory.INP, sram_base=64 * k, dram_base=64 * k, y_size=1, x_size=64)
        for k in range(4)
    ]
    result = check(CONFIG, loads, latency=40)
    assert result.cycles <= 4 * 128 + 40 + 12


@pytest.mark.parametrize("burst", [1, 16, 256])
def test_burst_limit_and_pages_for_every_offset(burst: int) -> None:
    config = replace(CONFIG, burst_beats=burst, uop_buffer=8192)
    loads = [
        Load(memory=Memory.UOP, dram_base=(4096 + 8 * k - 256) // 4, y_size=1, x_size=1 + 11 * k)
        for k in range(0, 64, 7)
    ]
    check(config, loads, latency=2)


def _fault(loads: list[Load], **how: Any) -> tuple[int, int] | None:
    return run(CONFIG, loads, np.zeros(1 << 16, np.uint8), **how).fault


def test_last_legal_element_and_one_past() -> None:
    depth = CONFIG.layout.inp_depth
    good = Load(memory=Memory.INP, sram_base=depth - 6, y_size=2, x_size=2, x_stride=2, x_pad_1=1)
    check(CONFIG, [good])
    assert _fault([good, replace(good, sram_base=depth - 5)]) == (Cause.SRAM_BOUNDS, 1)
    huge = Load(memory=Memory.INP, y_size=65535, x_size=65535, x_stride=65535)
    assert _fault([huge]) == (Cause.SRAM_BOUNDS, 0)


@pytest.mark.parametrize(
    ("limits", "fault"),
    [
        ((0, 1024), None),
        ((0, 1023), (Cause.DRAM_BOUNDS, 1)),
        ((256, 1024), None),
        ((257, 1024), (Cause.DRAM_BOUNDS, 0)),
    ],
)
def test_limits_are_exact(limits: tuple[int, int], fault: tuple[int, int] | None) -> None:
    first = Load(memory=Memory.INP, dram_base=16, y_size=1, x_size=4)
    second = Load(memory=Memory.INP, dram_base=20, y_size=2, x_size=4, x_stride=40)
    assert _fault([first, second], limits=limits) == fault


def test_address_past_the_bus_faults() -> None:
    load = Load(memory=Memory.WGT, dram_base=0xFFFFFFFF, y_size=1, x_size=1)
    assert _fault([load]) == (Cause.DRAM_BOUNDS, 0)


def test_bus_error_names_the_instruction() -> None:
    loads = [
        Load(memory=Memory.INP, dram_base=16 * k, sram_base=16 * k, y_size=1, x_size=4)
        for k in range(4)
    ]
    assert _fault(loads, error_beat=18) == (Cause.BUS_READ, 2)
