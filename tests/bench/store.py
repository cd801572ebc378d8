"""Drives a `StoreStage` in Amaranth's simulator, with ACC and PARAM, and engines in Python."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from amaranth.hdl import Cat, Elaboratable, Module, Signal, Value
from amaranth.lib.memory import Memory, WritePort
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator, SimulatorContext

from bench.compute_model import Lanes
from bench.execute import pack
from vitral.arithmetic import requantize
from vitral.config import PARAM_LANE_BYTES, CoreConfig
from vitral.hw.core.acc import AccMemory
from vitral.hw.core.interfaces import Wait, granule_bytes
from vitral.hw.core.store import StoreStage
from vitral.isa import PARAM_FIELDS, Advance, Instruction, InstructionSet, Load, Profile, Store
from vitral.isa import Memory as MemoryId

__all__ = ["Params", "StoreBench", "Trace", "random_params", "stored_bytes"]

Params = list[list[dict[str, int]]]
"""Entries, each one dictionary of parameter fields per lane."""


def random_params(config: CoreConfig, seed: int) -> Params:
    """Parameters under which random accumulators give results all over the range."""
    rng = random.Random(seed)

    def lane() -> dict[str, int]:
        return {
            "bias": rng.randrange(-(1 << 31), 1 << 31),
            "mult": rng.randrange(1 << 23, 1 << 24),
            "shift": rng.randrange(45, 50),
            "zero_point": rng.randrange(-9, 10),
            "low": rng.randrange(-128, -100),
            "high": rng.randrange(100, 128),
        }

    return [[lane() for _ in range(config.block)] for _ in range(config.layout.param_depth)]


def stored_bytes(config: CoreConfig, insn: Store, acc: list[Lanes], params: Params) -> bytes:
    """What a STORE writes, its elements one after the other."""
    result = b""
    for row in range(insn.y_size):
        for column in range(insn.x_size):
            number = row * insn.x_size + column
            lanes = acc[insn.sram_base + number]
            if insn.memory is MemoryId.ACC:
                result += b"".join(x.to_bytes(4, "little", signed=True) for x in lanes)
                continue
            if insn.requant:
                step = {Advance.NONE: 0, Advance.ROW: row, Advance.ELEMENT: number}[insn.advance]
                entry = params[insn.param_base + step] * config.batch
                lanes = [
                    int(requantize(x, **param, rounding=insn.rounding))
                    for x, param in zip(lanes, entry, strict=True)
                ]
            result += bytes(x % 256 for x in lanes)
    return result


@dataclass
class Trace:
    """What left the stage; cycles of begun instructions, granules and tokens."""

    data: bytes = b""
    begun: list[int] = field(default_factory=list)
    granules: list[int] = field(default_factory=list)
    commands: list[dict[str, int]] = field(default_factory=list)
    given: list[int] = field(default_factory=list)
    waits: list[tuple[Wait, int]] = field(default_factory=list)
    fault: tuple[int, int] | None = None


class _Top(Elaboratable):
    """The stage, ACC, and PARAM as one memory per lane: wider ones are too much for pysim."""

    def __init__(self, config: CoreConfig, params: Params) -> None:
        self.stage, self.acc = StoreStage(config), AccMemory(config)
        self.row_bits = config.layout.param_row_bits - config.layout.param_index_bits
        self.memories = [
            Memory(
                shape=8 * PARAM_LANE_BYTES,
                depth=config.layout.param_depth,
                init=[_lane_word(entry[lane]) for entry in params],
            )
            for lane in range(config.block)
        ]
        self.writes: list[WritePort] = [memory.write_port() for memory in self.memories]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.stage, m.submodules.acc = self.stage, self.acc
        port = self.stage.param_read
        words: list[Value] = []
        connect(m, self.stage.acc_read, self.acc.store)
        for lane, memory in enumerate(self.memories):
            m.submodules[f"memory_{lane}"] = memory
            read = memory.read_port()
            m.d.comb += [read.en.eq(port.en), read.addr.eq(port.address[self.row_bits :])]
            words.append(read.data)
        # Of the entry, the row that was asked for.
        row = Signal(self.row_bits)
        with m.If(port.en):
            m.d.sync += row.eq(port.address[: self.row_bits])
        m.d.comb += port.data.eq(Cat(words).word_select(row, len(port.data)))
        return m


class StoreBench:
    """A stage with random accumulators.

    The store engine takes a granule in a share `ready` of the cycles, and acknowledges a STORE
    `latency` cycles after its last granule. A LOAD PARAM replaces its entries with those of
    `loaded` at once, which is the earliest that an engine could, and ends `latency` cycles later.
    `grants` lists cycles in which a token arrives, before which there are `tokens`; `room` is
    what the counter behind takes until cycle `room_from`.
    """

    def __init__(
        self,
        config: CoreConfig,
        *,
        seed: int = 1,
        ready: float = 1.0,
        latency: int = 9,
        tokens: int = 99,
        grants: Sequence[int] = (),
        room: int = 99,
        room_from: int = 1 << 30,
        loaded: Params | None = None,
        profile: Profile = Profile.VITRAL,
    ) -> None:
        self.config, self.ready, self.latency = config, ready, latency
        self.tokens, self.grants, self.room, self.room_from = tokens, grants, room, room_from
        self.profile = profile
        self.rng = random.Random(seed)
        lanes = config.layout.acc_bytes // 4
        self.acc = [
            [self.rng.randrange(-(1 << 31), 1 << 31) for _ in range(lanes)]
            for _ in range(config.layout.acc_depth)
        ]
        self.params = random_params(config, seed)
        self.loaded = loaded or self.params
        self.top = _Top(config, self.params)

    def run(self, program: Sequence[Instruction], *, cycles: int = 600) -> Trace:
        """Runs until everything has retired and the stage is idle, or for `cycles`."""
        self.program = program
        self.words = [InstructionSet.of(self.config).encode(insn) for insn in program]
        self.trace, self.events = Trace(), list[tuple[int, str]]()
        self.promised, self.ends = 0, list[int]()
        simulator = Simulator(self.top)
        simulator.add_clock(1e-8)

        async def drive(ctx: SimulatorContext) -> None:
            await self._preset(ctx)
            for cycle in range(cycles):
                self._offer(ctx, cycle)
                self._note(ctx, cycle)
                if self.trace.fault or (
                    len(self.trace.begun) == len(program) and self.trace.waits[-1][0] is Wait.IDLE
                ):
                    return
                await ctx.tick()

        simulator.add_testbench(drive)
        simulator.run()
        return self.trace

    async def _preset(self, ctx: SimulatorContext) -> None:
        load = self.top.acc.load
        ctx.set(load.mask, 1)
        for row, lanes in enumerate(self.acc):
            ctx.set(load.row, row)
            ctx.set(load.data, pack(lanes, 32))
            await ctx.tick()
        ctx.set(load.mask, 0)

    def _offer(self, ctx: SimulatorContext, cycle: int) -> None:
        stage, begun = self.top.stage, len(self.trace.begun)
        self.tokens += cycle in self.grants
        if cycle == self.room_from:
            self.room = 99
        ctx.set(stage.profile, self.profile)
        ctx.set(stage.insn.valid, begun < len(self.words))
        if begun < len(self.words):
            ctx.set(stage.insn.payload, {"word": self.words[begun], "index": begun})
        ctx.set(stage.prev.available, self.tokens > 0)
        ctx.set(stage.prev.room, self.room > 0)
        ctx.set(stage.store_command.ready, 1)
        ctx.set(stage.load_command.ready, 1)
        ctx.set(stage.store_data.ready, self.rng.random() < self.ready)
        due = next((event for event in self.events if event[0] <= cycle), None)
        for name in ("store", "load"):
            ctx.set(getattr(stage, f"{name}_done").valid, due is not None and due[1] == name)
        if due:
            self.events.remove(due)

    def _note(self, ctx: SimulatorContext, cycle: int) -> None:
        stage, trace = self.top.stage, self.trace
        trace.waits.append((Wait(ctx.get(stage.wait)), ctx.get(stage.index)))
        if ctx.get(stage.fault.valid):
            trace.fault = (ctx.get(stage.fault.cause), ctx.get(stage.fault.index))
        if ctx.get(stage.prev.give):
            trace.given.append(cycle)
            self.room -= 1
        self.tokens -= ctx.get(stage.prev.take)
        for write in self.top.writes:
            ctx.set(write.en, 0)
        if ctx.get(stage.insn.valid) and ctx.get(stage.insn.ready):
            insn = self.program[len(trace.begun)]
            trace.begun.append(cycle)
            self._command(ctx, insn, cycle)
        if ctx.get(stage.store_data.valid) and ctx.get(stage.store_data.ready):
            size = granule_bytes(self.config)
            trace.data += ctx.get(stage.store_data.payload).to_bytes(size, "little")
            trace.granules.append(cycle)
            if len(trace.data) == self.ends[0]:
                self.ends.pop(0)
                self.events.append((cycle + self.latency, "store"))

    def _command(self, ctx: SimulatorContext, insn: Instruction, cycle: int) -> None:
        stage, layout = self.top.stage, self.config.layout
        if ctx.get(stage.store_command.valid):
            command = ctx.get(stage.store_command.payload)
            names = ("wide", "dram_base", "y_size", "x_size", "x_stride")
            self.trace.commands.append({n: command[n] for n in names})
            element = layout.acc_bytes if command.wide else layout.out_bytes
            self.promised += element * command.x_size * command.y_size
            self.ends.append(self.promised)
        if ctx.get(stage.load_command.valid):
            assert isinstance(insn, Load)
            assert insn.x_size == insn.y_size == 1, "the bench writes one entry"
            for write, lane in zip(self.top.writes, self.loaded[insn.sram_base], strict=True):
                ctx.set(write.en, 1)
                ctx.set(write.addr, insn.sram_base)
                ctx.set(write.data, _lane_word(lane))
            self.events.append((cycle + self.latency, "load"))


def _lane_word(lane: dict[str, int]) -> int:
    return sum(f.insert(lane[f.name], "PARAM") for f in PARAM_FIELDS)
