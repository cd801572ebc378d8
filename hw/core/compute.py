"""The compute stage: takes instructions in order, runs them, and moves their tokens."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from vitral.config import CoreConfig
from vitral.hw.core.acc import AccRead
from vitral.hw.core.decode import field_of, select
from vitral.hw.core.execute import Execute
from vitral.hw.core.interfaces import (
    INDEX_BITS,
    WAIT_BITS,
    Fault,
    InsnWord,
    LoadCommand,
    ReadPort,
    Ticket,
    TokenPort,
    Wait,
    WritePort,
)
from vitral.hw.core.loops import Unit, window_layout
from vitral.hw.core.operands import TAPS
from vitral.hw.core.retire import Completion, Retirement
from vitral.isa import (
    UOP_BITS,
    WINDOW_FIELDS,
    ConfigRegister,
    InstructionSet,
    Memory,
    Opcode,
    Profile,
)

__all__ = ["ComputeStage", "FLIGHTS"]

FLIGHTS = 8
"""Instructions in flight at most; the pipelines hold fewer."""

_DECODED = data.StructLayout(
    {
        **dict.fromkeys(("pop_prev", "pop_next", "push_prev", "push_next", "tokens"), 1),
        **dict.fromkeys(("is_loop", "is_load", "is_config", "is_window", "is_finish"), 1),
        "value": 32,
    }
)


class ComputeStage(wiring.Component):
    """Executes GEMM, WINDOW, ALU, LOAD UOP / ACC / ACC_8BIT, CONFIG of this stage, and FINISH.

    An instruction is begun when it is at the head of `insn`, its tokens are there, and

    * GEMM, WINDOW, ALU: no LOAD is under way, and the sequencer takes it, which is while the one
      before drains;
    * LOAD of ACC: the units are idle; of micro-ops: the sequencer is, or reads others;
    * FINISH: all before it have retired and `others_idle`;
    * CONFIG of the window: no element is on its way to the units;
    * another CONFIG, or a LOAD of nothing: at once.

    Instructions retire, and push their tokens, in order, when their last write is in ACC; FINISH
    then pulses `finished`. A LOAD's data come back through `acc_write`. `clear` drops all
    state but the memories' contents.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        layout = config.layout
        super().__init__(
            {
                "insn": In(stream.Signature(InsnWord)),
                "profile": In(1),
                "prev": Out(TokenPort()),
                "next": Out(TokenPort()),
                "uop_read": Out(ReadPort(address_bits=layout.uop_index_bits, data_bits=UOP_BITS)),
                "inp_read": Out(
                    ReadPort(address_bits=layout.inp_index_bits, data_bits=8 * layout.inp_bytes)
                ).array(TAPS),
                "wgt_read": Out(
                    ReadPort(address_bits=layout.wgt_index_bits, data_bits=8 * layout.wgt_bytes)
                ),
                "load_command": Out(stream.Signature(LoadCommand)),
                "load_done": In(stream.Signature(Ticket)),
                "acc_write": In(
                    WritePort(
                        row_bits=layout.acc_index_bits,
                        elements=1,
                        element_bits=8 * layout.acc_bytes,
                    )
                ),
                "acc_read": In(AccRead(config)),
                "pad_acc": Out(32),
                "others_idle": In(1),
                "finished": Out(1),
                "fault": Out(Fault()),
                "wait": Out(WAIT_BITS),
                "index": Out(INDEX_BITS),
                "gemm_active": Out(1),
                "alu_active": Out(1),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.execute = execute = Execute(self.config)
        m.submodules.retirement = retirement = Retirement(FLIGHTS)
        for name in ("uop_read", "wgt_read", "fault"):
            connect(m, getattr(execute, name), flipped(getattr(self, name)))
        for ours, its in zip(self.inp_read, execute.inp_read, strict=True):
            connect(m, its, flipped(ours))
        connect(m, flipped(self.acc_write), execute.load)
        connect(m, flipped(self.acc_read), execute.store)
        m.d.comb += [
            self.gemm_active.eq(execute.gemm_active),
            self.alu_active.eq(execute.alu_active),
        ]

        insn = Signal(_DECODED)
        self._decode(m, insn)
        loads, loading, begin = Signal(range(FLIGHTS + 1)), Signal(), Signal()
        m.d.sync += loads.eq(loads + (begin & insn.is_load) - self.load_done.valid)
        m.d.comb += loading.eq(loads != 0)
        self._begin(m, insn, execute, retirement, loading, begin)
        m.d.comb += self.load_done.ready.eq(1)
        window = Signal(window_layout(self.config))
        m.d.comb += execute.window.eq(window)
        with m.If(begin & insn.is_config):
            self._configure(m, insn, window)

        m.d.comb += [
            retirement.completed.eq(execute.retired | (self.load_done.valid << 1)),
            retirement.room_prev.eq(self.prev.room),
            retirement.room_next.eq(self.next.room),
            self.prev.give.eq(retirement.give_prev),
            self.next.give.eq(retirement.give_next),
            self.finished.eq(retirement.retired & retirement.mark),
        ]
        self._show(m, insn, execute, retirement, loading)
        return ResetInserter(self.clear)(m)

    def _decode(self, m: Module, insn: data.View) -> None:
        isa, word = InstructionSet.of(self.config), self.insn.payload.word
        opcode = select(word, isa.finish, "opcode")
        for name in ("pop_prev", "pop_next", "push_prev", "push_next"):
            m.d.comb += insn[name].eq(select(word, isa.finish, name))
        window = ConfigRegister.WINDOW & isa.configure["register"].range[1]
        nothing = (select(word, isa.load, "x_size") == 0) | (select(word, isa.load, "y_size") == 0)
        m.d.comb += [
            insn.is_loop.eq(
                (opcode == Opcode.GEMM) | (opcode == Opcode.ALU) | (opcode == Opcode.WINDOW)
            ),
            insn.is_load.eq((opcode == Opcode.LOAD) & ~nothing),
            insn.is_config.eq(opcode == Opcode.CONFIG),
            insn.is_window.eq(
                (opcode == Opcode.CONFIG) & (select(word, isa.configure, "register") == window)
            ),
            insn.is_finish.eq(opcode == Opcode.FINISH),
            insn.value.eq(select(word, isa.configure, "value")),
            insn.tokens.eq(
                (~insn.pop_prev | self.prev.available) & (~insn.pop_next | self.next.available)
            ),
        ]

    def _configure(self, m: Module, insn: data.View, window: data.View) -> None:
        """Writes the register that the CONFIG at the head names."""
        extra_taps = field_of(insn.value, WINDOW_FIELDS["extra_taps"])
        distance = Cat(Const(1, 1), field_of(insn.value, WINDOW_FIELDS["half_step"]))
        with m.If(insn.is_window):
            m.d.sync += [
                window.extra_taps.eq(extra_taps),
                window.distance.eq(distance),
                window.reach.eq(extra_taps * distance),
            ]
        with m.Else():
            m.d.sync += self.pad_acc.eq(insn.value)

    def _begin(
        self,
        m: Module,
        insn: data.View,
        execute: Execute,
        retirement: Retirement,
        loading: Signal,
        begin: Signal,
    ) -> None:
        offered, able = Signal(), Signal()
        m.d.comb += [
            offered.eq(self.insn.valid & insn.tokens & retirement.begin.ready),
            begin.eq(offered & able),
            self.insn.ready.eq(begin),
            self.prev.take.eq(begin & insn.pop_prev),
            self.next.take.eq(begin & insn.pop_next),
        ]
        with m.If(insn.is_loop):
            m.d.comb += able.eq(execute.command.ready & ~loading)
            m.d.comb += execute.command.valid.eq(offered & ~loading)
        with m.Elif(insn.is_load):
            free = self._is_free(execute)
            m.d.comb += able.eq(self.load_command.ready & free)
            m.d.comb += self.load_command.valid.eq(offered & free)
        with m.Elif(insn.is_finish):
            m.d.comb += able.eq(self.others_idle & ~retirement.valid)
        with m.Elif(insn.is_window):
            m.d.comb += able.eq(execute.waiting)
        with m.Else():
            m.d.comb += able.eq(1)

        flight = retirement.begin.payload
        completion = Mux(insn.is_load, Completion.SECOND, Completion.TURN)
        m.d.comb += [
            retirement.begin.valid.eq(begin),
            flight.index.eq(self.insn.payload.index),
            flight.completion.eq(Mux(insn.is_loop, Completion.FIRST, completion)),
            flight.push_prev.eq(insn.push_prev),
            flight.push_next.eq(insn.push_next),
            flight.mark.eq(insn.is_finish),
        ]
        self._fill_loop(m, execute.command.payload)
        self._fill_load(m, self.load_command.payload)

    def _is_free(self, execute: Execute) -> Value:
        """Whether nothing begun still needs what the LOAD at the head is going to write."""
        fmt, word = InstructionSet.of(self.config).load, self.insn.payload.word
        first = select(word, fmt, "sram_base")
        flat = select(word, fmt, "y_size") == 1
        for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"):
            flat &= select(word, fmt, name) == 0
        below = flat & (first + select(word, fmt, "x_size") <= execute.uop_bgn)
        others = ~execute.reading | below | (first >= execute.uop_end)
        return execute.idle | ((select(word, fmt, "memory") == Memory.UOP) & others)

    def _fill_loop(self, m: Module, command: data.View) -> None:
        isa, word = InstructionSet.of(self.config), self.insn.payload.word
        opcode = select(word, isa.gemm, "opcode")
        alu, window = opcode == Opcode.ALU, opcode == Opcode.WINDOW
        for name, _ in command.shape():
            if name == "index":
                value: Value = self.insn.payload.index
            elif name == "unit":
                value = Mux(alu, Unit.ALU, Mux(window, Unit.WINDOW, Unit.GEMM))
            elif name == "reset":
                value = select(word, isa.gemm, name) & ~window
            elif name == "maximum":
                value = select(word, isa.window, name) & window
            elif name == "overwrite":
                value = select(word, isa.gemm, name) & (self.profile == Profile.VITRAL)
            elif name in isa.gemm and name in isa.alu:
                value = Mux(alu, select(word, isa.alu, name), select(word, isa.gemm, name))
            else:
                value = select(word, isa.gemm if name in isa.gemm else isa.alu, name)
            m.d.comb += command[name].eq(value)

    def _fill_load(self, m: Module, command: data.View) -> None:
        isa, word = InstructionSet.of(self.config), self.insn.payload.word
        for name, _ in LoadCommand.as_shape():
            if name == "ticket":
                m.d.comb += command.ticket.index.eq(self.insn.payload.index)
            elif name == "pad_value":
                value = select(word, isa.load, name) & (self.profile == Profile.VITRAL)
                m.d.comb += command.pad_value.eq(value)
            else:
                m.d.comb += command[name].eq(select(word, isa.load, name))

    def _show(
        self, m: Module, insn: data.View, execute: Execute, retirement: Retirement, loading: Value
    ) -> None:
        """The wait code and the number of the current instruction."""
        m.d.comb += self.index.eq(Mux(retirement.valid, retirement.index, self.insn.payload.index))
        with m.If(~execute.idle):
            m.d.comb += self.wait.eq(Wait.BUSY)
        with m.Elif(retirement.blocked_prev):
            m.d.comb += self.wait.eq(Wait.PUSH_PREV)
        with m.Elif(retirement.blocked_next):
            m.d.comb += self.wait.eq(Wait.PUSH_NEXT)
        with m.Elif(loading):
            m.d.comb += self.wait.eq(Wait.MEMORY)
        with m.Elif(retirement.valid):
            m.d.comb += self.wait.eq(Wait.BUSY)
        with m.Elif(~self.insn.valid):
            m.d.comb += self.wait.eq(Wait.IDLE)
        with m.Elif(insn.pop_prev & ~self.prev.available):
            m.d.comb += self.wait.eq(Wait.POP_PREV)
        with m.Elif(insn.pop_next & ~self.next.available):
            m.d.comb += self.wait.eq(Wait.POP_NEXT)
        with m.Else():
            m.d.comb += self.wait.eq(Wait.BUSY)
