"""The tile product: int8 vectors times int8 matrices, with the host's multiply-and-add.

acc[o] += inp[i] * wgt[o][i] + inp[i + 1] * wgt[o][i + 1] for all outputs o at once is one
instruction on 16-bit pairs, given the form of the operands that `shadow` keeps. Products are at
most 2**14, so that the sum of two cannot overflow.
"""

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.sim.functional.context import Context
from vitral.sim.functional.emit import I16, I32, Code, Ptr, Value, vector
from vitral.sim.functional.extensions import fitting

__all__ = ["Tile"]


class Tile:
    """Emits the product of one INP element and one WGT element, added to sums in registers."""

    def __init__(self, code: Code, context: Context, config: CoreConfig, extensions: str) -> None:
        self.code = code
        self.batch = config.batch
        self.block = config.block
        self.extension = fitting(config.block, extensions)
        self.lanes = self.extension.lanes
        self.chunks = config.block // self.lanes
        self.sums = vector(I32, self.lanes)
        self.inp = context.memory("wide_inp", I32)
        self.wgt = context.memory("wide_wgt", self.sums)
        self.acc = context.memory("acc", self.sums)

    def load(self, element: Value) -> list[Value]:
        """The sums of an ACC element: batch x chunks vectors."""
        base = self.acc + element * (self.batch * self.chunks)
        return [base[n] for n in range(self.batch * self.chunks)]

    def store(self, element: Value, sums: list[Value]) -> None:
        base = self.acc + element * (self.batch * self.chunks)
        for n, value in enumerate(sums):
            base[n] = value

    def zero(self) -> list[Value]:
        zero = Value(self.code, ir.Constant(self.sums, [0] * self.lanes))
        return [zero] * (self.batch * self.chunks)

    def multiply(
        self, sums: list[list[Value]], sources: list[Value], weights: Value
    ) -> list[list[Value]]:
        """Adds the products of several INP elements with one WGT element, each to its own sums."""
        pairs = self.block // 2
        wgt = self.wgt + weights * (pairs * self.chunks)
        rows = [self.inp + source * (self.batch * pairs) for source in sources]
        sums = [list(each) for each in sums]
        for pair in range(pairs):
            columns = [wgt[pair * self.chunks + chunk] for chunk in range(self.chunks)]
            for each, row in zip(sums, rows, strict=True):
                self._one_pair(each, row, pair, columns)
        return sums

    def _one_pair(self, sums: list[Value], row: Ptr, pair: int, columns: list[Value]) -> None:
        for b in range(self.batch):
            operand = row[b * (self.block // 2) + pair].splat(self.lanes)
            for chunk, column in enumerate(columns):
                number = b * self.chunks + chunk
                sums[number] = sums[number] + self._multiply_add(operand, column)

    def _multiply_add(self, one: Value, other: Value) -> Value:
        halves = vector(I16, 2 * self.lanes)
        if self.extension.intrinsic is not None:
            return self.code.intrinsic(
                self.extension.intrinsic, self.sums, one.bitcast(halves), other.bitcast(halves)
            )
        low = ((one << 16).shr(16)) * ((other << 16).shr(16))
        return low + one.shr(16) * other.shr(16)
