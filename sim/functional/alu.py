"""Native ALU operations, strictly in order."""

from collections.abc import Callable

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.isa import AluOp, InstructionSet
from vitral.sim.functional.emit import I32, Code, Ptr, Value, vector
from vitral.sim.functional.loops import Loops

__all__ = ["emit_alu"]

LAST_SHIFT = 31


def emit_alu(module: ir.Module, config: CoreConfig, isa: InstructionSet) -> Code:
    """``alu(context, low, high)``: cause, 0 when done."""
    code = Code(module, "alu", 3)
    loops = Loops(code, config, isa.alu, isa.alu_uop)
    loops.return_when_empty()
    depth = config.layout.acc_depth
    rows = loops.context.memory("acc", vector(I32, config.block))
    with code.choose(loops.fields["use_imm"].ne(0)) as (immediate, tensor):
        with immediate:
            loops.check(("dst",), {"dst": depth})
            _every_operation(code, loops, config, rows, use_imm=True)
        with tensor:
            loops.check(("dst", "src"), {"dst": depth, "src": depth})
            _every_operation(code, loops, config, rows, use_imm=False)
    code.ret(0)
    return code


def _every_operation(
    code: Code, loops: Loops, config: CoreConfig, rows: Ptr, *, use_imm: bool
) -> None:
    for operation, apply in _OPERATIONS.items():
        with code.when(loops.fields["alu_opcode"].eq(int(operation))):
            _all_iterations(code, loops, config, rows, apply, use_imm)


def _all_iterations(
    code: Code,
    loops: Loops,
    config: CoreConfig,
    rows: Ptr,
    apply: Callable[[Value, Value], Value],
    use_imm: bool,
) -> None:
    """The second operand is the immediate in every lane, or the element src."""
    imm = loops.fields["imm"].trunc(I32).splat(config.block)
    with (
        code.loop(loops.fields["iter_out"]) as i,
        code.loop(loops.fields["iter_in"]) as j,
        code.loop(loops.count) as k,
    ):
        word = loops.uop(k)
        dst = rows + (loops.operand(word, "dst") + loops.offset("dst", i, j)) * config.batch
        src = rows + (loops.operand(word, "src") + loops.offset("src", i, j)) * config.batch
        for b in range(config.batch):
            dst[b] = apply(dst[b], imm if use_imm else src[b])


def _minimum(one: Value, other: Value) -> Value:
    return one.min(other)


def _maximum(one: Value, other: Value) -> Value:
    return one.max(other)


def _add(one: Value, other: Value) -> Value:
    return one + other


def _multiply(one: Value, other: Value) -> Value:
    return one * other


def _shift_right(one: Value, amount: Value) -> Value:
    """Negative amounts shift left; 32 and more fill, either way. -(-2**31) is -2**31: unsigned."""
    right = one.shr(amount.max(0).min(LAST_SHIFT))
    left_by = -amount
    near = left_by.below(LAST_SHIFT + 1)
    left = near.where(one << (left_by & LAST_SHIFT), 0)
    return (amount >= 0).where(right, left)


_OPERATIONS: dict[AluOp, Callable[[Value, Value], Value]] = {
    AluOp.MIN: _minimum,
    AluOp.MAX: _maximum,
    AluOp.ADD: _add,
    AluOp.SHR: _shift_right,
    AluOp.MUL: _multiply,
}
