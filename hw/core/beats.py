"""Follows arriving beats through the rows they belong to."""

from collections.abc import Sequence

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.hw.core.scratchpad import Geometry

__all__ = ["BeatCursor", "beat_row_layout"]


def beat_row_layout(geometries: Sequence[Geometry], slot_bits: int) -> data.StructLayout:
    """A row on its way from DRAM, counted in units (see `Geometry`).

    `position` is where unit 0 of the next beat belongs (modulo the memory), `head` the first
    unit of that beat that is wanted, `left` the units up to the row's end counted from unit 0.
    """
    unit_bits = max(geometry.unit_bits for geometry in geometries)
    lane_bits = max(1, *(geometry.beat_units.bit_length() - 1 for geometry in geometries))
    return data.StructLayout(
        {
            "memory": max(1, (len(geometries) - 1).bit_length()),
            "slot": slot_bits,
            "position": unit_bits,
            "left": unit_bits + 2,
            "head": lane_bits,
            "last": 1,
        }
    )


class BeatCursor(wiring.Component):
    """Says for each beat where it belongs.

    Rows are taken as the previous one ends, without a gap. For a *serial* memory a beat lasts
    one cycle per wanted unit, `row.head` being the unit, and `take` shows the last one.

    Parameters
    ----------
    geometries
        Of the engine's memories, in the order of the numbers in `row.memory`.
    serial
        Whether each of them takes its units one by one.

    Ports
    -----
    rows
        Stream of `beat_row_layout`. A beat must not come before its row.
    beat
        There is a beat in this cycle.
    row
        Position of that beat.
    take
        The beat is used up in this cycle (only with `beat`).
    final
        So is its command.
    """

    def __init__(
        self, geometries: Sequence[Geometry], serial: Sequence[bool], *, slot_bits: int
    ) -> None:
        self._geometries = tuple(geometries)
        self._serial = tuple(serial)
        layout = beat_row_layout(geometries, slot_bits)
        super().__init__(
            {
                "rows": In(stream.Signature(layout)),
                "beat": In(1),
                "row": Out(layout),
                "take": Out(1),
                "final": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        row = self.row
        valid = Signal()
        units = Signal(range(1 + max(geometry.beat_units for geometry in self._geometries)))
        whole = Signal(init=1)
        for number, geometry in enumerate(self._geometries):
            with m.If(row.memory == number):
                m.d.comb += units.eq(geometry.beat_units)
                if self._serial[number]:
                    ends = (row.head == geometry.beat_units - 1) | (row.head + 1 == row.left)
                    m.d.comb += whole.eq(ends)

        ends_row = Signal()
        m.d.comb += [
            self.take.eq(self.beat & whole),
            ends_row.eq(self.take & (row.left <= units)),
            self.final.eq(ends_row & row.last),
            self.rows.ready.eq(~valid | ends_row),
        ]
        with m.If(self.take):
            m.d.sync += [
                row.position.eq(row.position + units),
                row.left.eq(row.left - units),
                row.head.eq(0),
            ]
        with m.Elif(self.beat):
            m.d.sync += row.head.eq(row.head + 1)
        with m.If(self.rows.ready):
            m.d.sync += valid.eq(self.rows.valid)
            with m.If(self.rows.valid):
                m.d.sync += row.eq(self.rows.p)
        return m
