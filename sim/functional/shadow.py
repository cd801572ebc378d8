"""Copies of INP and WGT in the form in which the product kernel reads them.

INP as int16; WGT as [element][input pair][output][2] int16, so that one multiply-and-add of
adjacent pairs serves neighbouring outputs and their sums need no reduction across lanes.
"""

from llvmlite import ir

from vitral.config import CoreConfig
from vitral.isa import Memory
from vitral.sim.functional.context import Context
from vitral.sim.functional.emit import I8, I16, I32, Code, Value, vector

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
            rows = context.memory("wgt", vector(I8, block)) + element * block
            packed = context.memory("wide_wgt", I32) + element * (block * pairs)
            with code.loop(block) as output:
                row = rows[output].sext(vector(I16, block)).bitcast(vector(I32, pairs))
                for pair in range(pairs):
                    packed[output + pair * block] = row.lane(pair)
        code.ret(0)
        return code
