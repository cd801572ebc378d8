"""The tile product: int8 vectors times int8 matrices, with the host's multiply-and-add.

One instruction adds to acc[o], for as many outputs o as a vector has lanes, the products of a
few neighbouring inputs: two, or four with VNNI, given the form of the operands that `shadow`
keeps. Products of int8 are at most 2**14, so that sums of a few cannot overflow.

VNNI multiplies unsigned by signed numbers. It gets inp + 128, and as
sum(inp * wgt) = sum((inp + 128) * wgt) - 128 * sum(wgt), the last term, which `shadow` keeps
behind each WGT element, is added once for all sums that share the weights.
"""

from collections.abc import Sequence

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.sim.functional.context import Context
from vitral.sim.functional.emit import I8, I16, I32, Code, Ptr, Value, Var, vector
from vitral.sim.functional.extensions import fitting

__all__ = ["Sums", "Tile"]


class Tile:
    """Forms and addresses of elements; the sums of one are batch x chunks vectors."""

    def __init__(self, code: Code, context: Context, config: CoreConfig, extensions: str) -> None:
        self.code = code
        self.batch = config.batch
        self.extension = fitting(config.block, extensions)
        self.groups = config.block // self.extension.depth
        self.lanes = self.extension.lanes
        self.chunks = config.block // self.lanes
        self.vectors = self.batch * self.chunks
        self.corrected = self.extension.depth == 4
        self.sums = vector(I32, self.lanes)
        self.inp = context.memory("wide_inp", I32)
        self.wgt = context.memory("wide_wgt", self.sums)
        self.acc = context.memory("acc", self.sums)

    def acc_of(self, element: Value) -> Ptr:
        return self.acc + element * self.vectors

    def inp_of(self, element: Value) -> Ptr:
        return self.inp + self.inp_words(element)

    def inp_words(self, elements: Value) -> Value:
        """How far apart INP elements are, in steps of `inp`."""
        return elements * (self.batch * self.groups)

    def wgt_of(self, element: Value) -> Ptr:
        return self.wgt + element * ((self.groups + self.corrected) * self.chunks)

    @property
    def zero(self) -> Value:
        return Value(self.code, ir.Constant(self.sums, [0] * self.lanes))

    def multiply_add(self, total: Value, inputs: Value, weights: Value) -> Value:
        """`total` and the products of a group of inputs with their weights, in each lane."""
        name = self.extension.intrinsic
        if name is None:
            return total + self._written_out(inputs, weights)
        if self.corrected:
            parts = vector(I8, 4 * self.lanes)
            operands = inputs.bitcast(parts), weights.bitcast(parts)
            return self.code.opaque(self.code.intrinsic(name, self.sums, total, *operands))
        parts = vector(I16, 2 * self.lanes)
        operands = inputs.bitcast(parts), weights.bitcast(parts)
        return self.code.opaque(total + self.code.intrinsic(name, self.sums, *operands))

    def _written_out(self, inputs: Value, weights: Value) -> Value:
        width = 32 // self.extension.depth
        total = self.zero
        for shift in range(32 - width, -1, -width):
            one, other = inputs << shift, (weights << shift).shr(32 - width)
            one = one >> (32 - width) if self.corrected else one.shr(32 - width)
            total = total + one * other
        return total


class Sums:
    """The sums of some ACC elements, kept in registers while products are added."""

    def __init__(self, tile: Tile, count: int) -> None:
        self.tile = tile
        code = tile.code
        self.values = [[Var(code, tile.zero) for _ in range(tile.vectors)] for _ in range(count)]
        self.common = [Var(code, tile.zero) for _ in range(tile.chunks)] if tile.corrected else []

    def open(self, accs: Sequence[Ptr], keep: Value) -> None:
        """Start with what the elements hold, or with 0."""
        for each, acc in zip(self.values, accs, strict=True):
            for number, value in enumerate(each):
                value.set(keep.where(acc[number], 0))
        for value in self.common:
            value.set(0)

    def add(self, rows: Sequence[Ptr], wgt: Ptr) -> None:
        """Add the products of the INP elements at `rows`, each to its own sums."""
        tile = self.tile
        values = [[var.get() for var in each] for each in self.values]
        for group in range(tile.groups):
            columns = [wgt[group * tile.chunks + chunk] for chunk in range(tile.chunks)]
            for each, row in zip(values, rows, strict=True):
                self._one_group(each, row, group, columns)
        for each, fresh in zip(self.values, values, strict=True):
            for var, value in zip(each, fresh, strict=True):
                var.set(value)
        for chunk, var in enumerate(self.common):
            var.add(wgt[tile.groups * tile.chunks + chunk])

    def _one_group(self, sums: list[Value], row: Ptr, group: int, columns: list[Value]) -> None:
        tile = self.tile
        for b in range(tile.batch):
            inputs = row[b * tile.groups + group].splat(tile.lanes)
            for chunk, column in enumerate(columns):
                number = b * tile.chunks + chunk
                sums[number] = tile.multiply_add(sums[number], inputs, column)

    def close(self, accs: Sequence[Ptr]) -> None:
        """Write the sums back."""
        for each, acc in zip(self.values, accs, strict=True):
            for number, value in enumerate(each):
                total = value.get()
                if self.common:
                    total = total + self.common[number % self.tile.chunks].get()
                acc[number] = total
