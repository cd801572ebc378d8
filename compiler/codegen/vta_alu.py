"""ALU instructions and the resetting GEMM, as calls."""

from collections.abc import Sequence

from vitral.compiler.codegen.calls import Call, Loop, in_loops
from vitral.config import CoreConfig
from vitral.isa import Alu, AluOp, Gemm, InstructionSet, Uop

__all__ = ["alu_call", "alu_immediate", "alu_uop", "reset_call"]

_NOTHING = slice(0, 0)


def reset_call(sums: slice) -> Call:
    """Sets ACC elements to 0."""
    insn = Gemm(reset=True, iter_out=1, iter_in=sums.stop - sums.start, dst_factor_in=1)
    return Call(insn, (Uop(sums.start),), 0, 1, inp=_NOTHING, wgt=_NOTHING, acc=sums)


def alu_immediate(op: AluOp, imm: int, elements: slice) -> Call:
    """acc = op(acc, imm) of ACC elements."""
    insn = Alu(
        alu_opcode=op,
        use_imm=True,
        imm=imm,
        iter_out=1,
        iter_in=elements.stop - elements.start,
        dst_factor_in=1,
    )
    uops = (Uop(elements.start),)  # without src and wgt, the forms of GEMM and ALU are the same
    return Call(insn, uops, 0, 1, inp=_NOTHING, wgt=_NOTHING, acc=elements)


def alu_call(
    op: AluOp, elements: slice, other: int, loops: Sequence[Loop], config: CoreConfig
) -> Call:
    """acc[dst] = op(acc[dst], acc[src]); dst starts with `elements` and src at `other`."""
    uops = (alu_uop(elements.start, other, config),)
    insn = in_loops(Alu(alu_opcode=op), loops)
    return Call(insn, uops, 0, 1, inp=_NOTHING, wgt=_NOTHING, acc=elements)


def alu_uop(dst: int, src: int, config: CoreConfig) -> Uop:
    """The micro-op whose GEMM form has the bits of the ALU's: src may be any ACC element there."""
    isa = InstructionSet.of(config)
    return isa.decode_uop(isa.encode_uop(Uop(dst, src), alu=True))
