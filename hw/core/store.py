"""The store stage: takes instructions in order, feeds the store engine, and moves their tokens."""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from vitral.config import CoreConfig
from vitral.hw.core.acc import AccRead
from vitral.hw.core.decode import select
from vitral.hw.core.gather import Gather
from vitral.hw.core.granules import Granules, job_layout
from vitral.hw.core.interfaces import (
    INDEX_BITS,
    WAIT_BITS,
    Fault,
    InsnWord,
    LoadCommand,
    ReadPort,
    StoreCommand,
    Ticket,
    TokenPort,
    Wait,
    granule_bytes,
)
from vitral.hw.core.retire import Completion, Retirement
from vitral.isa import Advance, Cause, InstructionSet, Memory, Opcode, Profile

__all__ = ["FLIGHTS", "StoreStage"]

FLIGHTS = 16
"""STOREs whose acknowledgement may be outstanding."""

JOBS = 2
"""STOREs whose elements may be on the way at once."""

_FLAGS = ("is_store", "is_load", "pop", "wide", "requant", "bad_sram", "bad_param")
_DECODED = data.StructLayout({**dict.fromkeys(_FLAGS, 1), "area": 32})


class StoreStage(wiring.Component):
    """Executes STORE (low bytes, requantised, 32-bit) and LOAD PARAM.

    An instruction is looked at for one cycle, to measure it, and begun when its token is there and

    * STORE: the store engine takes its command and the reader of ACC its range, which is while
      the one before is still on its way to memory;
    * LOAD PARAM: no STORE before it needs parameters any more; the next instruction waits for
      its end;
    * a STORE or LOAD of nothing: at once.

    Instructions retire in order, a STORE when `store_done` says that the memory has
    acknowledged it. A range past ACC or past the parameters raises `fault` instead. `clear`
    drops all state but the memories' contents.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        layout = config.layout
        super().__init__(
            {
                "insn": In(stream.Signature(InsnWord)),
                "profile": In(1),
                "prev": Out(TokenPort()),
                "acc_read": Out(AccRead(config)),
                "load_command": Out(stream.Signature(LoadCommand)),
                "load_done": In(stream.Signature(Ticket)),
                "param_read": Out(
                    ReadPort(
                        address_bits=layout.param_row_bits, data_bits=8 * layout.param_row_bytes
                    )
                ),
                "store_command": Out(stream.Signature(StoreCommand)),
                "store_data": Out(stream.Signature(8 * granule_bytes(config))),
                "store_done": In(stream.Signature(Ticket)),
                "fault": Out(Fault()),
                "wait": Out(WAIT_BITS),
                "index": Out(INDEX_BITS),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.gather = gather = Gather(self.config)
        m.submodules.granules = granules = Granules(self.config)
        m.submodules.retirement = retirement = Retirement(FLIGHTS)
        m.submodules.jobs = jobs = fifo.SyncFIFO(width=job_layout(self.config).size, depth=JOBS)
        connect(m, gather.acc_read, flipped(self.acc_read))
        connect(m, gather.element, granules.element)
        connect(m, granules.granule, flipped(self.store_data))
        connect(m, granules.param_read, flipped(self.param_read))
        m.d.comb += [
            granules.job.valid.eq(jobs.r_rdy),
            granules.job.payload.eq(jobs.r_data),
            jobs.r_en.eq(granules.job.ready),
        ]

        begin, loading, measured = Signal(), Signal(), Signal()
        insn = self._decode(m, measured)
        m.d.sync += measured.eq(self.insn.valid & ~begin)
        with m.If(begin & insn.is_load):
            m.d.sync += loading.eq(1)
        with m.Elif(self.load_done.valid):
            m.d.sync += loading.eq(0)

        tokens = ~insn.pop | self.prev.available
        offered = self.insn.valid & measured & tokens & ~loading & retirement.begin.ready
        self._begin(m, insn, offered, begin, gather, granules, jobs)
        self._retire(m, insn, begin, retirement)
        streaming = ~(gather.idle & granules.idle & ~jobs.r_rdy)
        self._show(m, insn, retirement, streaming)
        return ResetInserter(self.clear)(m)

    def _field(self, name: str) -> Value:
        return select(self.insn.payload.word, InstructionSet.of(self.config).store, name)

    def _decode(self, m: Module, measured: Value) -> data.View:
        """What the instruction is; sizes and faults hold from the cycle with `measured` on."""
        layout, insn = self.config.layout, Signal(_DECODED)
        opcode, vitral = self._field("opcode"), self.profile == Profile.VITRAL
        x_size, y_size = self._field("x_size"), self._field("y_size")
        something = (x_size != 0) & (y_size != 0)
        area = Signal(len(x_size) + len(y_size), reset_less=True)
        with m.If(~measured):
            m.d.sync += area.eq(x_size * y_size)

        steps = Signal.like(area)
        with m.Switch(self._field("advance")):
            with m.Case(Advance.ROW):
                m.d.comb += steps.eq(y_size - 1)
            with m.Case(Advance.ELEMENT):
                m.d.comb += steps.eq(area - 1)
        m.d.comb += [
            insn.is_store.eq((opcode == Opcode.STORE) & something),
            insn.is_load.eq((opcode == Opcode.LOAD) & something),
            insn.pop.eq(self._field("pop_prev")),
            insn.wide.eq(self._field("memory") == Memory.ACC),
            insn.requant.eq(self._field("requant") & vitral),
            insn.area.eq(area),
            insn.bad_sram.eq(insn.is_store & (self._field("sram_base") + area > layout.acc_depth)),
            insn.bad_param.eq(
                insn.is_store
                & insn.requant
                & (self._field("param_base") + steps >= layout.param_depth)
            ),
        ]
        return insn

    def _begin(
        self,
        m: Module,
        insn: data.View,
        offered: Value,
        begin: Signal,
        gather: Gather,
        granules: Granules,
        jobs: fifo.SyncFIFO,
    ) -> None:
        able, reader = Signal(), gather.range.ready & jobs.w_rdy
        m.d.comb += [
            begin.eq(offered & able),
            self.insn.ready.eq(begin),
            self.prev.take.eq(begin & insn.pop),
            self.fault.cause.eq(Mux(insn.bad_sram, Cause.SRAM_BOUNDS, Cause.PARAM_BOUNDS)),
            self.fault.index.eq(self.insn.payload.index),
            gather.range.valid.eq(begin & insn.is_store),
            jobs.w_en.eq(begin & insn.is_store),
        ]
        with m.If(insn.bad_sram | insn.bad_param):
            m.d.comb += self.fault.valid.eq(offered)
        with m.Elif(insn.is_store):
            m.d.comb += able.eq(self.store_command.ready & reader)
            m.d.comb += self.store_command.valid.eq(offered & reader)
        with m.Elif(insn.is_load):
            m.d.comb += able.eq(self.load_command.ready & ~granules.reads_params)
            m.d.comb += self.load_command.valid.eq(offered & ~granules.reads_params)
        with m.Else():
            m.d.comb += able.eq(1)
        self._fill(m, insn, gather.range.payload, data.View(job_layout(self.config), jobs.w_data))

    def _fill(self, m: Module, insn: data.View, elements: data.View, job: data.View) -> None:
        """The commands to the engines, to the reader and to the cutter."""
        store, load = self.store_command.payload, self.load_command.payload
        for command in (store, load):
            m.d.comb += command.ticket.index.eq(self.insn.payload.index)
        m.d.comb += store.wide.eq(insn.wide)
        for name in ("dram_base", "y_size", "x_size", "x_stride"):
            m.d.comb += store[name].eq(self._field(name))
        load_format = InstructionSet.of(self.config).load
        for name, _ in LoadCommand.as_shape():
            if name not in ("ticket", "pad_value"):
                value = select(self.insn.payload.word, load_format, name)
                m.d.comb += load[name].eq(value)
        m.d.comb += [elements.first.eq(self._field("sram_base")), elements.count.eq(insn.area)]
        m.d.comb += [
            job.count.eq(insn.area),
            job.wide.eq(insn.wide),
            job.requant.eq(insn.requant),
        ]
        for name in ("x_size", "rounding", "advance", "param_base"):
            m.d.comb += job[name].eq(self._field(name))

    def _retire(self, m: Module, insn: data.View, begin: Value, retirement: Retirement) -> None:
        flight = retirement.begin.payload
        load = Mux(insn.is_load, Completion.SECOND, Completion.TURN)
        m.d.comb += [
            retirement.begin.valid.eq(begin),
            flight.index.eq(self.insn.payload.index),
            flight.completion.eq(Mux(insn.is_store, Completion.FIRST, load)),
            flight.push_prev.eq(self._field("push_prev")),
            retirement.completed.eq(Cat(self.store_done.valid, self.load_done.valid)),
            retirement.room_prev.eq(self.prev.room),
            self.prev.give.eq(retirement.give_prev),
            self.store_done.ready.eq(1),
            self.load_done.ready.eq(1),
        ]

    def _show(self, m: Module, insn: data.View, retirement: Retirement, streaming: Value) -> None:
        """The wait code and the number of the current instruction."""
        m.d.comb += self.index.eq(Mux(retirement.valid, retirement.index, self.insn.payload.index))
        refused = self.store_data.valid & ~self.store_data.ready
        with m.If(streaming):
            m.d.comb += self.wait.eq(Mux(refused, Wait.MEMORY, Wait.BUSY))
        with m.Elif(retirement.blocked_prev):
            m.d.comb += self.wait.eq(Wait.PUSH_PREV)
        with m.Elif(retirement.valid):
            m.d.comb += self.wait.eq(Wait.MEMORY)
        with m.Elif(~self.insn.valid):
            m.d.comb += self.wait.eq(Wait.IDLE)
        with m.Elif(insn.pop & ~self.prev.available):
            m.d.comb += self.wait.eq(Wait.POP_PREV)
        with m.Else():
            m.d.comb += self.wait.eq(Wait.BUSY)
