"""Dependency tokens between the stages."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.interfaces import TokenPort

__all__ = ["TokenCounters"]


class TokenCounters(wiring.Component):
    """Four counters: load→compute, compute→load, compute→store, store→compute.

    A token given in one cycle is available in the next. A full counter has no room until the
    cycle after a token was taken. Cleared by reset.

    Ports
    -----
    load_next, compute_prev, compute_next, store_prev
        The stages' links to their neighbours.
    left
        Some counter is not 0.
    """

    def __init__(self, config: CoreConfig) -> None:
        self._capacity = config.token_capacity
        super().__init__(
            {
                "load_next": In(TokenPort()),
                "compute_prev": In(TokenPort()),
                "compute_next": In(TokenPort()),
                "store_prev": In(TokenPort()),
                "left": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        paths = {
            "load_to_compute": (self.load_next, self.compute_prev),
            "compute_to_load": (self.compute_prev, self.load_next),
            "compute_to_store": (self.compute_next, self.store_prev),
            "store_to_compute": (self.store_prev, self.compute_next),
        }
        counts = []
        for name, (giver, taker) in paths.items():
            count = Signal(range(self._capacity + 1), name=name)
            m.d.sync += count.eq(count + giver.give - taker.take)
            m.d.comb += [
                taker.available.eq(count != 0),
                giver.room.eq(count != self._capacity),
            ]
            counts.append(count)
        with m.If(counts[0].any() | counts[1].any() | counts[2].any() | counts[3].any()):
            m.d.comb += self.left.eq(1)
        return m
