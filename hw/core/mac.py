"""The multiplier array: one tile product, batch x block dot products of length block, per cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig

__all__ = ["MacArray"]

LANE = 32


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
        batch, row_bits = self.config.batch, 8 * self.config.block
        inp = Signal.like(self.inp, name="inp_operands", reset_less=True)
        wgt = Signal.like(self.wgt, name="wgt_operands", reset_less=True)
        with m.If(self.load):
            m.d.sync += [inp.eq(self.inp), wgt.eq(self.wgt)]

        dot = Signal.like(self.dot, name="dots", reset_less=True)
        sums = Cat(
            _dot(inp.word_select(b, row_bits), wgt.word_select(o, row_bits))
            for b in range(batch)
            for o in range(self.config.block)
        )
        with m.If(self.multiply):
            m.d.sync += dot.eq(Mux(self.zero, 0, sums))
        m.d.comb += self.dot.eq(dot)
        return m


def _dot(left: Value, right: Value) -> Value:
    """The sum of the products of int8 lanes, 32 bits."""
    total: Value = Const(0, signed(LANE))
    for n in range(0, len(left), 8):
        product = _extended(left[n:][:8]) * _extended(right[n:][:8])
        total = (total + product)[:LANE].as_signed()
    return total.as_unsigned()


def _extended(byte: Value) -> Value:
    # int8 as 16 bits, so that products and sums have the 32 bits that simulators calculate with.
    # Amaranth writes a sum with 0 as an addition, which synthesis drops, but a mere extension
    # as eight copies of the sign bit, which Verilator puts together one by one.
    return (byte.as_signed() + Const(0, signed(15)))[:16].as_signed()
