"""Carries out LOADs: DRAM to on-chip memories, with padding.

    command ─► LoadIssue ─► read.request
                   │ rows              read.valid, data
                   ▼                          │
               BeatCursor ◄───────────────────┘
                   │ place of each beat
                   ▼
    PadFiller ─► sinks ─► memories        CommandSlots ─► done

Addresses of later commands are issued while data of earlier ones arrive. A command whose on-chip
range shares elements with an unfinished one waits, since padding could overtake data or be
overtaken by them; all others overlap freely.
"""

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bus.axi import ReadClient
from vitral.hw.core.addressing import Limits, clamped_bits
from vitral.hw.core.beats import BeatCursor
from vitral.hw.core.interfaces import Fault, LoadCommand, Ticket, WritePort
from vitral.hw.core.load_issue import PADDING_JOBS, LoadIssue
from vitral.hw.core.load_plan import LoadPlan
from vitral.hw.core.pads import PAD_VALUE_BITS, PadFiller
from vitral.hw.core.scratchpad import BeatWritePort
from vitral.hw.core.sinks import AccSink, ScratchpadSink
from vitral.hw.core.slots import CommandSlots
from vitral.isa import Cause, Memory

__all__ = ["LoadEngine"]

_PAD_BITS = {Memory.INP: 8, Memory.WGT: 8, Memory.ACC: PAD_VALUE_BITS}


class LoadEngine(wiring.Component):
    """Executes LOADs of the given memories, in order, at the bus's rate.

    A command's first burst is offered two cycles after it was taken. Beats are written as they
    come; padding fills the cycles in which data leave the memory's port free. `done` gives the
    tickets in command order after the last write. Commands with `x_size` or `y_size` 0 only
    hand their ticket through, in order.

    Parameters
    ----------
    memories
        The memories served; ACC_8BIT comes together with ACC.
    depth
        Commands in flight, a power of two.

    Ports
    -----
    command, done
        Streams of `LoadCommand` and, in the same order, of their tickets.
    read
        `ReadClient`.
    base_<memory>, limits
        Clamped base addresses and limits.
    write_<memory>
        `BeatWritePort` of each memory; `WritePort` of whole elements for ACC.
    pad_inp, pad_wgt, pad_acc
        Pad registers, sampled with the command.
    fault
        SRAM_BOUNDS, DRAM_BOUNDS (the engine stops before that command or row) or BUS_READ.
    waiting
        All that is left to do is to wait for DRAM.
    busy
        A command is in flight or its ticket has not been taken.
    """

    def __init__(
        self,
        config: CoreConfig,
        memories: Sequence[Memory] = (Memory.INP, Memory.WGT),
        *,
        depth: int = 8,
    ) -> None:
        self._plan = LoadPlan(config, memories, depth)
        members = {
            "command": In(stream.Signature(LoadCommand)),
            "done": Out(stream.Signature(Ticket)),
            "read": Out(ReadClient(config)),
            "limits": In(Limits(config)),
            "fault": Out(Fault()),
            "waiting": Out(1),
            "busy": Out(1),
        }
        for memory, geometry in zip(self._plan.memories, self._plan.geometries, strict=True):
            name = memory.name.lower()
            members[f"base_{name}"] = In(clamped_bits(config))
            if memory in _PAD_BITS:
                members[f"pad_{name}"] = In(_PAD_BITS[memory])
            if memory not in (Memory.ACC, Memory.ACC_8BIT):
                members[f"write_{name}"] = Out(BeatWritePort(geometry))
        if Memory.ACC in memories:
            layout = config.layout
            members["write_acc"] = Out(
                WritePort(
                    row_bits=layout.acc_index_bits,
                    elements=1,
                    element_bits=layout.acc_bytes * 8,
                )
            )
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        plan = self._plan
        m.submodules.issue = issue = LoadIssue(plan)
        m.submodules.slots = slots = CommandSlots(
            depth=plan.depth, target_bits=plan.number_bits, element_bits=plan.element_bits
        )
        m.submodules.pads = pads = PadFiller(
            target_bits=plan.number_bits,
            element_bits=plan.element_bits,
            slot_bits=plan.slot_bits,
        )
        m.submodules.cursor = cursor = BeatCursor(
            plan.geometries, plan.serial, slot_bits=plan.slot_bits
        )
        wiring.connect(m, issue.rows, cursor.rows)
        wiring.connect(m, wiring.flipped(self.done), slots.done)

        self._command(m, issue, slots, pads)
        beat, error = self._receive(m, issue, cursor)
        self._write(m, cursor, pads, beat)
        self._complete(m, slots, cursor, pads)
        self._report(m, issue, slots, cursor, pads, error)
        return m

    def _command(self, m: Module, issue: LoadIssue, slots: CommandSlots, pads: PadFiller) -> None:
        """Commands with their pad values to the issue side, its padding to the filler."""
        plan = self._plan
        command = self.command
        with m.If(command.p.pad_value):
            with m.Switch(command.p.memory):
                for memory in plan.memories:
                    register = Memory.ACC if memory is Memory.ACC_8BIT else memory
                    if register in _PAD_BITS:
                        with m.Case(memory):
                            value = getattr(self, f"pad_{register.name.lower()}")
                            m.d.comb += issue.pad.eq(value)
        m.d.comb += [
            issue.command.valid.eq(command.valid),
            issue.command.p.eq(command.p),
            command.ready.eq(issue.command.ready),
            issue.limits.low.eq(self.limits.low),
            issue.limits.high.eq(self.limits.high),
            slots.claim.eq(issue.claim),
            slots.admit.eq(issue.admit),
            slots.ticket.eq(issue.ticket),
            slots.data_due.eq(issue.data_due),
            slots.pads_due.eq(issue.pads_due),
            issue.conflict.eq(slots.conflict),
            issue.free.eq(slots.free),
            issue.slot.eq(slots.slot),
        ]
        for number, memory in enumerate(plan.memories):
            m.d.comb += issue.bases[number].eq(getattr(self, f"base_{memory.name.lower()}"))

        m.submodules.padding = fifo = SyncFIFO(
            width=len(issue.padding.p.as_value()), depth=PADDING_JOBS
        )
        m.d.comb += [
            fifo.w_en.eq(issue.padding.valid),
            fifo.w_data.eq(issue.padding.p),
            issue.padding.ready.eq(fifo.w_rdy),
            pads.padding.valid.eq(fifo.r_rdy),
            pads.padding.p.eq(fifo.r_data),
            fifo.r_en.eq(pads.padding.ready),
        ]

    def _receive(self, m: Module, issue: LoadIssue, cursor: BeatCursor) -> tuple[Signal, Signal]:
        """Requests out, beats and their error marks in."""
        request = self.read.request
        beat = Signal(self._plan.config.data_bits)
        error = Signal()
        m.d.comb += request.p.eq(issue.bursts.p)
        if self._plan.buffer_beats:
            self._buffer(m, issue, cursor, beat, error)
        else:
            m.d.comb += [
                request.valid.eq(issue.bursts.valid),
                issue.bursts.ready.eq(request.ready),
                cursor.beat.eq(self.read.valid),
                beat.eq(self.read.data),
                error.eq(self.read.error),
            ]
        return beat, error

    def _buffer(
        self, m: Module, issue: LoadIssue, cursor: BeatCursor, beat: Signal, error: Signal
    ) -> None:
        """Holds beats for memories that cannot keep up; requests wait until there is room."""
        plan = self._plan
        request = self.read.request
        m.submodules.buffer = buffer = SyncFIFOBuffered(
            width=plan.config.data_bits + 1, depth=plan.buffer_beats
        )
        reserved = Signal(range(plan.buffer_beats + 1))
        room = Signal()
        asked = Mux(request.valid & request.ready, request.p.len + 1, 0)
        m.d.comb += [
            room.eq(reserved + issue.bursts.p.len < plan.buffer_beats),
            request.valid.eq(issue.bursts.valid & room),
            issue.bursts.ready.eq(request.ready & room),
            buffer.w_en.eq(self.read.valid),
            buffer.w_data.eq(Cat(self.read.data, self.read.error)),
            cursor.beat.eq(buffer.r_rdy),
            Cat(beat, error).eq(buffer.r_data),
            buffer.r_en.eq(cursor.take),
        ]
        m.d.sync += reserved.eq(reserved + asked - cursor.take)

    def _write(self, m: Module, cursor: BeatCursor, pads: PadFiller, beat: Signal) -> None:
        """One sink per on-chip memory."""
        plan = self._plan
        row = cursor.row
        for number, memory in enumerate(plan.memories):
            if memory is Memory.ACC_8BIT:
                continue
            name = memory.name.lower()
            mine = Signal(name=f"{name}_beat")
            m.d.comb += mine.eq(cursor.beat & (row.memory == number))
            if memory is Memory.ACC:
                octets = plan.memories.index(Memory.ACC_8BIT)
                sink = AccSink(plan.config, plan.geometries[number], plan.geometries[octets])
                as_bytes = cursor.beat & (row.memory == octets)
                m.d.comb += [sink.beat.eq(mine | as_bytes), sink.bytes.eq(as_bytes)]
            else:
                sink = ScratchpadSink(plan.geometries[number])
                m.d.comb += [sink.beat.eq(mine), sink.left.eq(row.left)]
            m.submodules[f"{name}_sink"] = sink
            wiring.connect(m, wiring.flipped(getattr(self, f"write_{name}")), sink.write)
            m.d.comb += [
                sink.data.eq(beat),
                sink.position.eq(row.position),
                sink.head.eq(row.head),
                sink.pad.eq(pads.element.valid & (pads.element.p.target == number)),
                sink.pad_element.eq(pads.element.p.element),
                sink.pad_value.eq(pads.element.p.value),
            ]
            with m.If(sink.pad_taken):
                m.d.comb += pads.element.ready.eq(1)

    def _complete(
        self, m: Module, slots: CommandSlots, cursor: BeatCursor, pads: PadFiller
    ) -> None:
        """The final beat completes a command's data; ACC is written a cycle later than others."""
        row = cursor.row
        now = Signal(self._plan.depth)
        later = Signal(self._plan.depth)
        ended = cursor.final << row.slot
        if Memory.ACC in self._plan.memories:
            to_acc = Signal()
            octets = self._plan.memories.index(Memory.ACC_8BIT)
            words = self._plan.memories.index(Memory.ACC)
            m.d.comb += to_acc.eq((row.memory == words) | (row.memory == octets))
            m.d.comb += now.eq(Mux(to_acc, 0, ended))
            m.d.sync += later.eq(Mux(to_acc, ended, 0))
        else:
            m.d.comb += now.eq(ended)
        m.d.comb += [
            slots.data_done.eq(now | later),
            slots.pads_done.eq(pads.done << pads.done_slot),
        ]

    def _report(
        self,
        m: Module,
        issue: LoadIssue,
        slots: CommandSlots,
        cursor: BeatCursor,
        pads: PadFiller,
        error: Signal,
    ) -> None:
        failed = cursor.beat & error
        m.d.comb += [
            slots.row_slot.eq(cursor.row.slot),
            self.busy.eq(slots.busy | issue.busy),
            self.waiting.eq(slots.busy & ~slots.done.valid & ~cursor.beat & ~pads.element.valid),
        ]
        m.d.sync += [
            self.fault.valid.eq(failed | issue.fault.valid),
            self.fault.cause.eq(Mux(failed, Cause.BUS_READ, issue.fault.cause)),
            self.fault.index.eq(Mux(failed, slots.row_index, issue.fault.index)),
        ]
