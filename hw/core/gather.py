"""Reads a range of accumulators for the store stage, ahead of who consumes them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.acc import AccRead

__all__ = ["Gather", "range_layout"]

DEPTH = 4
"""Elements on the way at most: enough for one per cycle through two cycles of latency."""


def range_layout(config: CoreConfig) -> data.StructLayout:
    """`count` elements, at least one, from `first` on; the range lies in ACC."""
    bits = config.layout.acc_index_bits
    return data.StructLayout({"first": bits, "count": bits + 1})


class Gather(wiring.Component):
    """Turns ranges into a stream of elements, up to one per cycle, first one after 3 cycles.

    The next range is taken as soon as the last element of the one before has been asked for.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        super().__init__(
            {
                "range": In(stream.Signature(range_layout(config))),
                "acc_read": Out(AccRead(config)),
                "element": Out(stream.Signature(8 * config.layout.acc_bytes)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = 8 * self.config.layout.acc_bytes
        m.submodules.queue = queue = fifo.SyncFIFO(width=width, depth=DEPTH)
        bits = self.config.layout.acc_index_bits
        address, left = Signal(bits, reset_less=True), Signal(bits + 1)
        arriving = Signal()
        served = Signal()
        m.d.comb += [
            self.acc_read.valid.eq((left != 0) & (queue.level + arriving < DEPTH)),
            self.acc_read.address.eq(address),
            served.eq(self.acc_read.valid & self.acc_read.ready),
            self.range.ready.eq((left == 0) | ((left == 1) & served)),
            self.idle.eq((left == 0) & ~arriving & ~queue.r_rdy),
        ]
        m.d.sync += arriving.eq(served)
        with m.If(served):
            m.d.sync += [address.eq(address + 1), left.eq(left - 1)]
        with m.If(self.range.valid & self.range.ready):
            m.d.sync += [address.eq(self.range.payload.first), left.eq(self.range.payload.count)]

        m.d.comb += [
            queue.w_en.eq(arriving),
            queue.w_data.eq(self.acc_read.data),
            self.element.valid.eq(queue.r_rdy),
            self.element.payload.eq(queue.r_data),
            queue.r_en.eq(self.element.ready),
        ]
        return m
