"""GEMM, WINDOW and ALU: two loops over a range of micro-ops."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from vitral.isa import Alu, AluOp, Cause, Format, Gemm, InstructionSet, Window, window_of
from vitral.program import OnChip
from vitral.sim.reference.memory import Fault

__all__ = ["alu", "gemm", "window"]

Indices = npt.NDArray[np.int64]
Values = npt.NDArray[np.int32]
CHUNK = 1 << 12
"""Iterations that are computed at once."""


def gemm(insn: Gemm, onchip: OnChip, isa: InstructionSet) -> None:
    """``acc[dst] += inp[src] . wgt[wgt]^T``, or overwrite, or 0."""
    for iteration in _iterations(insn, onchip.uop, isa.gemm_uop):
        dst = _bounded(insn, iteration, "dst", len(onchip.acc))
        if insn.reset:
            onchip.acc[dst] = 0
            continue
        src = _bounded(insn, iteration, "src", len(onchip.inp))
        wgt = _bounded(insn, iteration, "wgt", len(onchip.wgt))
        product = np.einsum(
            "nbi,noi->nbo", onchip.inp[src].astype(np.int32), onchip.wgt[wgt].astype(np.int32)
        )
        if insn.overwrite:
            onchip.acc[dst] = product  # of repeated indices numpy keeps the last
        else:
            np.add.at(onchip.acc, dst, product)


def window(insn: Window, onchip: OnChip, isa: InstructionSet, register: int) -> None:
    """Lane by lane over the taps that `register` holds: sum of products, or largest input."""
    taps, distance = window_of(register)
    offsets = distance * np.arange(taps)
    for iteration in _iterations(insn, onchip.uop, isa.gemm_uop):
        dst = _bounded(insn, iteration, "dst", len(onchip.acc))
        src = _bounded(insn, iteration, "src", len(onchip.inp), reach=int(offsets[-1]))
        inputs = onchip.inp[src[:, None] + offsets].astype(np.int32)
        if insn.maximum:
            result, combine = inputs.max(axis=1), np.maximum
        else:
            wgt = _bounded(insn, iteration, "wgt", len(onchip.wgt))
            rows = onchip.wgt[wgt, :taps].astype(np.int32)
            result, combine = np.einsum("ntbl,ntl->nbl", inputs, rows), np.add
        if insn.overwrite:
            onchip.acc[dst] = result
        else:
            combine.at(onchip.acc, dst, result)


def alu(insn: Alu, onchip: OnChip, isa: InstructionSet) -> None:
    """``acc[dst] = op(acc[dst], imm or acc[src])``, strictly in order."""
    operation = _OPERATIONS[insn.alu_opcode]
    acc = onchip.acc
    immediate = np.full(acc.shape[1:], insn.imm, np.int32)
    for iteration in _iterations(insn, onchip.uop, isa.alu_uop):
        dst = _bounded(insn, iteration, "dst", len(acc))
        src = dst if insn.use_imm else _bounded(insn, iteration, "src", len(acc))
        if _independent(dst, src):
            acc[dst] = operation(acc[dst], immediate if insn.use_imm else acc[src])
            continue
        for one, other in zip(dst, src, strict=True):
            acc[one] = operation(acc[one], immediate if insn.use_imm else acc[other])


def _independent(dst: Indices, src: Indices) -> bool:
    """Whether no iteration reads or writes what another one wrote."""
    if len(np.unique(dst)) != len(dst):
        return False
    return bool(np.array_equal(dst, src) or not np.isin(src, dst).any())


class _Iteration:
    """A run of consecutive iterations: loop counters and micro-op fields, each int64 (n,)."""

    def __init__(self, outer: Indices, inner: Indices, fields: dict[str, Indices]) -> None:
        self.outer = outer
        self.inner = inner
        self.fields = fields


def _iterations(
    insn: Gemm | Window | Alu, memory: npt.NDArray[np.uint32], fmt: Format
) -> Iterator[_Iteration]:
    """All iterations in order, in runs of whole inner loops or parts of one."""
    if insn.uop_bgn >= insn.uop_end or not insn.iter_out or not insn.iter_in:
        return
    if insn.uop_end > len(memory):
        raise Fault(Cause.INDEX_OVERFLOW)
    words = memory[insn.uop_bgn : insn.uop_end].astype(np.int64)
    uops = {field.name: (words & field.mask) >> field.low for field in fmt}
    total = insn.iter_out * insn.iter_in * len(words)
    for start in range(0, total, CHUNK):
        number = np.arange(start, min(start + CHUNK, total))
        loop, position = np.divmod(number, len(words))
        outer, inner = np.divmod(loop, insn.iter_in)
        yield _Iteration(outer, inner, {name: value[position] for name, value in uops.items()})


def _bounded(
    insn: Gemm | Window | Alu, iteration: _Iteration, name: str, depth: int, *, reach: int = 0
) -> Indices:
    """Element indices; faults unless they and the elements up to `reach` further exist."""
    index = (
        iteration.fields[name]
        + iteration.outer * getattr(insn, f"{name}_factor_out")
        + iteration.inner * getattr(insn, f"{name}_factor_in")
    )
    if index.max() + reach >= depth:
        raise Fault(Cause.INDEX_OVERFLOW)
    return index


def _shift_right(value: Values, amount: Values) -> Values:
    """By a signed 32-bit amount; negative is to the left. 32 or more fills, either way."""
    right = value >> np.minimum(np.maximum(amount, 0), 31)
    left_by = np.minimum(-amount.astype(np.int64), 32)
    left = np.where(left_by > 31, 0, value.astype(np.int64) << np.clip(left_by, 0, 31))
    return np.where(amount >= 0, right, left.astype(np.int32))


def _multiply(value: Values, other: Values) -> Values:
    return (value.astype(np.int64) * other.astype(np.int64)).astype(np.int32)


_OPERATIONS: dict[AluOp, Callable[[Values, Values], Values]] = {
    AluOp.MIN: np.minimum,
    AluOp.MAX: np.maximum,
    AluOp.ADD: np.add,
    AluOp.SHR: _shift_right,
    AluOp.MUL: _multiply,
}
