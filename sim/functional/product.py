"""The tile product: int8 vectors times int8 matrices, with the host's multiply-and-add.

acc[o] += inp[i] * wgt[o][i] + inp[i + 1] * wgt[o][i + 1] for all outputs o at once is one
instruction on 16-bit pairs, given the form of the operands that `shadow` keeps. Products are at
most 2**14, so that the sum of two cannot overflow.
"""

from collections.abc import Sequence

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.sim.functional.context import Context
from vitral.sim.functional.emit import I16, I32, Code, Ptr, Value, Var, vector
from vitral.sim.functional.extensions import fitting

__all__ = ["Tile"]


class Tile:
    """Emits the products of several INP elements with one WGT element, added to sums in registers.

    The sums of an element are batch x chunks vectors.
    """

    def __init__(self, code: Code, context: Context, config: CoreConfig, extensions: str) -> None:
        self.code = code
        self.batch = config.batch
        self.block = config.block
        self.pairs = config.block // 2
        self.extension = fitting(config.block, extensions)
        self.lanes = self.extension.lanes
        self.chunks = config.block // self.lanes
        self.vectors = self.batch * self.chunks
        self.sums = vector(I32, self.lanes)
        self.inp = context.memory("wide_inp", I32)
        self.wgt = context.memory("wide_wgt", self.sums)
        self.acc = context.memory("acc", self.sums)

    def acc_of(self, element: Value) -> Ptr:
        return self.acc + element * self.vectors

    def inp_of(self, element: Value) -> Ptr:
        return self.inp + self.inp_words(element)

    def inp_words(self, elements: Value) -> Value:
        """How far apart two INP elements are, in steps of `inp`."""
        return elements * (self.batch * self.pairs)

    def wgt_of(self, element: Value) -> Ptr:
        return self.wgt + element * (self.pairs * self.chunks)

    @property
    def zero(self) -> Value:
        return Value(self.code, ir.Constant(self.sums, [0] * self.lanes))

    def multiply(self, sums: Sequence[Sequence[Var]], rows: Sequence[Ptr], wgt: Ptr) -> None:
        """Adds the products of the INP elements at `rows`, each to its own sums."""
        values = [[var.get() for var in each] for each in sums]
        for pair in range(self.pairs):
            columns = [wgt[pair * self.chunks + chunk] for chunk in range(self.chunks)]
            for each, row in zip(values, rows, strict=True):
                self._one_pair(each, row, pair, columns)
        for each, fresh in zip(sums, values, strict=True):
            for var, value in zip(each, fresh, strict=True):
                var.set(value)

    def _one_pair(self, sums: list[Value], row: Ptr, pair: int, columns: list[Value]) -> None:
        for b in range(self.batch):
            operand = row[b * self.pairs + pair].splat(self.lanes)
            for chunk, column in enumerate(columns):
                number = b * self.chunks + chunk
                total = sums[number] + self._multiply_add(operand, column)
                sums[number] = total if self.extension.intrinsic is None else self._kept(total)

    def _kept(self, value: Value) -> Value:
        return self.code.opaque(value)

    def _multiply_add(self, one: Value, other: Value) -> Value:
        halves = vector(I16, 2 * self.lanes)
        if self.extension.intrinsic is not None:
            return self.code.intrinsic(
                self.extension.intrinsic, self.sums, one.bitcast(halves), other.bitcast(halves)
            )
        low = ((one << 16).shr(16)) * ((other << 16).shr(16))
        return low + one.shr(16) * other.shr(16)
