"""Cuts accumulator elements into what goes to memory: low bytes, requantised bytes, or int32."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import PARAM_LANE_BYTES, CoreConfig
from vitral.hw.core.interfaces import ReadPort
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
    """Turns elements into granules of `CoreLayout.granule_bytes`, one per cycle.

    `job` stays valid until the last granule of its last element has left its place here; then it
    is taken. Requantised granules come `Requantizer` stages later than others, in order; when the
    requantiser has fewer lanes than they have bytes, one comes in as many cycles as it takes.
    `reads_params` says that an element is here whose parameters were not used yet.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        layout = config.layout
        self.lanes = layout.granule_bytes
        self._steps = layout.granule_bytes // layout.requant_lanes
        super().__init__(
            {
                "job": In(stream.Signature(job_layout(config))),
                "element": In(stream.Signature(8 * layout.acc_bytes)),
                "granule": Out(stream.Signature(8 * self.lanes)),
                "param_read": Out(
                    ReadPort(
                        address_bits=layout.param_row_bits, data_bits=8 * layout.param_row_bytes
                    )
                ),
                "reads_params": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        requant_lanes = self.config.layout.requant_lanes
        m.submodules.requantizer = requantizer = Requantizer(requant_lanes)
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
        step_bits = self._steps.bit_length() - 1
        granule = Mux(job.requant, place[step_bits:], place) if step_bits else place
        group = Mux(job.wide, place[2:], granule)
        lanes = Signal(LANE * self.lanes)
        m.d.comb += lanes.eq(self.element.payload.word_select(group, len(lanes)))
        low_bytes = Cat(lanes.word_select(n, LANE)[:8] for n in range(self.lanes))
        with m.If(advance):
            m.d.sync += [plain_valid.eq(move & ~job.requant), waiting.eq(move & job.requant)]
        with m.If(move & ~job.requant):
            quarter = lanes.word_select(place[:2], 8 * self.lanes)
            m.d.sync += plain.eq(Mux(job.wide, quarter, low_bytes))

        # Requantisation: the lanes wait one cycle for their parameters.
        acc, rounding = Signal(LANE * requant_lanes, reset_less=True), Signal(2, reset_less=True)
        part = Signal.like(place, reset_less=True)
        with m.If(move & job.requant):
            used = lanes.word_select(place[:step_bits], len(acc)) if step_bits else lanes
            m.d.sync += [acc.eq(used), part.eq(place), rounding.eq(job.rounding)]
        m.d.comb += [
            self.param_read.en.eq(move & job.requant),
            self.param_read.address.eq(Cat(self._param_place(place, high=True), entry)),
            requantizer.enable.eq(advance),
            requantizer.valid.eq(waiting),
            requantizer.rounding.eq(rounding),
            requantizer.acc.eq(acc),
            requantizer.params.eq(self._params(part)),
        ]
        valid, requantised = self._whole(m, requantizer)
        m.d.comb += [
            self.granule.valid.eq(plain_valid | valid),
            self.granule.payload.eq(Mux(valid, requantised, plain)),
        ]
        return m

    def _whole(self, m: Module, requantizer: Requantizer) -> tuple[Value, Value]:
        """The requantised granule, and whether it is there: with its last lanes."""
        if self._steps == 1:
            return requantizer.out_valid, requantizer.y
        kept = Signal(8 * (self.lanes - requantizer.lanes), reset_less=True)
        step = Signal(range(self._steps))
        whole = Cat(kept, requantizer.y)
        with m.If(requantizer.enable & requantizer.out_valid):
            m.d.sync += [kept.eq(whole[len(requantizer.y) :]), step.eq(step + 1)]
        return requantizer.out_valid & (step == self._steps - 1), whole

    def _count(self, m: Module, move: Value) -> tuple[Signal, Value]:
        """The granule's place in its element, and the element's parameter entry."""
        layout, job = self.config.layout, self.job.payload
        groups = layout.out_bytes // self.lanes
        steps = groups * self._steps
        place = Signal(range(max(steps, groups * QUARTERS)))
        column, done = Signal(16), Signal(layout.acc_index_bits + 1)
        later, entry = Signal(), Signal(layout.param_index_bits, reset_less=True)
        narrow_places = Mux(job.requant, steps - 1, groups - 1) if steps > groups else groups - 1
        last_place = place == Mux(job.wide, groups * QUARTERS - 1, narrow_places)
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

    def _param_place(self, place: Value, *, high: bool) -> Value:
        """Where the parameters of a step's lanes are: the row of their entry, or the place in it.

        With a batch, the rows of an element share theirs.
        """
        layout, block = self.config.layout, self.config.block
        inside = (max(1, block // layout.requant_lanes)).bit_length() - 1
        rows = layout.param_rows.bit_length() - 1
        return place[inside - rows : inside] if high else place[: inside - rows]

    def _params(self, part: Value) -> Value:
        """The parameters of a step's lanes."""
        row, lanes = self.param_read.data, self.config.layout.requant_lanes
        wanted = 8 * PARAM_LANE_BYTES * lanes
        if wanted >= len(row):
            return row.replicate(wanted // len(row))
        return row.word_select(self._param_place(part, high=False), wanted)
