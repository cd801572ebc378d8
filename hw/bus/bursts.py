"""Cuts a run of beats into legal bursts."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bus.axi import burst_stream

__all__ = ["PAGE_BYTES", "BurstSplitter"]

PAGE_BYTES = 4096
"""No AXI burst crosses a multiple of this."""


def run_layout(config: CoreConfig, count_bits: int) -> data.StructLayout:
    """`beats` beats from the beat-aligned byte `address` on; `last` is handed through."""
    return data.StructLayout({"address": config.addr_bits, "beats": count_bits, "last": 1})


class BurstSplitter(wiring.Component):
    """Turns runs of beats into INCR bursts, as few as page and burst limit allow.

    Latency one cycle, then one burst per cycle; the next run is taken while the last burst of a
    run leaves. Runs have at least one beat.

    Parameters
    ----------
    count_bits : int
        Width of a run's number of beats.
    burst_beats : int
        Longest burst; the configuration's unless given.

    Ports
    -----
    run
        Stream of runs: address (the bits below a beat are ignored), beats, last.
    burst
        Stream of bursts.
    final
        The offered burst is the last one of a run marked `last`.
    busy
        A burst is being offered.
    """

    def __init__(
        self, config: CoreConfig, *, count_bits: int, burst_beats: int | None = None
    ) -> None:
        self._config = config
        self._limit = min(burst_beats or config.burst_beats, config.burst_beats)
        super().__init__(
            {
                "run": In(stream.Signature(run_layout(config, count_bits))),
                "burst": Out(burst_stream(config)),
                "final": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        beat_bits = (self._config.layout.beat_bytes - 1).bit_length()
        page_beats = PAGE_BYTES // self._config.layout.beat_bytes

        beat = Signal(self._config.addr_bits - beat_bits)
        left = Signal.like(self.run.p.beats)
        last = Signal()

        # The burst: up to the end of the run, of the page, or the limit.
        to_page_end = Signal(range(page_beats + 1))
        beats = Signal(range(self._limit + 1))
        m.d.comb += to_page_end.eq(page_beats - beat[: (page_beats - 1).bit_length()])
        in_page = Mux(to_page_end < self._limit, to_page_end, self._limit)
        ends = Signal()
        m.d.comb += [
            ends.eq(left <= in_page),
            beats.eq(Mux(ends, left, in_page)),
            self.burst.valid.eq(self.busy),
            self.burst.p.address.eq(beat << beat_bits),
            self.burst.p.len.eq(beats - 1),
            self.final.eq(ends & last),
            self.run.ready.eq(~self.busy | (ends & self.burst.ready)),
        ]

        with m.If(self.burst.valid & self.burst.ready):
            m.d.sync += [beat.eq(beat + beats), left.eq(left - beats), self.busy.eq(~ends)]
        with m.If(self.run.valid & self.run.ready):
            m.d.sync += [
                beat.eq(self.run.p.address >> beat_bits),
                left.eq(self.run.p.beats),
                last.eq(self.run.p.last),
                self.busy.eq(1),
            ]
        return m
