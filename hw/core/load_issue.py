"""The address side of a load engine: checks commands and asks for their data."""

from amaranth import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitral.hw.bus.axi import burst_stream
from vitral.hw.bus.bursts import BurstSplitter
from vitral.hw.core.addressing import Limits, clamped_bits, element_shift
from vitral.hw.core.beats import beat_row_layout
from vitral.hw.core.interfaces import Fault, LoadCommand, Ticket
from vitral.hw.core.load_plan import LoadPlan
from vitral.hw.core.pads import PAD_VALUE_BITS, padding_layout
from vitral.hw.core.rows import RowWalker
from vitral.hw.core.slots import range_layout
from vitral.isa import Cause

__all__ = ["LoadIssue"]

PADDING_JOBS = 4
SIDE_BITS = 17
"""Width of a side of the padded area, in elements."""


class LoadIssue(wiring.Component):
    """Turns LOAD commands into bursts, rows to expect, and padding.

    Cycle 0 takes the command; cycle 1 checks its on-chip range, enters it into the slots and
    offers the first row; cycle 2 offers the first burst. Then one row and one burst per cycle.

    Ports
    -----
    command
        Stream of `LoadCommand`; `pad` is the pad value that holds for it.
    bases
        Clamped base address of each of the plan's memories.
    bursts, rows, padding
        Bursts to read; the rows in their order (`beat_row_layout`), each before its first burst
        can be answered; padding to be filled (`padding_layout`).
    claim, conflict, free, slot, admit, ticket, data_due, pads_due
        To `CommandSlots`.
    fault
        SRAM_BOUNDS or DRAM_BOUNDS; nothing more of that command is issued.
    busy
        A command has not been issued completely.
    """

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        config = plan.config
        self._padding = padding_layout(plan.number_bits, plan.element_bits, plan.slot_bits)
        super().__init__(
            {
                "command": In(stream.Signature(LoadCommand)),
                "pad": In(PAD_VALUE_BITS),
                "bases": In(clamped_bits(config)).array(len(plan.memories)),
                "limits": In(Limits(config)),
                "bursts": Out(burst_stream(config)),
                "rows": Out(stream.Signature(beat_row_layout(plan.geometries, plan.slot_bits))),
                "padding": Out(stream.Signature(self._padding)),
                "claim": Out(range_layout(plan.number_bits, plan.element_bits)),
                "conflict": In(1),
                "free": In(1),
                "slot": In(plan.slot_bits),
                "admit": Out(1),
                "ticket": Out(Ticket),
                "data_due": Out(1),
                "pads_due": Out(1),
                "fault": Out(Fault()),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        plan = self._plan
        m.submodules.walker = walker = RowWalker(plan.config, count_bits=plan.element_bits)
        m.submodules.splitter = splitter = BurstSplitter(
            plan.config,
            count_bits=plan.beat_count_bits,
            burst_beats=plan.buffer_beats // 2 or None,
        )
        wiring.connect(m, wiring.flipped(self.bursts), splitter.burst)
        m.d.comb += [
            walker.limits.low.eq(self.limits.low),
            walker.limits.high.eq(self.limits.high),
        ]

        number = Signal(plan.number_bits)
        pending = Signal()
        self._take(m, walker, number, pending)
        element = self._admit(m, walker, number, pending)
        self._send_rows(m, walker, splitter, number, element)
        m.d.comb += self.busy.eq(pending | walker.busy | splitter.busy)
        return m

    def _take(self, m: Module, walker: RowWalker, number: Signal, pending: Signal) -> None:
        """Cycle 0: hands the DRAM side of a command to the walker."""
        plan = self._plan
        command = self.command.p
        area = walker.area
        empty = Signal()
        accept = Signal()
        chosen = Signal(plan.number_bits)
        shifts = Array(Const(element_shift(plan.config, memory), 4) for memory in plan.memories)
        bases = Array(self.bases)
        m.d.comb += [
            chosen.eq(plan.number_of(command.memory)),
            empty.eq((command.x_size == 0) | (command.y_size == 0)),
            self.command.ready.eq(~pending & area.ready),
            accept.eq(self.command.valid & self.command.ready),
            area.valid.eq(accept & ~empty),
            area.p.address.eq(bases[chosen] + (command.dram_base << shifts[chosen])),
            area.p.shift.eq(shifts[chosen]),
            area.p.y_size.eq(command.y_size),
            area.p.x_size.eq(command.x_size),
            area.p.x_stride.eq(command.x_stride),
            area.p.joinable.eq((command.x_pad_0 == 0) & (command.x_pad_1 == 0)),
        ]
        with m.If(accept):
            m.d.sync += [
                number.eq(chosen),
                self.ticket.eq(command.ticket),
                self.data_due.eq(~empty),
            ]

    def _admit(self, m: Module, walker: RowWalker, number: Signal, pending: Signal) -> Signal:
        """Cycle 1: checks the on-chip range and enters the command into the slots.

        Returns the element at which the data of the current row begin.
        """
        plan = self._plan
        command = self.command.p
        height = Signal(SIDE_BITS)
        width = Signal(SIDE_BITS)
        total = Signal(2 * SIDE_BITS)
        base = Signal(16)
        element = Signal(plan.element_bits)
        padding = Signal(self._padding)
        depths = Array(Const(geometry.depth, 17) for geometry in plan.geometries)
        end = base + total
        fits = Signal()
        padded = Signal()
        m.d.comb += [
            height.eq(command.y_pad_0 + command.y_size + command.y_pad_1),
            width.eq(command.x_pad_0 + command.x_size + command.x_pad_1),
            fits.eq(~self.data_due | (end <= depths[number])),
            self.claim.target.eq(padding.target),
            self.claim.begin.eq(base),
            self.claim.end.eq(end),
            self.pads_due.eq(self.data_due & padded),
            self.padding.p.eq(padding),
            self.padding.p.slot.eq(self.slot),
            self.padding.valid.eq(self.admit & self.pads_due),
            self.admit.eq(
                pending
                & fits
                & self.free
                & (~self.data_due | (~self.conflict & (self.padding.ready | ~padded)))
            ),
            walker.hold.eq(pending & ~self.admit),
        ]
        with m.If(self.admit):
            m.d.sync += pending.eq(0)
        with m.If(walker.row.valid & walker.row.ready):
            m.d.sync += element.eq(element + padding.width)
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [
                pending.eq(1),
                total.eq(height * width),
                base.eq(command.sram_base),
                element.eq(command.sram_base + command.y_pad_0 * width + command.x_pad_0),
                padding.target.eq(plan.target_of(command.memory)),
                padding.begin.eq(command.sram_base),
                padding.width.eq(width),
                padding.value.eq(self.pad),
                padded.eq((height != command.y_size) | (width != command.x_size)),
            ]
            for name in ("y_size", "x_size", "y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"):
                m.d.sync += padding[name].eq(command[name])
        m.d.comb += [
            self.fault.valid.eq((pending & ~fits) | walker.out_of_bounds),
            self.fault.cause.eq(Mux(pending & ~fits, Cause.SRAM_BOUNDS, Cause.DRAM_BOUNDS)),
            self.fault.index.eq(self.ticket.index),
        ]
        return element

    def _send_rows(
        self,
        m: Module,
        walker: RowWalker,
        splitter: BurstSplitter,
        number: Signal,
        element: Signal,
    ) -> None:
        """Gives each row to the splitter and to the data side."""
        plan = self._plan
        m.submodules.rows_fifo = fifo = SyncFIFO(
            width=len(self.rows.p.as_value()), depth=max(2, plan.config.outstanding)
        )
        slot = Signal(plan.slot_bits)
        row = Signal.like(self.rows.p)
        beats = Signal(plan.beat_count_bits)
        with m.If(self.admit):
            m.d.sync += slot.eq(self.slot)
        with m.Switch(number):
            for index, geometry in enumerate(plan.geometries):
                with m.Case(index):
                    self._place(m, geometry, walker.row.p, element, row, beats)
        m.d.comb += [
            row.memory.eq(number),
            row.slot.eq(Mux(self.admit, self.slot, slot)),
            row.last.eq(walker.row.p.last),
            walker.row.ready.eq(fifo.w_rdy & splitter.run.ready),
            fifo.w_en.eq(walker.row.valid & splitter.run.ready),
            fifo.w_data.eq(row),
            splitter.run.valid.eq(walker.row.valid & fifo.w_rdy),
            splitter.run.p.address.eq(walker.row.p.address),
            splitter.run.p.beats.eq(beats),
            splitter.run.p.last.eq(walker.row.p.last),
            self.rows.valid.eq(fifo.r_rdy),
            self.rows.p.eq(fifo.r_data),
            fifo.r_en.eq(self.rows.ready),
        ]

    def _place(self, m: Module, geometry, source, element: Signal, row, beats: Signal) -> None:
        """The row in units of one memory, and the beats that hold it."""
        shift = geometry.unit_bytes.bit_length() - 1
        head_bits = geometry.beat_units.bit_length() - 1
        head: Value = source.address[shift : shift + head_bits] if head_bits else Const(0, 1)
        m.d.comb += [
            row.head.eq(head),
            row.position.eq((element << geometry.unit_shift) - head),
            row.left.eq((source.count << geometry.unit_shift) + head),
            beats.eq((row.left + (geometry.beat_units - 1)) >> head_bits),
        ]
