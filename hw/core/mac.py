"""The multiplier array: one tile product or window per cycle."""

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.operands import TAPS, Operands

__all__ = ["MacArray"]

LANE = 32
BYTE = 8


class MacArray(wiring.Component):
    """Exact int32 sums of int8 products, or the largest inputs of a window.

    ::

        tile     dot[b][o] = sum over i of tap[0][b][i] * wgt[o][i]
        window   dot[b][l] = sum over t of tap[t][b][l] * wgt[t][l]
        maximum  dot[b][l] = largest of tap[t][b][l]

    With `load`, operands enter their registers, those of a window with `window`; with `multiply` in
    a later cycle, their result enters `dot`: the largest with `maximum`, 0 with `zero`, else the
    sum. Registers hold otherwise, so an idle array neither toggles nor costs simulation time.

    `tap` has the input elements, int8 (batch, block); a tile looks at the first one only, and bit
    t - 1 of `more` says whether tap t > 0 counts. `maximum` also comes with `load`. `wgt` is int8
    (block, block), `dot` int32 (batch, block), lane by lane, elsewhere the first lane in the low
    bits.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        layout = config.layout
        super().__init__(
            {
                "tap": In(8 * layout.inp_bytes).array(TAPS),
                "wgt": In(8 * layout.wgt_bytes),
                "more": In(TAPS - 1),
                "load": In(1),
                "window": In(1),
                "load_maximum": In(1),
                "multiply": In(1),
                "maximum": In(1),
                "zero": In(1),
                "dot": Out(LANE).array(config.batch * config.block),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        operands = Operands(self.config, sharing=1)
        with m.If(self.load):
            with m.If(self.window):
                operands.load_window(m, self._counting_taps(), self.wgt)
            with m.Else():
                operands.load_tile(m, self.tap[0], self.wgt)

        outputs = [(b, o) for b in range(self.config.batch) for o in range(self.config.block)]
        dots = [Signal(LANE, name=f"dot_{b}_{o}", reset_less=True) for b, o in outputs]
        with m.If(self.multiply):
            with m.If(self.zero):
                m.d.sync += [dot.eq(0) for dot in dots]
            with m.Elif(self.maximum):
                for dot, (b, o) in zip(dots, outputs, strict=True):
                    m.d.sync += dot.eq(_largest(operands.taps(b, o)))
            with m.Else():
                for dot, (b, o) in zip(dots, outputs, strict=True):
                    m.d.sync += dot.eq(_dot(operands.left(b, o), operands.right(o)))
        m.d.comb += [port.eq(dot) for port, dot in zip(self.dot, dots, strict=True)]
        return m

    def _counting_taps(self) -> list[Value]:
        """The taps; one that does not count is 0, or with `load_maximum` the first."""
        first = self.tap[0]
        spare = Mux(self.load_maximum, first, 0)
        return [first, *(Mux(self.more[n], tap, spare) for n, tap in enumerate(self.tap[1:]))]


def _dot(left: Value, right: Value) -> Value:
    """The sum of the products of int8 lanes, 32 bits."""
    total: Value = Const(0, signed(LANE))
    for n in range(0, len(left), BYTE):
        product = _extended(left[n:][:BYTE]) * _extended(right[n:][:BYTE])
        total = (total + product)[:LANE].as_signed()
    return total


def _extended(byte: Value) -> Value:
    # int8 as 16 bits, so that products and sums have the 32 bits that simulators calculate with.
    # Amaranth writes a sum with 0 as an addition, which synthesis drops, but a mere extension
    # as eight copies of the sign bit, which Verilator puts together one by one.
    return (byte.as_signed() + Const(0, signed(15)))[:16].as_signed()


def _largest(lanes: list[Value]) -> Value:
    """The largest of int8 lanes."""
    largest = lanes[0].as_signed()
    for lane in lanes[1:]:
        other = lane.as_signed()
        largest = Mux(largest < other, other, largest)
    return largest
