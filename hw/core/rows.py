"""Walks the rows of a 2-D transfer through DRAM."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.addressing import Limits, address_bits, row_layout

__all__ = ["RowWalker", "area_layout"]

SHIFT_BITS = 4


def area_layout(config: CoreConfig) -> data.StructLayout:
    """A 2-D piece of DRAM.

    `address` is the first byte, `shift` log2 of the element's bytes; sizes and stride count
    elements, sizes are not 0; `joinable`: rows that abut may become one.
    """
    return data.StructLayout(
        {
            "address": address_bits(config),
            "shift": SHIFT_BITS,
            "y_size": 16,
            "x_size": 16,
            "x_stride": 16,
            "joinable": 1,
        }
    )


class RowWalker(wiring.Component):
    """Area → rows, top to bottom; abutting rows (stride = size) leave as one row.

    Latency one cycle, then one row per cycle. A row that is not wholly within the limits is not
    offered: `out_of_bounds` stays up instead, until reset.

    Parameters
    ----------
    count_bits : int
        Width of a row's element count. Areas with more elements in one row must be held back by
        `hold`.

    Ports
    -----
    area, row
        Streams of `area_layout` and `row_layout`.
    limits
        Bytes that may be touched.
    hold
        While 1 no row is offered.
    out_of_bounds
        The next row leaves the limits.
    busy
        There are rows left.
    """

    def __init__(self, config: CoreConfig, *, count_bits: int) -> None:
        self._config = config
        self._count_bits = count_bits
        super().__init__(
            {
                "area": In(stream.Signature(area_layout(config))),
                "row": Out(stream.Signature(row_layout(config, count_bits))),
                "limits": In(Limits(config)),
                "hold": In(1),
                "out_of_bounds": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        area = self.area.p
        active = self.busy
        address = Signal(address_bits(self._config))
        count = Signal(self._count_bits)
        stride = Signal(16)
        shift = Signal(SHIFT_BITS)
        rows = Signal(16)

        # Check and offer the current row.
        end = Signal.like(address)
        last = Signal()
        inside = Signal()
        m.d.comb += [
            end.eq(address + (count << shift)),
            inside.eq((address >= self.limits.low) & (end <= self.limits.high)),
            last.eq(rows == 1),
            self.row.valid.eq(active & inside & ~self.hold),
            self.row.p.address.eq(address),
            self.row.p.count.eq(count),
            self.row.p.last.eq(last),
            self.out_of_bounds.eq(active & ~inside & ~self.hold),
            self.area.ready.eq(~active | (self.row.valid & self.row.ready & last)),
        ]

        # Step to the next row or area.
        joined = Signal()
        m.d.comb += joined.eq(area.joinable & (area.x_size == area.x_stride))
        with m.If(self.row.valid & self.row.ready):
            m.d.sync += [
                address.eq(address + (stride << shift)),
                rows.eq(rows - 1),
                active.eq(~last),
            ]
        with m.If(self.area.valid & self.area.ready):
            m.d.sync += [
                active.eq(1),
                address.eq(area.address),
                count.eq(Mux(joined, area.x_size * area.y_size, area.x_size)),
                rows.eq(Mux(joined, 1, area.y_size)),
                stride.eq(area.x_stride),
                shift.eq(area.shift),
            ]
        return m
