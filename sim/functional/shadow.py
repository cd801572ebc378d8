"""Copies of INP and WGT in the form in which the product kernel reads them.

A group is the inputs whose products one lane adds at once. WGT lies as [element][group][output],
each output with its weights for the group, so that one multiply-and-add serves neighbouring
outputs and their sums need no reduction across lanes. Groups of two are int16 on both sides;
groups of four are bytes, INP offset by 128, and -128 times the sum of each output's weights, as
int32, stands behind each WGT element.
"""

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.isa import Memory
from vitral.sim.functional.context import Context
from vitral.sim.functional.emit import I8, I16, I32, Code, Value, vector
from vitral.sim.functional.extensions import fitting

__all__ = ["Shadow"]

OFFSET_BITS = 7
OFFSET = -(1 << OFFSET_BITS)
"""As int8: changing this bit adds 128 and makes an int8 a uint8."""


class Shadow:
    """Emits the functions that bring a range of elements up to date."""

    def __init__(self, module: ir.Module, config: CoreConfig, extensions: str) -> None:
        self.config = config
        self.depth = fitting(config.block, extensions).depth
        self.copy_inp = self._copy_inp(module)
        self.pack_wgt = self._pack_wgt(module)

    def refresh(
        self, code: Code, context: Context, memory: Memory, first: Value, count: Value
    ) -> None:
        """After elements ``first .. first + count`` of a memory have been written."""
        function = {Memory.INP: self.copy_inp, Memory.WGT: self.pack_wgt}.get(memory)
        if function is not None:
            code.call(function, context.address, first, count)

    def _copy_inp(self, module: ir.Module) -> Code:
        code = Code(module, "copy_inp", 3)
        address, first, count = code.arguments()
        context = Context(code, address)
        block = self.config.block
        rows = context.memory("inp", vector(I8, block))
        copy = context.memory("wide_inp", vector(I16 if self.depth == 2 else I8, block))
        begin = first * self.config.batch
        with code.loop(begin + count * self.config.batch, begin) as row:
            copy[row] = rows[row].sext(copy.kind) if self.depth == 2 else rows[row] ^ OFFSET
        code.ret(0)
        return code

    def _pack_wgt(self, module: ir.Module) -> Code:
        code = Code(module, "pack_wgt", 3)
        address, first, count = code.arguments()
        context = Context(code, address)
        block = self.config.block
        group = vector(I16 if self.depth == 2 else I32, block // self.depth)
        with code.loop(first + count, first) as element:
            rows = context.memory("wgt", group) + element * block
            columns = _transposed([rows[output] for output in range(block)])
            write = self._write_pairs if self.depth == 2 else self._write_quads
            write(context, element, columns)
        code.ret(0)
        return code

    def _write_pairs(self, context: Context, element: Value, columns: list[Value]) -> None:
        block = self.config.block
        packed = context.memory("wide_wgt", vector(I16, block)) + element * block
        for number, column in enumerate(columns):
            for half, value in enumerate(_halves(column)):
                wide = value.bitcast(vector(I8, block)).sext(vector(I16, block))
                packed[2 * number + half] = wide

    def _write_quads(self, context: Context, element: Value, columns: list[Value]) -> None:
        packed = context.memory("wide_wgt", columns[0].type) + element * (len(columns) + 1)
        correction = columns[0] & 0
        for number, column in enumerate(columns):
            packed[number] = column
            for shift in range(0, 32, 8):
                correction = correction - ((column << shift).shr(24) << OFFSET_BITS)
        packed[len(columns)] = correction


def _transposed(rows: list[Value]) -> list[Value]:
    """The columns of equal vectors; both numbers are powers of two, there are more rows.

    Interleaving the first half of all numbers with the second one moves the highest bit of their
    positions to the lowest place; done once per bit of the row number, rows become columns.
    """
    length = rows[0].type.count
    low = [half * length + n for n in range(length // 2) for half in range(2)]
    high = [place + length // 2 for place in low]
    width = len(rows)
    for _ in range(width.bit_length() - 1 if length > 1 else 0):
        pairs = zip(rows[: width // 2], rows[width // 2 :], strict=True)
        rows = [one.shuffle(lanes, other) for one, other in pairs for lanes in (low, high)]
    while len(rows) > length:
        both = range(2 * rows[0].type.count)
        rows = [one.shuffle(both, other) for one, other in zip(rows[::2], rows[1::2], strict=True)]
    return rows


def _halves(row: Value) -> list[Value]:
    half = row.type.count // 2
    return [row.shuffle(range(start, start + half)) for start in (0, half)]
