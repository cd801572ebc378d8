"""Drives a `ComputeStage` in Amaranth's simulator, with counters and a load engine in Python."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from amaranth.sim import Simulator, SimulatorContext

from bench.compute_model import Lanes
from bench.execute import MemoryBench, pack, unpack
from vitral.config import CoreConfig
from vitral.hw.core.compute import ComputeStage
from vitral.hw.core.interfaces import Wait
from vitral.isa import Instruction, InstructionSet, Memory, Profile, Uop

__all__ = ["ComputeBench", "Trace"]

WAIT, DONE = -1, -2


@dataclass
class Trace:
    """What happened, as lists of cycles; `waits` has the wait code and index of every cycle."""

    begun: list[int] = field(default_factory=list)
    taken: list[tuple[int, str]] = field(default_factory=list)
    given: list[tuple[int, str]] = field(default_factory=list)
    gemm_cycles: list[int] = field(default_factory=list)
    waits: list[tuple[Wait, int]] = field(default_factory=list)
    loads: list[dict[str, int]] = field(default_factory=list)
    watched: dict[int, Lanes] = field(default_factory=dict)
    finished: int | None = None
    pad_acc: int = 0


class ComputeBench:
    """A stage between counters.

    `counters` holds tokens (to pop) and room (to push) on either side, by default plenty;
    `grants` raises one in a cycle: {cycle: name}. A LOAD puts `loaded` into all of its elements
    and is done `latency` cycles later. The other stages are idle from cycle `idle_from` on.
    With `watch`, that ACC element is read whenever a token goes to the next stage, and noted in
    the trace under the cycle of the token.
    """

    def __init__(
        self,
        config: CoreConfig,
        uops: list[Uop],
        memories: tuple[list[Lanes], list[Lanes]],
        *,
        counters: dict[str, int] | None = None,
        grants: dict[int, str] | None = None,
        loaded: Lanes | None = None,
        latency: int = 5,
        idle_from: int = 0,
        watch: int | None = None,
        profile: Profile = Profile.VITRAL,
    ) -> None:
        self.config, self.profile = config, profile
        names = ("tokens_prev", "tokens_next", "room_prev", "room_next")
        self.counters = dict.fromkeys(names, 99) | (counters or {})
        self.grants, self.loaded = grants or {}, loaded or [0] * (config.layout.acc_bytes // 4)
        self.latency, self.idle_from, self.watch = latency, idle_from, watch
        isa, layout = InstructionSet.of(config), config.layout
        self.dut = ComputeStage(config)
        inp = [pack(lanes, 8) for lanes in memories[0]]
        self.top = MemoryBench(
            self.dut,
            [
                (self.dut.uop_read, 32, [isa.encode_uop(uop) for uop in uops]),
                *((port, 8 * layout.inp_bytes, inp) for port in self.dut.inp_read),
                (self.dut.wgt_read, 8 * layout.wgt_bytes, [pack(v, 8) for v in memories[1]]),
            ],
        )

    def run(
        self,
        program: Sequence[Instruction],
        *,
        cycles: int = 200,
        abandoned: Sequence[Instruction] = (),
        clear_at: int = -1,
    ) -> Trace:
        """Runs until FINISH, or for `cycles`.

        With `clear_at`, `abandoned` runs until that cycle, in which all is cleared, and only then
        `program` follows; the trace is that of `program`.
        """
        isa = InstructionSet.of(self.config)
        words = [isa.encode(insn) for insn in (abandoned if clear_at >= 0 else program)]
        trace = Trace()

        async def drive(ctx: SimulatorContext) -> None:
            ctx.set(self.dut.profile, self.profile)
            loading: list[int] = []
            for cycle in range(cycles):
                if cycle in self.grants:
                    self.counters[self.grants[cycle]] += 1
                ctx.set(self.dut.clear, cycle == clear_at)
                self._offer(ctx, words, len(trace.begun), cycle)
                self._load(ctx, loading)
                self._note(ctx, cycle, trace, loading)
                watched = trace.given and trace.given[-1] == (cycle, "next")
                await ctx.tick()
                if cycle == clear_at:
                    words[:] = [isa.encode(insn) for insn in program]
                    trace.__init__()
                    loading.clear()
                    continue
                if watched and self.watch is not None:
                    word = ctx.get(self.dut.acc_read.data)
                    trace.watched[cycle] = unpack(word, 32, len(self.loaded))
                if trace.finished is not None:
                    return

        simulator = Simulator(self.top)
        simulator.add_clock(1e-8)
        simulator.add_testbench(drive)
        simulator.run()
        return trace

    def _offer(self, ctx: SimulatorContext, words: list[int], begun: int, cycle: int) -> None:
        dut = self.dut
        ctx.set(dut.insn.valid, begun < len(words))
        if begun < len(words):
            ctx.set(dut.insn.payload, {"word": words[begun], "index": begun})
        for side in ("prev", "next"):
            port = getattr(dut, side)
            ctx.set(port.available, self.counters[f"tokens_{side}"] > 0)
            ctx.set(port.room, self.counters[f"room_{side}"] > 0)
        ctx.set(dut.others_idle, cycle >= self.idle_from)
        ctx.set(dut.load_command.ready, 1)
        ctx.set(dut.acc_read.valid, self.watch is not None)
        ctx.set(dut.acc_read.address, self.watch or 0)

    def _load(self, ctx: SimulatorContext, loading: list[int]) -> None:
        """`loading` holds, for each cycle to come, an element to write, WAIT or DONE."""
        writes = bool(loading) and loading[0] >= 0
        ctx.set(self.dut.acc_write.mask, writes)
        ctx.set(self.dut.load_done.valid, loading[:1] == [DONE])
        if writes:
            ctx.set(self.dut.acc_write.row, loading[0])
            ctx.set(self.dut.acc_write.data, pack(self.loaded, 32))
        if loading:
            loading.pop(0)

    def _note(self, ctx: SimulatorContext, cycle: int, trace: Trace, loading: list[int]) -> None:
        dut = self.dut
        trace.waits.append((Wait(ctx.get(dut.wait)), ctx.get(dut.index)))
        for side in ("prev", "next"):
            port = getattr(dut, side)
            if ctx.get(port.take):
                trace.taken.append((cycle, side))
                self.counters[f"tokens_{side}"] -= 1
            if ctx.get(port.give):
                trace.given.append((cycle, side))
                self.counters[f"room_{side}"] -= 1
        if ctx.get(dut.load_command.valid):
            command = ctx.get(dut.load_command.payload)
            trace.loads.append({n: command[n] for n in ("memory", "sram_base", "pad_value")})
            first, count = command.sram_base, command.x_size * command.y_size
            acc = range(first, first + count) if command.memory == Memory.ACC else []
            loading += [*acc, *[WAIT] * (self.latency - 1), DONE]
        if ctx.get(dut.insn.valid) and ctx.get(dut.insn.ready):
            trace.begun.append(cycle)
        if ctx.get(dut.gemm_active):
            trace.gemm_cycles.append(cycle)
        trace.pad_acc = ctx.get(dut.pad_acc)
        if ctx.get(dut.finished):
            trace.finished = cycle
