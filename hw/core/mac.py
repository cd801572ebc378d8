"""The multiplier array: one tile product, batch x block dot products of length block, per cycle."""

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig

__all__ = ["MacArray"]


class MacArray(wiring.Component):
    """``dot[b][o] = sum over i of inp[b][i] * wgt[o][i]``, exact in int32.

    With `load`, operands enter their registers; with `multiply` in a later cycle, their products
    enter `dot`, or 0 with `zero`. Registers hold otherwise, so an idle array neither toggles nor
    costs simulation time. `inp` is int8 (batch, block), `wgt` int8 (block out, block in), `dot`
    int32 (batch, block), first element in the low bits.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        layout = config.layout
        super().__init__(
            {
                "inp": In(8 * layout.inp_bytes),
                "wgt": In(8 * layout.wgt_bytes),
                "load": In(1),
                "multiply": In(1),
                "zero": In(1),
                "dot": Out(8 * layout.acc_bytes),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        batch, block = self.config.batch, self.config.block
        inp = self._operands(m, "inp", self.inp, batch * block)
        wgt = self._operands(m, "wgt", self.wgt, block * block)

        dots = [Signal(signed(32), name=f"dot_{n}", reset_less=True) for n in range(batch * block)]
        sums = [
            self._chain(m, f"{b}_{o}", inp[b * block :][:block], wgt[o * block :][:block])
            for b in range(batch)
            for o in range(block)
        ]
        with m.If(self.multiply):
            with m.If(self.zero):
                m.d.sync += Cat(dots).eq(0)
            with m.Else():
                m.d.sync += [dot.eq(value) for dot, value in zip(dots, sums, strict=True)]
        m.d.comb += self.dot.eq(Cat(dots))
        return m

    def _operands(self, m: Module, name: str, packed: Value, count: int) -> list[Signal]:
        # 16-bit registers whose upper half repeats the sign: simulators then multiply without
        # extending first, and synthesis drops the copies.
        operands = [Signal(signed(16), name=f"{name}_{n}", reset_less=True) for n in range(count)]
        with m.If(self.load):
            m.d.sync += [
                operand.eq(packed[8 * n :][:8].as_signed()) for n, operand in enumerate(operands)
            ]
        return operands

    @staticmethod
    def _chain(m: Module, name: str, left: list[Signal], right: list[Signal]) -> Signal:
        total = Signal(signed(32), name=f"sum_{name}_0")
        m.d.comb += total.eq(left[0] * right[0])
        for n, (a, b) in enumerate(zip(left[1:], right[1:], strict=True), start=1):
            following = Signal(signed(32), name=f"sum_{name}_{n}")
            m.d.comb += following.eq(total + a * b)
            total = following
        return total
