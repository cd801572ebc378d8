"""Cuts accumulator elements into what goes to memory: low bytes, requantised bytes, or int32."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.interfaces import ReadPort, granule_bytes
from vitral.hw.core.requant import LANE, Requantizer
from vitral.isa import Advance

__all__ = ["Granules", "job_layout"]

QUARTERS = LANE // 8
"""Granules of the 32-bit form for one of the 8-bit form."""


def job_layout(config: CoreConfig) -> data.StructLayout:
    """What to do with the next `count` elements, in rows of `x_size`."""
    layout = config.layout
    return data.StructLayout(
        {
            "count": layout.acc_index_bits + 1,
            "x_size": 16,
            "wide": 1,
            "requant": 1,
            "rounding": 2,
            "advance": 2,
            "param_base": layout.param_index_bits,
        }
    )


class Granules(wiring.Component):
    """Turns elements into granules of ``granule_bytes(config)`` bytes, one per cycle.

    `job` stays valid until the last granule of its last element has left its place here; then it
    is taken. Requantised granules come `Requantizer` stages later than others, in order.
    `reads_params` says that an element is here whose parameters were not used yet.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        layout = config.layout
        self.lanes = granule_bytes(config)
        super().__init__(
            {
                "job": In(stream.Signature(job_layout(config))),
                "element": In(stream.Signature(8 * layout.acc_bytes)),
                "granule": Out(stream.Signature(8 * self.lanes)),
                "param_read": Out(
                    ReadPort(address_bits=layout.param_index_bits, data_bits=8 * layout.param_bytes)
                ),
                "reads_params": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.requantizer = requantizer = Requantizer(self.lanes)
        job = self.job.payload
        advance, move = Signal(), Signal()
        plain_valid, plain = Signal(), Signal(8 * self.lanes, reset_less=True)
        waiting = Signal()
        m.d.comb += [
            advance.eq(~self.granule.valid | self.granule.ready),
            # Others wait until no requantised granule is under way.
            move.eq(
                self.job.valid
                & self.element.valid
                & advance
                & (job.requant | ~(waiting | requantizer.busy))
            ),
            self.reads_params.eq(self.job.valid | waiting),
            self.idle.eq(~self.job.valid & ~waiting & ~requantizer.busy & ~plain_valid),
        ]
        place, entry = self._count(m, move)

        # The lanes of this granule, and which quarter of them in the 32-bit form.
        group = Mux(job.wide, place[2:], place)
        lanes = Signal(LANE * self.lanes)
        m.d.comb += lanes.eq(self.element.payload.word_select(group, len(lanes)))
        low_bytes = Cat(lanes.word_select(n, LANE)[:8] for n in range(self.lanes))
        with m.If(advance):
            m.d.sync += [plain_valid.eq(move & ~job.requant), waiting.eq(move & job.requant)]
        with m.If(move & ~job.requant):
            quarter = lanes.word_select(place[:2], 8 * self.lanes)
            m.d.sync += plain.eq(Mux(job.wide, quarter, low_bytes))

        # Requantisation: the lanes wait one cycle for their parameters.
        acc, rounding = Signal.like(lanes, reset_less=True), Signal(2, reset_less=True)
        part = Signal.like(place, reset_less=True)
        with m.If(move & job.requant):
            m.d.sync += [acc.eq(lanes), part.eq(place), rounding.eq(job.rounding)]
        m.d.comb += [
            self.param_read.en.eq(move & job.requant & (place == 0)),
            self.param_read.address.eq(entry),
            requantizer.enable.eq(advance),
            requantizer.valid.eq(waiting),
            requantizer.rounding.eq(rounding),
            requantizer.acc.eq(acc),
            requantizer.params.eq(self._params(part)),
        ]
        m.d.comb += [
            self.granule.valid.eq(plain_valid | requantizer.out_valid),
            self.granule.payload.eq(Mux(requantizer.out_valid, requantizer.y, plain)),
        ]
        return m

    def _count(self, m: Module, move: Value) -> tuple[Signal, Value]:
        """The granule's place in its element, and the element's parameter entry."""
        layout, job = self.config.layout, self.job.payload
        groups = layout.out_bytes // self.lanes
        place = Signal(range(groups * QUARTERS))
        column, done = Signal(16), Signal(layout.acc_index_bits + 1)
        later, entry = Signal(), Signal(layout.param_index_bits, reset_less=True)
        last_place = place == Mux(job.wide, groups * QUARTERS - 1, groups - 1)
        row_ends, job_ends = column + 1 == job.x_size, done + 1 == job.count
        now = Mux(later, entry, job.param_base)
        step = (job.advance == Advance.ELEMENT) | ((job.advance == Advance.ROW) & row_ends)
        m.d.comb += [
            self.element.ready.eq(move & last_place),
            self.job.ready.eq(move & last_place & job_ends),
        ]
        with m.If(move):
            m.d.sync += place.eq(Mux(last_place, 0, place + 1))
        with m.If(self.element.ready):
            m.d.sync += [
                column.eq(Mux(row_ends | job_ends, 0, column + 1)),
                done.eq(Mux(job_ends, 0, done + 1)),
                later.eq(~job_ends),
                entry.eq(now + step),
            ]
        return place, now

    def _params(self, part: Value) -> Value:
        """The parameters of a granule's lanes; with a batch, the rows share theirs."""
        block, entry = self.config.block, self.param_read.data
        if self.lanes >= block:
            return entry.replicate(self.lanes // block)
        per_block = (block // self.lanes).bit_length() - 1
        return entry.word_select(part[:per_block], len(entry) * self.lanes // block)
