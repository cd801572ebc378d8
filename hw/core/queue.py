"""Instruction queue of a stage."""

from amaranth import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from vitral.hw.core.interfaces import INDEX_BITS, InsnWord
from vitral.isa import INSN_BITS

__all__ = ["AHEAD", "InsnQueue"]

AHEAD = 32
"""Instructions that keep a stage busy while others are fetched."""


class InsnQueue(wiring.Component):
    """Holds up to `depth` instructions in order; maps to block RAM.

    An instruction is at the output two cycles after it went in. Clearing is by reset.

    Ports
    -----
    i, o
        Streams of `InsnWord`.
    empty
        No instruction is held, at the output or on its way there.
    ahead
        At least `AHEAD` instructions are held.
    """

    def __init__(self, *, depth: int) -> None:
        self._depth = depth
        super().__init__(
            {
                "i": In(stream.Signature(InsnWord)),
                "o": Out(stream.Signature(InsnWord)),
                "empty": Out(1),
                "ahead": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=INSN_BITS + INDEX_BITS, depth=self._depth)
        m.d.comb += [
            fifo.w_en.eq(self.i.valid),
            fifo.w_data.eq(Cat(self.i.p.word, self.i.p.index)),
            self.i.ready.eq(fifo.w_rdy),
            self.o.valid.eq(fifo.r_rdy),
            Cat(self.o.p.word, self.o.p.index).eq(fifo.r_data),
            fifo.r_en.eq(self.o.ready),
            self.empty.eq(fifo.level == 0),
        ]
        m.d.sync += self.ahead.eq(fifo.level >= AHEAD)
        return m
