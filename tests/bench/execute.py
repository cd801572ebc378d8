"""Drives an `Execute` in Amaranth's simulator: memories around it, commands in, ACC out."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator, SimulatorContext

from bench.compute_model import Lanes, run_alu, run_gemm, run_window
from vitral.config import CoreConfig
from vitral.hw.core.execute import Execute
from vitral.hw.core.loops import Unit
from vitral.isa import Alu, Gemm, InstructionSet, Uop, Window

__all__ = ["ExecuteBench", "MemoryBench", "Result", "SMALL", "pack", "small_config", "unpack"]


def small_config(block: int = 4, batch: int = 1, acc_banks: int = 4, acc: int = 32) -> CoreConfig:
    """A core with `acc` accumulator elements, 16 of the others and 32 micro-ops."""
    lanes = batch * block
    return CoreConfig(
        block=block,
        batch=batch,
        acc_banks=acc_banks,
        uop_buffer=32 * 4,
        inp_buffer=16 * lanes,
        wgt_buffer=16 * block * block,
        acc_buffer=acc * 4 * lanes,
    )


SMALL = small_config()


def pack(values: Sequence[int], bits: int) -> int:
    """Lanes side by side, the first in the low bits."""
    return sum((value % (1 << bits)) << (bits * n) for n, value in enumerate(values))


def unpack(word: int, bits: int, count: int) -> Lanes:
    """The signed lanes of a word."""
    half = 1 << (bits - 1)
    return [(((word >> (bits * n)) + half) % (1 << bits)) - half for n in range(count)]


@dataclass
class Result:
    """ACC afterwards, cycles with an operation by unit, and the cycle of each retirement."""

    acc: list[Lanes] = field(default_factory=list)
    gemm_cycles: list[int] = field(default_factory=list)
    alu_cycles: list[int] = field(default_factory=list)
    retired: list[int] = field(default_factory=list)
    stored: list[tuple[int, Lanes]] = field(default_factory=list)
    fault: tuple[int, int] | None = None


class MemoryBench(Elaboratable):
    """A component with a preset memory at each of its read ports: (port, width, contents)."""

    def __init__(self, dut: Any, ports: list[tuple[Any, int, list[int]]]) -> None:
        self.dut, self.ports = dut, ports

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut
        for number, (port, width, init) in enumerate(self.ports):
            m.submodules[f"memory_{number}"] = memory = Memory(
                shape=width, depth=1 << len(port.address), init=init
            )
            read = memory.read_port()
            m.d.comb += [read.en.eq(port.en), read.addr.eq(port.address), port.data.eq(read.data)]
        return m


class ExecuteBench:
    """Random memories of a seed; `run` compares nothing, `expected` is what ACC should be.

    `window` holds the taps of windows and the distance between them.
    """

    def __init__(
        self,
        config: CoreConfig,
        uops: list[Uop],
        *,
        seed: int = 1,
        window: tuple[int, int] = (1, 1),
    ) -> None:
        self.config, self.uops, self.window = config, uops, window
        layout = config.layout
        rng = random.Random(seed)

        def lanes(depth: int, count: int, bits: int) -> list[Lanes]:
            return [
                [rng.randrange(-1 << (bits - 1), 1 << (bits - 1)) for _ in range(count)]
                for _ in range(depth)
            ]

        self.inp = lanes(layout.inp_depth, layout.inp_bytes, 8)
        self.wgt = lanes(layout.wgt_depth, layout.wgt_bytes, 8)
        self.acc = lanes(layout.acc_depth, layout.acc_bytes // 4, 32)

    def expected(self, program: Sequence[Gemm | Window | Alu]) -> list[Lanes]:
        acc = [list(lanes) for lanes in self.acc]
        for insn in program:
            if isinstance(insn, Gemm):
                run_gemm(insn, self.uops, self.inp, self.wgt, acc, self.config.block)
            elif isinstance(insn, Window):
                run_window(insn, self.uops, self.inp, self.wgt, acc, self.config.block, self.window)
            else:
                run_alu(insn, self.uops, acc)
        return acc

    def run(
        self,
        program: Sequence[Gemm | Window | Alu | None],
        *,
        store: Callable[[int], int | None] | None = None,
        load: Callable[[int], tuple[int, Lanes] | None] | None = None,
        limit: int = 3000,
    ) -> Result:
        """Executes; None is a command of unit NONE.

        `store` and `load` say for each cycle which ACC element is asked for, or written with what.
        """
        layout, isa = self.config.layout, InstructionSet.of(self.config)
        result = Result()
        dut = Execute(self.config)
        alu = any(isinstance(insn, Alu) for insn in program)
        words = [isa.encode_uop(uop, alu=alu and not uop.wgt) for uop in self.uops]
        inp = [pack(lanes, 8) for lanes in self.inp]
        bench = MemoryBench(
            dut,
            [
                (dut.uop_read, 32, words),
                *((port, 8 * layout.inp_bytes, inp) for port in dut.inp_read),
                (dut.wgt_read, 8 * layout.wgt_bytes, [pack(v, 8) for v in self.wgt]),
            ],
        )

        async def drive(ctx: SimulatorContext) -> None:
            taps, distance = self.window
            window = {"extra_taps": taps - 1, "reach": (taps - 1) * distance}
            ctx.set(dut.window, window | {"distance": distance % layout.inp_depth})
            for row, lanes in enumerate(self.acc):
                ctx.set(dut.load.row, row)
                ctx.set(dut.load.data, pack(lanes, 32))
                ctx.set(dut.load.mask, 1)
                await ctx.tick()
            ctx.set(dut.load.mask, 0)
            await self._feed(ctx, dut, program, result, store, load, limit)
            for row in range(layout.acc_depth):
                ctx.set(dut.store.valid, 1)
                ctx.set(dut.store.address, row)
                await ctx.tick()
                word = ctx.get(dut.store.data)
                result.acc.append(unpack(word, 32, layout.acc_bytes // 4))

        simulator = Simulator(bench)
        simulator.add_clock(1e-8)
        simulator.add_testbench(drive)
        simulator.run()
        return result

    async def _feed(
        self,
        ctx: SimulatorContext,
        dut: Execute,
        program: Sequence[Gemm | Window | Alu | None],
        result: Result,
        store: Callable[[int], int | None] | None,
        load: Callable[[int], tuple[int, Lanes] | None] | None,
        limit: int,
    ) -> None:
        position, pending = 0, None
        for cycle in range(limit):
            busy = position < len(program)
            ctx.set(dut.command.valid, busy)
            if busy:
                ctx.set(dut.command.payload, _command(program[position], position))
            wanted = pending if pending is not None else store(cycle) if store else None
            ctx.set(dut.store.valid, wanted is not None)
            ctx.set(dut.store.address, wanted or 0)
            written = load(cycle) if load else None
            ctx.set(dut.load.mask, written is not None)
            if written:
                ctx.set(dut.load.row, written[0])
                ctx.set(dut.load.data, pack(written[1], 32))

            if ctx.get(dut.fault.valid):
                result.fault = (ctx.get(dut.fault.cause), ctx.get(dut.fault.index))
                return
            if ctx.get(dut.gemm_active):
                result.gemm_cycles.append(cycle)
            if ctx.get(dut.alu_active):
                result.alu_cycles.append(cycle)
            if ctx.get(dut.retired):
                result.retired.append(cycle)
            if not busy and ctx.get(dut.idle):
                break
            position += ctx.get(dut.command.ready) and busy
            served = wanted is not None and ctx.get(dut.store.ready)
            pending = None if served else wanted
            await ctx.tick()
            if wanted is not None and served:
                word = ctx.get(dut.store.data)
                result.stored.append((wanted, unpack(word, 32, len(self.acc[0]))))
        else:
            raise AssertionError(f"not done after {limit} cycles")
        ctx.set(dut.store.valid, 0)
        ctx.set(dut.load.mask, 0)


def _command(insn: Gemm | Window | Alu | None, index: int) -> dict[str, object]:
    if insn is None:
        return {"index": index, "unit": Unit.NONE}
    values = {
        name: value for name, value in vars(insn).items() if not name.startswith(("pop_", "push_"))
    }
    values["index"] = index
    values["unit"] = Unit[type(insn).__name__.upper()]
    if "imm" in values:
        values["imm"] = values["imm"] % (1 << 16)
    return values
