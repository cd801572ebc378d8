"""The multiplier array: one tile product or window per cycle."""

from itertools import chain

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.operands import TAPS, Operands
from vitral.hw.core.products import BODIES, Body

__all__ = ["MacArray"]

LANE = 32


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
    bits. `config.mac_body` says how products are made; it changes neither results nor cycles.
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
        config, body = self.config, BODIES[self.config.mac_body]
        operands = Operands(config, sharing=body.sharing)
        with m.If(self.load):
            with m.If(self.window):
                operands.load_window(m, self._counting_taps(), self.wgt)
            with m.Else():
                operands.load_tile(m, self.tap[0], self.wgt)

        dots = [
            [Signal(LANE, name=f"dot_{b}_{o}", reset_less=True) for o in range(config.block)]
            for b in range(config.batch)
        ]
        with m.If(self.multiply):
            for b, rows in enumerate(dots):
                self._multiply(m, operands, body, b, rows)
        m.d.comb += [port.eq(dot) for port, dot in zip(self.dot, chain(*dots), strict=True)]
        return m

    def _multiply(
        self, m: Module, operands: Operands, body: Body, batch: int, dots: list[Signal]
    ) -> None:
        """Assigns the results of one batch."""
        apart = len(dots) // body.sharing
        with m.If(self.zero):
            m.d.sync += [dot.eq(0) for dot in dots]
        with m.Elif(self.maximum):
            for o, dot in enumerate(dots):
                m.d.sync += dot.eq(_largest(operands.taps(batch, o)))
        with m.Else():
            for o in range(apart):
                rights = [operands.right(row) for row in range(o, len(dots), apart)]
                sums = body.dots(operands.left(batch, o), rights)
                m.d.sync += [dot.eq(s) for dot, s in zip(dots[o::apart], sums, strict=True)]

    def _counting_taps(self) -> list[Value]:
        """The taps; one that does not count is 0, or with `load_maximum` the first."""
        first = self.tap[0]
        spare = Mux(self.load_maximum, first, 0)
        return [first, *(Mux(self.more[n], tap, spare) for n, tap in enumerate(self.tap[1:]))]


def _largest(lanes: list[Value]) -> Value:
    """The largest of int8 lanes."""
    largest = lanes[0].as_signed()
    for lane in lanes[1:]:
        other = lane.as_signed()
        largest = Mux(largest < other, other, largest)
    return largest
