"""cocotb: GEMM, WINDOW and ALU programs on the compute units, against a model in plain Python."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cocotb
from bench.execute import SMALL, ExecuteBench, pack, unpack
from cocotb.triggers import RisingEdge
from cosim.bench import Clocked

from vitral.hw.core.loops import Unit, loop_layout, window_layout
from vitral.hw.core.operands import TAPS
from vitral.isa import Alu, AluOp, Gemm, InstructionSet, Uop, Window

LAYOUT = SMALL.layout
LANES = LAYOUT.acc_bytes // 4
LIMIT = 4000
Program = Sequence[Gemm | Window | Alu]


class Compute(Clocked):
    """Memories behind the read ports, and ACC filled and read through its own ports."""

    def __init__(
        self,
        dut: Any,
        uops: list[Uop],
        *,
        alu: bool,
        seed: int,
        window: tuple[int, int] = (1, 1),
    ) -> None:
        super().__init__(dut)
        self.model = ExecuteBench(SMALL, uops, seed=seed, window=window)
        taps, distance = window
        values: dict[int | str, int] = {
            "extra_taps": taps - 1,
            "distance": distance,
            "reach": (taps - 1) * distance,
        }
        dut.window.value = window_layout(SMALL).const(values).as_bits()
        self.random = random.Random(seed)
        isa = InstructionSet.of(SMALL)
        words = [isa.encode_uop(uop, alu=alu) for uop in uops]
        for name in ("command_valid", "store_valid", "load_mask"):
            getattr(dut, name).value = 0
        inp = [pack(lanes, 8) for lanes in self.model.inp]
        cocotb.start_soon(self._memory("uop_read", words))
        cocotb.start_soon(self._memory("wgt_read", [pack(v, 8) for v in self.model.wgt]))
        for tap in range(TAPS):
            cocotb.start_soon(self._memory(f"inp_read_{tap}", inp))

    async def _memory(self, port: str, words: Sequence[int]) -> None:
        enable, address, data = (
            getattr(self.dut, f"{port}_{name}") for name in ("en", "address", "data")
        )
        while True:
            await RisingEdge(self.dut.aclk)
            if int(enable.value):
                data.value = words[int(address.value)]

    async def run(self, program: Program, *, reads: float = 0.0) -> None:
        """Fills ACC, executes, and compares; `reads` is how often the store stage reads ACC."""
        dut = self.dut
        await self.reset()
        for row, lanes in enumerate(self.model.acc):
            dut.load_mask.value = 1
            dut.load_row.value = row
            dut.load_data.value = pack(lanes, 32)
            await RisingEdge(dut.aclk)
        dut.load_mask.value = 0
        await self._execute(program, reads)
        got = [unpack(word, 32, LANES) for word in await self._contents()]
        wrong = [n for n, lanes in enumerate(self.model.expected(program)) if got[n] != lanes]
        assert not wrong, f"ACC elements {wrong} differ after {program}"

    async def _execute(self, program: Program, reads: float) -> None:
        dut = self.dut
        begun = retired = 0
        asked = False
        for _ in range(LIMIT):
            dut.command_valid.value = int(begun < len(program))
            if begun < len(program):
                dut.command_payload.value = _command(program[begun], begun)
            if not asked and self.random.random() < reads:
                asked = True
                dut.store_address.value = self.random.randrange(LAYOUT.acc_depth)
            dut.store_valid.value = int(asked)
            await RisingEdge(dut.aclk)
            asked = asked and not int(dut.store_ready.value)
            assert not int(dut.fault_valid.value), f"fault {int(dut.fault_cause.value)}"
            begun += begun < len(program) and int(dut.command_ready.value)
            retired += int(dut.retired.value)
            if retired == len(program):
                break
        assert retired == len(program), f"{retired} of {len(program)} retired"
        dut.command_valid.value = 0
        dut.store_valid.value = 0

    async def _contents(self) -> list[int]:
        dut, words = self.dut, []
        dut.store_valid.value = 1
        for row in range(LAYOUT.acc_depth + 1):
            dut.store_address.value = row % LAYOUT.acc_depth
            await RisingEdge(dut.aclk)
            assert int(dut.store_ready.value)
            words.append(int(dut.store_data.value))
        dut.store_valid.value = 0
        return words[1:]


def _command(insn: Gemm | Window | Alu, index: int) -> int:
    layout = loop_layout(SMALL)
    values: dict[int | str, Any] = {
        name: int(getattr(insn, name)) for name, _ in layout if hasattr(insn, name)
    }
    values |= {"index": index, "unit": Unit[type(insn).__name__.upper()]}
    if isinstance(insn, Alu):
        values["imm"] = insn.imm % (1 << 16)
    return layout.const(values).as_bits()


def _uops(order: Sequence[int], seed: int) -> list[Uop]:
    """GEMM micro-ops with these dst, and random operands of the lower half."""
    generator = random.Random(seed)
    half = (LAYOUT.inp_depth // 2, LAYOUT.wgt_depth // 2)
    return [
        Uop(dst=d, src=generator.randrange(half[0]), wgt=generator.randrange(half[1]))
        for d in order
    ]


@cocotb.test()
@cocotb.parametrize(
    order=[
        (3,) * 8,
        (0, 1) * 4,
        (0, 1, 2) * 3,
        (5, 5, 6, 5, 6, 6, 5, 5),
        tuple(random.Random(4).randrange(8) for _ in range(32)),
    ],
    reads=[0.0, 0.6],
)
async def gemm_in_any_order(dut: Any, order: tuple[int, ...], reads: float) -> None:
    """Adding, overwriting and clearing, with loops whose elements overlap."""
    bench = Compute(dut, _uops(order, seed=len(order)), alu=False, seed=1)
    end = len(order)
    program = [
        Gemm(uop_end=end, iter_out=1, iter_in=1),
        Gemm(
            uop_end=end,
            iter_out=3,
            iter_in=2,
            dst_factor_out=5,
            dst_factor_in=1,
            src_factor_out=2,
            src_factor_in=1,
            wgt_factor_in=3,
            wgt_factor_out=1,
        ),
        Gemm(uop_bgn=1, uop_end=end, iter_out=1, iter_in=2, overwrite=True, dst_factor_in=1),
        Gemm(uop_bgn=2, uop_end=4, iter_out=1, iter_in=1, reset=True),
        Gemm(uop_end=end, iter_out=1, iter_in=1),
    ]
    await bench.run(program, reads=reads)


@cocotb.test()
@cocotb.parametrize(
    maximum=[False, True], window=[(1, 1), (3, 1), (4, 3), (2, 7)], reads=[0.0, 0.6]
)
async def windows(dut: Any, maximum: bool, window: tuple[int, int], reads: float) -> None:
    """Sums and maxima, combined with ACC and not, among products of tiles."""
    order = (0, 1, 1, 0, 2, 2, 3)
    uops = [replace(uop, src=uop.src % 5) for uop in _uops(order, seed=7)]
    bench = Compute(dut, uops, alu=False, seed=9, window=window)
    whole = Window(uop_end=len(order), iter_out=1, iter_in=1, maximum=maximum)
    program = [
        whole,
        replace(whole, iter_in=2, dst_factor_in=3, src_factor_in=2, wgt_factor_in=1),
        Gemm(uop_end=len(order), iter_out=1, iter_in=1),
        replace(whole, overwrite=True, uop_bgn=1, uop_end=3),
        whole,
    ]
    await bench.run(program, reads=reads)


@cocotb.test()
@cocotb.parametrize(op=list(AluOp), reads=[0.0, 0.6])
async def alu_operations(dut: Any, op: AluOp, reads: float) -> None:
    """With an immediate; between elements of two banks, of one bank, and of one element."""
    bank = LAYOUT.acc_depth // SMALL.acc_banks
    pairs = [(0, bank), (1, 2), (2, 1), (3, 3), (bank + 1, 0), (0, bank + 1)]
    uops = [Uop(dst=dst, src=src, wgt=0) for dst, src in pairs]
    bench = Compute(dut, uops, alu=True, seed=2 + op)
    if op is AluOp.SHR:  # amounts inside, at and beyond the width, both ways
        amounts = (1, 31, 32, 5, -1, -31, -32, 0)
        for element, lanes in enumerate(bench.model.acc):
            if element % 2:
                lanes[:] = [amounts[(element + n) % len(amounts)] for n in range(LANES)]
    program = [
        Alu(alu_opcode=op, uop_end=6, iter_out=1, iter_in=1),
        Alu(
            alu_opcode=op,
            uop_end=6,
            iter_out=2,
            iter_in=2,
            dst_factor_out=2,
            src_factor_in=1,
            src_factor_out=3,
        ),
        *(
            Alu(
                alu_opcode=op,
                uop_end=3,
                iter_out=1,
                iter_in=2,
                dst_factor_in=1,
                use_imm=True,
                imm=i,
            )
            for i in (-3, 7, -32768)
        ),
    ]
    await bench.run(program, reads=reads)
