"""Packs granules that are smaller than a beat into beats with exact byte strobes."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["GranulePacker", "granule_row_layout"]


def granule_row_layout(granules_per_beat: int, count_bits: int) -> data.StructLayout:
    """A row of granules: `head` is the first one's place in its beat, `left` = head + granules."""
    return data.StructLayout(
        {"head": max(1, (granules_per_beat - 1).bit_length()), "left": count_bits}
    )


class GranulePacker(wiring.Component):
    """Granules → beats, one granule per cycle; each row starts and ends its own beats.

    A beat is offered together with its last granule, in the same cycle.

    Parameters
    ----------
    beat_bytes, granule_bytes : int
        Powers of two, the first one larger.
    count_bits : int
        Width of `left`.

    Ports
    -----
    rows
        Stream of `granule_row_layout`.
    granule
        Stream of granules, all rows one after another.
    beat
        Stream of data and strobes; bytes without a strobe are undefined.
    """

    def __init__(self, *, beat_bytes: int, granule_bytes: int, count_bits: int) -> None:
        self._lanes = beat_bytes // granule_bytes
        self._granule_bytes = granule_bytes
        beat = data.StructLayout({"data": beat_bytes * 8, "strb": beat_bytes})
        super().__init__(
            {
                "rows": In(stream.Signature(granule_row_layout(self._lanes, count_bits))),
                "granule": In(stream.Signature(granule_bytes * 8)),
                "beat": Out(stream.Signature(beat)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes = self._lanes
        row = Signal.like(self.rows.p)
        active = Signal()
        kept = [Signal(self._granule_bytes * 8, name=f"kept_{k}") for k in range(lanes - 1)]
        strobes = Signal(lanes)
        now = Signal(lanes)
        ends_row = Signal()
        ends_beat = Signal()
        taken = Signal()

        # The granule's place is row.head; places before it were kept.
        m.d.comb += [
            now.eq(1 << row.head),
            ends_row.eq(row.head + 1 == row.left),
            ends_beat.eq(ends_row | (row.head == lanes - 1)),
            self.beat.valid.eq(active & self.granule.valid & ends_beat),
            self.granule.ready.eq(active & (self.beat.ready | ~ends_beat)),
            taken.eq(self.granule.valid & self.granule.ready),
            self.rows.ready.eq(~active | (taken & ends_row)),
            self.beat.p.data.eq(
                Cat(
                    *(Mux(now[k], self.granule.p, kept[k]) for k in range(lanes - 1)),
                    self.granule.p,
                )
            ),
            self.beat.p.strb.eq(Cat(bit.replicate(self._granule_bytes) for bit in strobes | now)),
        ]
        with m.If(taken):
            m.d.sync += strobes.eq(Mux(ends_beat, 0, strobes | now))
            m.d.sync += row.head.eq(row.head + 1)
            with m.If(ends_beat):
                m.d.sync += [row.head.eq(0), row.left.eq(row.left - lanes)]
            for place, lane in enumerate(kept):
                with m.If(now[place]):
                    m.d.sync += lane.eq(self.granule.p)
        with m.If(self.rows.ready):
            m.d.sync += active.eq(self.rows.valid)
            with m.If(self.rows.valid):
                m.d.sync += row.eq(self.rows.p)
        return m
