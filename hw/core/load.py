"""The load stage: LOADs of INP and WGT, and the pad registers of these memories."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.decode import select
from vitral.hw.core.interfaces import (
    INDEX_BITS,
    WAIT_BITS,
    InsnWord,
    LoadCommand,
    Ticket,
    TokenPort,
    Wait,
)
from vitral.isa import ConfigRegister, InstructionSet, Opcode, Profile

__all__ = ["LoadStage"]

PAD_BITS = 8


class LoadStage(wiring.Component):
    """Takes tokens and hands commands to a `LoadEngine`; gives tokens as it answers.

    An instruction is begun when its token is there and the engine takes it, one every two
    cycles; the next one may begin before it is complete. CONFIG passes through the engine as an
    empty LOAD, so that its token keeps its place. Clearing is by reset.

    Ports
    -----
    insn, profile, next
        Instructions, the profile they are read in, and the tokens of the compute stage.
    command, done
        To and from the engine; `engine_busy`, `engine_waiting` as it shows them.
    pad_inp, pad_wgt
        Pad registers, for the command of the same cycle.
    idle
        No instruction is in the stage.
    wait, index
        What the stage does or waits for, and for which instruction.
    """

    def __init__(self, config: CoreConfig) -> None:
        self._isa = InstructionSet.of(config)
        super().__init__(
            {
                "insn": In(stream.Signature(InsnWord)),
                "profile": In(1),
                "next": Out(TokenPort()),
                "command": Out(stream.Signature(LoadCommand)),
                "done": In(stream.Signature(Ticket)),
                "engine_busy": In(1),
                "engine_waiting": In(1),
                "pad_inp": Out(PAD_BITS),
                "pad_wgt": Out(PAD_BITS),
                "idle": Out(1),
                "wait": Out(WAIT_BITS),
                "index": Out(INDEX_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        word = self.insn.p.word
        fmt = self._isa.load
        pop = select(word, fmt, "pop_next")
        starved = Signal()
        blocked = Signal()
        begin = Signal()

        # Begin: with the token, when the engine takes the command.
        m.d.comb += [
            starved.eq(pop & ~self.next.available),
            self.command.valid.eq(self.insn.valid & ~starved),
            begin.eq(self.command.valid & self.command.ready),
            self.insn.ready.eq(begin),
            self.next.take.eq(begin & pop),
        ]
        self._fill(m)
        self._configure(m, begin)

        # End: a token for the compute stage, in order.
        push = self.done.p.tag[0]
        m.d.comb += [
            blocked.eq(self.done.valid & push & ~self.next.room),
            self.done.ready.eq(~blocked),
            self.next.give.eq(self.done.valid & push & self.next.room),
            self.idle.eq(~self.insn.valid & ~self.engine_busy),
            self.index.eq(Mux(self.done.valid, self.done.p.index, self.insn.p.index)),
        ]
        with m.If(blocked):
            m.d.comb += self.wait.eq(Wait.PUSH_NEXT)
        with m.Elif(self.engine_busy):
            m.d.comb += self.wait.eq(Mux(self.engine_waiting, Wait.MEMORY, Wait.BUSY))
        with m.Elif(~self.insn.valid):
            m.d.comb += self.wait.eq(Wait.IDLE)
        with m.Elif(starved):
            m.d.comb += self.wait.eq(Wait.POP_NEXT)
        with m.Else():
            m.d.comb += self.wait.eq(Wait.BUSY)
        return m

    def _is_config(self):
        return select(self.insn.p.word, self._isa.load, "opcode") == Opcode.CONFIG

    def _fill(self, m: Module) -> None:
        """The command's fields are the instruction's; a CONFIG's sizes are 0."""
        word = self.insn.p.word
        for name, _ in LoadCommand.as_shape():
            if name in self._isa.load:
                m.d.comb += self.command.p[name].eq(select(word, self._isa.load, name))
        with m.If(self._is_config()):
            m.d.comb += [self.command.p.y_size.eq(0), self.command.p.x_size.eq(0)]
        with m.If(self.profile != Profile.VITRAL):
            m.d.comb += self.command.p.pad_value.eq(0)
        m.d.comb += [
            self.command.p.ticket.index.eq(self.insn.p.index),
            self.command.p.ticket.tag.eq(select(word, self._isa.load, "push_next")),
        ]

    def _configure(self, m: Module, begin: Signal) -> None:
        fmt = self._isa.configure
        word = self.insn.p.word
        for register, port in (
            (ConfigRegister.INP_PAD, self.pad_inp),
            (ConfigRegister.WGT_PAD, self.pad_wgt),
        ):
            number = register & ((1 << fmt["register"].width) - 1)
            with m.If(begin & self._is_config() & (select(word, fmt, "register") == number)):
                m.d.sync += port.eq(select(word, fmt, "value"))
