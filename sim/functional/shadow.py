"""Copies of INP and WGT in the form in which the product kernel reads them.

INP as int16; WGT as [element][input pair][output][2] int16, so that one multiply-and-add of
adjacent pairs serves neighbouring outputs and their sums need no reduction across lanes.
"""

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.isa import Memory
from vitral.sim.functional.context import Context
from vitral.sim.functional.emit import I8, I16, Code, Value, vector

__all__ = ["Shadow"]


class Shadow:
    """Emits the functions that bring a range of elements up to date."""

    def __init__(self, module: ir.Module, config: CoreConfig) -> None:
        self.config = config
        self.widen_inp = self._widen_inp(module)
        self.pack_wgt = self._pack_wgt(module)

    def refresh(
        self, code: Code, context: Context, memory: Memory, first: Value, count: Value
    ) -> None:
        """After elements ``first .. first + count`` of a memory have been written."""
        function = {Memory.INP: self.widen_inp, Memory.WGT: self.pack_wgt}.get(memory)
        if function is not None:
            code.call(function, context.address, first, count)

    def _widen_inp(self, module: ir.Module) -> Code:
        code = Code(module, "widen_inp", 3)
        address, first, count = code.arguments()
        context = Context(code, address)
        block = self.config.block
        rows = context.memory("inp", vector(I8, block))
        wide = context.memory("wide_inp", vector(I16, block))
        begin = first * self.config.batch
        with code.loop(begin + count * self.config.batch, begin) as row:
            wide[row] = rows[row].sext(vector(I16, block))
        code.ret(0)
        return code

    def _pack_wgt(self, module: ir.Module) -> Code:
        code = Code(module, "pack_wgt", 3)
        address, first, count = code.arguments()
        context = Context(code, address)
        block = self.config.block
        pairs = block // 2
        with code.loop(first + count, first) as element:
            rows = context.memory("wgt", vector(I16, pairs)) + element * block
            packed = context.memory("wide_wgt", vector(I16, block)) + element * block
            for number, row in enumerate(_transposed([rows[output] for output in range(block)])):
                for half, value in enumerate(_halves(row)):
                    wide = value.bitcast(vector(I8, block)).sext(vector(I16, block))
                    packed[2 * number + half] = wide
        code.ret(0)
        return code


def _transposed(rows: list[Value]) -> list[Value]:
    """The columns of equal vectors, a power of two of them, as twice as long vectors.

    Interleaving the first half of all numbers with the second one moves the highest bit of their
    positions to the lowest place; done once per bit of the row number, rows become columns.
    """
    length = rows[0].type.count
    low = [half * length + n for n in range(length // 2) for half in range(2)]
    high = [place + length // 2 for place in low]
    width = len(rows)
    for _ in range(width.bit_length() - 1):
        pairs = zip(rows[: width // 2], rows[width // 2 :], strict=True)
        rows = [one.shuffle(lanes, other) for one, other in pairs for lanes in (low, high)]
    both = range(2 * length)
    return [one.shuffle(both, other) for one, other in zip(rows[::2], rows[1::2], strict=True)]


def _halves(row: Value) -> list[Value]:
    half = row.type.count // 2
    return [row.shuffle(range(start, start + half)) for start in (0, half)]
