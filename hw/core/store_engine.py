"""Carries out STOREs: granules from the store stage to DRAM.

    command ─► RowWalker ─► BurstSplitter ─► AW
                   │ rows       │ lengths          ┌─► done
                   ▼            ▼                  │
    data ────► GranulePacker ─► W     B ─► order of bursts

A burst's address may go out before its data are there: they come from the core's own memory
after bounded waits. Bursts of later commands are issued before earlier ones are acknowledged.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bus.axi import RESP_ERROR_BIT, WriteChannel
from vitral.hw.bus.bursts import BurstSplitter
from vitral.hw.core.addressing import Limits, clamped_bits, element_shift
from vitral.hw.core.interfaces import Fault, StoreCommand, Ticket, granule_bytes
from vitral.hw.core.packer import GranulePacker
from vitral.hw.core.rows import RowWalker
from vitral.isa import Cause, Memory

__all__ = ["StoreEngine"]


def _log2(value: int) -> int:
    return value.bit_length() - 1


def _order_layout() -> data.StructLayout:
    """A burst, or a command without any, whose end the engine waits for in order."""
    return data.StructLayout({"ticket": Ticket, "burst": 1, "last": 1})


def _beat_layout(config: CoreConfig) -> data.StructLayout:
    return data.StructLayout({"data": config.data_bits, "strb": config.data_bits // 8})


class StoreEngine(wiring.Component):
    """Executes STOREs in order, a granule per cycle.

    A command's first burst is offered two cycles after it was taken. `done` gives the tickets in
    command order, each after the last B of that command. Commands with a size of 0 only hand
    their ticket through, in order.

    Ports
    -----
    command, done
        Streams of `StoreCommand` and, in the same order, of their tickets.
    data
        Stream of granules (`granule_bytes`), element by element, row after row.
    channel
        The AXI write channel.
    base_out, base_acc, limits
        Clamped base addresses of the 8-bit and the 32-bit form, and the limits.
    stop
        While 1, no new burst starts, and the beats still owed are sent with all strobes off.
    fault
        DRAM_BOUNDS (nothing of that row is issued) or BUS_WRITE.
    pending
        Bursts are in flight.
    waiting
        All that is left to do is to wait for the memory: it takes no beat or owes a response.
    busy
        A command is in flight or its ticket has not been taken.
    beat
        A W beat was taken in this cycle.
    """

    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        layout = config.layout
        self._granule = granule_bytes(config)
        self._lanes = layout.beat_bytes // self._granule
        self._shifts = tuple(
            element_shift(config, memory) - _log2(self._granule)
            for memory in (Memory.OUT, Memory.ACC)
        )
        self._element_bits = layout.acc_index_bits + 1
        self._count_bits = self._element_bits + self._shifts[1] + 1
        super().__init__(
            {
                "command": In(stream.Signature(StoreCommand)),
                "data": In(stream.Signature(8 * self._granule)),
                "done": Out(stream.Signature(Ticket)),
                "channel": Out(WriteChannel(config)),
                "base_out": In(clamped_bits(config)),
                "base_acc": In(clamped_bits(config)),
                "limits": In(Limits(config)),
                "stop": In(1),
                "fault": Out(Fault()),
                "pending": Out(1),
                "waiting": Out(1),
                "busy": Out(1),
                "beat": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        depth = max(2, self._config.outstanding)
        m.submodules.walker = walker = RowWalker(self._config, count_bits=self._element_bits)
        m.submodules.splitter = splitter = BurstSplitter(self._config, count_bits=self._count_bits)
        m.submodules.order = order = SyncFIFO(
            width=len(Signal(_order_layout()).as_value()), depth=depth
        )
        m.submodules.lengths = lengths = SyncFIFO(width=len(splitter.burst.p.len), depth=depth)

        entering = Signal(_order_layout())
        ticket = Signal(Ticket)
        wide = Signal()
        beats = stream.Signature(_beat_layout(self._config)).create(path=("beats",))
        self._take(m, walker, splitter, order, ticket, wide, entering)
        self._send_rows(m, walker, splitter, wide, beats)
        self._send_bursts(m, splitter, order, lengths, ticket, entering)
        self._send_beats(m, lengths, beats)
        self._acknowledge(m, order, walker, ticket)
        m.d.comb += [
            self.busy.eq(order.r_rdy | splitter.busy | walker.busy),
            self.waiting.eq(self.busy & ~self.done.valid & ~self.beat),
        ]
        return m

    def _take(
        self,
        m: Module,
        walker: RowWalker,
        splitter: BurstSplitter,
        order: SyncFIFO,
        ticket: Signal,
        wide: Signal,
        entering: data.View,
    ) -> None:
        """Commands to the walker; empty ones straight into the order, behind all bursts."""
        command = self.command.p
        area = walker.area
        empty = Signal()
        passes = Signal()
        base = Mux(command.wide, self.base_acc, self.base_out)
        shifts = [element_shift(self._config, memory) for memory in (Memory.OUT, Memory.ACC)]
        offset = Mux(command.wide, command.dram_base << shifts[1], command.dram_base << shifts[0])
        m.d.comb += [
            walker.limits.low.eq(self.limits.low),
            walker.limits.high.eq(self.limits.high),
            empty.eq((command.x_size == 0) | (command.y_size == 0)),
            passes.eq(empty & ~walker.busy & ~splitter.busy & order.w_rdy),
            self.command.ready.eq(Mux(empty, passes, area.ready)),
            area.valid.eq(self.command.valid & ~empty),
            area.p.address.eq(base + offset),
            area.p.shift.eq(Mux(command.wide, shifts[1], shifts[0])),
            area.p.y_size.eq(command.y_size),
            area.p.x_size.eq(command.x_size),
            area.p.x_stride.eq(command.x_stride),
            area.p.joinable.eq(1),
        ]
        with m.If(area.valid & area.ready):
            m.d.sync += [ticket.eq(command.ticket), wide.eq(command.wide)]
        with m.If(self.command.valid & passes):
            m.d.comb += [
                order.w_en.eq(1),
                entering.ticket.eq(command.ticket),
                entering.burst.eq(0),
                entering.last.eq(1),
            ]

    def _send_rows(
        self, m: Module, walker: RowWalker, splitter: BurstSplitter, wide: Signal, beats
    ) -> None:
        """Rows to the splitter, granules to beats."""
        row = walker.row
        run = splitter.run
        lane_bits = _log2(self._lanes)
        unit = _log2(self._granule)
        head = row.p.address[unit : unit + lane_bits] if lane_bits else Const(0, 1)
        left = Signal(self._count_bits)
        room = Signal(init=1)
        granules = [row.p.count << shift for shift in self._shifts]
        m.d.comb += [
            left.eq(Mux(wide, granules[1], granules[0]) + head),
            row.ready.eq(room & run.ready),
            run.valid.eq(row.valid & room),
            run.p.address.eq(row.p.address),
            run.p.beats.eq((left + (self._lanes - 1)) >> lane_bits),
            run.p.last.eq(row.p.last),
        ]
        if self._lanes > 1:
            self._pack(m, row.valid & run.ready, Cat(head, left), room, beats)
        else:
            m.d.comb += [
                beats.valid.eq(self.data.valid),
                beats.p.data.eq(self.data.p),
                beats.p.strb.eq(-1),
                self.data.ready.eq(beats.ready),
            ]

    def _pack(self, m: Module, push: Value, row: Value, room: Signal, beats) -> None:
        """Granules smaller than a beat: the packer, and the rows it has to follow."""
        m.submodules.packer = packer = GranulePacker(
            beat_bytes=self._config.layout.beat_bytes,
            granule_bytes=self._granule,
            count_bits=self._count_bits,
        )
        m.submodules.rows = fifo = SyncFIFO(
            width=len(packer.rows.p.as_value()), depth=max(2, self._config.outstanding)
        )
        m.d.comb += [
            room.eq(fifo.w_rdy),
            fifo.w_en.eq(push),
            fifo.w_data.eq(row),
            packer.rows.valid.eq(fifo.r_rdy),
            packer.rows.p.eq(fifo.r_data),
            fifo.r_en.eq(packer.rows.ready),
            packer.granule.valid.eq(self.data.valid),
            packer.granule.p.eq(self.data.p),
            self.data.ready.eq(packer.granule.ready),
            beats.valid.eq(packer.beat.valid),
            beats.p.eq(packer.beat.p),
            packer.beat.ready.eq(beats.ready),
        ]

    def _send_bursts(
        self,
        m: Module,
        splitter: BurstSplitter,
        order: SyncFIFO,
        lengths: SyncFIFO,
        ticket: Signal,
        entering: data.View,
    ) -> None:
        """Bursts to AW; their lengths to W, and their place in the order."""
        burst = splitter.burst
        aw = self.channel.aw
        issued = Signal(Ticket)
        go = Signal()
        with m.If(splitter.run.valid & splitter.run.ready):
            m.d.sync += issued.eq(ticket)
        m.d.comb += [
            burst.ready.eq((~aw.valid | aw.ready) & order.w_rdy & lengths.w_rdy & ~self.stop),
            go.eq(burst.valid & burst.ready),
            lengths.w_en.eq(go),
            lengths.w_data.eq(burst.p.len),
            order.w_data.eq(entering),
        ]
        with m.If(aw.ready):
            m.d.sync += aw.valid.eq(0)
        with m.If(go):
            m.d.comb += [
                order.w_en.eq(1),
                entering.ticket.eq(issued),
                entering.burst.eq(1),
                entering.last.eq(splitter.final),
            ]
            m.d.sync += [aw.valid.eq(1), aw.p.eq(burst.p)]

    def _send_beats(self, m: Module, lengths: SyncFIFO, beats) -> None:
        """Beats to W, as many as the bursts have; all strobes off while stopping."""
        w = self.channel.w
        sent = Signal(len(lengths.r_data))  # not `like`: a FIFO's output has no reset
        last = Signal()
        free = Signal()
        go = Signal()
        m.d.comb += [
            free.eq((~w.valid | w.ready) & lengths.r_rdy),
            beats.ready.eq(free & ~self.stop),
            go.eq(free & (beats.valid | self.stop)),
            last.eq(sent == lengths.r_data),
            lengths.r_en.eq(go & last),
            self.beat.eq(w.valid & w.ready),
        ]
        with m.If(w.ready):
            m.d.sync += w.valid.eq(0)
        with m.If(go):
            m.d.sync += [
                w.valid.eq(1),
                w.p.last.eq(last),
                w.p.data.eq(beats.p.data),
                w.p.strb.eq(Mux(self.stop, 0, beats.p.strb)),
                sent.eq(Mux(last, 0, sent + 1)),
            ]

    def _acknowledge(self, m: Module, order: SyncFIFO, walker: RowWalker, ticket: Signal) -> None:
        """Takes every B at once, and answers for the commands in their order."""
        depth = max(2, self._config.outstanding)
        m.submodules.answers = answers = SyncFIFO(width=1, depth=depth)
        oldest = Signal(_order_layout())
        answered = Signal()
        in_flight = Signal(range(depth + 1))
        failed = Signal()
        began = self.channel.aw.valid & self.channel.aw.ready
        m.d.comb += [
            answers.w_en.eq(self.channel.bvalid),
            answers.w_data.eq(self.channel.bresp[RESP_ERROR_BIT]),
            oldest.eq(order.r_data),
            answered.eq(order.r_rdy & (answers.r_rdy | ~oldest.burst)),
            self.done.valid.eq(answered & oldest.last),
            self.done.p.eq(oldest.ticket),
            order.r_en.eq(answered & (self.done.ready | ~oldest.last)),
            answers.r_en.eq(order.r_en & oldest.burst),
            failed.eq(answered & oldest.burst & answers.r_data),
            self.pending.eq(self.channel.aw.valid | (in_flight != 0)),
        ]
        m.d.sync += [
            in_flight.eq(in_flight + began - self.channel.bvalid),
            self.fault.valid.eq(failed | walker.out_of_bounds),
            self.fault.cause.eq(Mux(failed, Cause.BUS_WRITE, Cause.DRAM_BOUNDS)),
            self.fault.index.eq(Mux(failed, oldest.ticket.index, ticket.index)),
        ]
