"""Launch, end, errors, interrupt and soft reset of the core."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.hw.core.interfaces import CAUSE_BITS, INDEX_BITS, Fault
from vitral.isa import Cause
from vitral.registers import register

__all__ = ["Status"]

WORD_BITS = 32


class Status(wiring.Component):
    """State of the core as a whole.

        IDLE ──start──► RUN ──finished, fault, soft reset──► DRAIN ──bus idle──► CLEAR ──► IDLE
                                                               │ watchdog
                                                               ▼
                                                             HUNG ──bus idle──► CLEAR

    Draining lets no new burst start, sends the write beats that were promised, and waits for all
    answers; `clear` then puts every stage into its first state, so that the next launch is clean.
    `done` (and the interrupt) is set after that, or when the watchdog gives the bus up. A start
    is refused unless the core is idle with an idle bus; a soft reset is always accepted.

    Ports
    -----
    control
        The word written to the control register (0 when none is).
    watchdog
        Cycles without progress on a busy bus until it counts as hung; 0 = never.
    faults
        Array of `Fault`; the first in time, then in order, is kept.
    finished, finish_index, tokens_left
        FINISH has executed; tokens are left in the cycle after that.
    bus_busy, bus_progress
        Bursts are in flight; some channel moved in this cycle.
    launch, clear, stop
        To the stages: for one cycle each, and while draining.
    reset_done
        A soft reset is complete in this cycle.
    profile
        Profile of the running program.
    busy
        From the launch until `done`.
    status, error_index, irq_status, irq_clear, irq_enable, irq
        As the registers show and take them, and the interrupt line.
    """

    def __init__(self, *, faults: int) -> None:
        super().__init__(
            {
                "control": In(WORD_BITS),
                "watchdog": In(WORD_BITS),
                "faults": In(Fault()).array(faults),
                "finished": In(1),
                "finish_index": In(INDEX_BITS),
                "tokens_left": In(1),
                "bus_busy": In(1),
                "bus_progress": In(1),
                "launch": Out(1),
                "clear": Out(1),
                "stop": Out(1),
                "reset_done": Out(1),
                "profile": Out(1),
                "busy": Out(1),
                "status": Out(WORD_BITS),
                "error_index": Out(WORD_BITS),
                "irq_status": Out(WORD_BITS),
                "irq_clear": In(WORD_BITS),
                "irq_enable": In(WORD_BITS),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        done = Signal()
        cause = Signal(CAUSE_BITS)
        index = Signal(INDEX_BITS)
        resetting = Signal()
        refused = Signal()
        pending = Signal()
        ended = Signal()
        hung = self._watch(m)

        self._run(m, done, cause, index, resetting, refused, ended, hung)
        m.d.comb += self.reset_done.eq(self.clear & resetting)
        with m.If(ended):
            m.d.sync += pending.eq(1)
        with m.Elif(self._bit("irq_status", "done", self.irq_clear) | self.reset_done):
            m.d.sync += pending.eq(0)
        self._show(m, done, cause, index, resetting, refused, pending)
        return m

    @staticmethod
    def _bit(name: str, field: str, word: Signal):
        entry = register(name)[field]
        return word[entry.low : entry.low + entry.width]

    def _watch(self, m: Module) -> Signal:
        """The bus has been busy without progress for `watchdog` cycles."""
        quiet = Signal(WORD_BITS)
        hung = Signal()
        restart = self.bus_progress | self._bit("control", "soft_reset", self.control)
        with m.If(self.bus_busy & ~restart):
            m.d.sync += quiet.eq(quiet + 1)
        with m.Else():
            m.d.sync += quiet.eq(0)
        m.d.comb += hung.eq((self.watchdog != 0) & (quiet >= self.watchdog))
        return hung

    def _run(
        self,
        m: Module,
        done: Signal,
        cause: Signal,
        index: Signal,
        resetting: Signal,
        refused: Signal,
        ended: Signal,
        hung: Signal,
    ) -> None:
        start = self._bit("control", "start", self.control)
        soft_reset = self._bit("control", "soft_reset", self.control)
        finishing = Signal()
        finish_index = Signal(INDEX_BITS)
        m.d.sync += [finishing.eq(self.finished), finish_index.eq(self.finish_index)]
        with m.If(start | soft_reset):
            m.d.sync += refused.eq(start & ~self.launch)

        def reset() -> None:
            """A soft reset is taken in every state."""
            with m.If(soft_reset):
                m.d.sync += [resetting.eq(1), done.eq(0), cause.eq(0), index.eq(0)]
                m.next = "DRAIN"

        with m.FSM() as fsm:
            with m.State("IDLE"):
                with m.If(start & ~soft_reset & ~self.bus_busy):
                    m.d.comb += self.launch.eq(1)
                    m.d.sync += [
                        self.profile.eq(self._bit("control", "profile", self.control)),
                        done.eq(0),
                        cause.eq(0),
                        index.eq(0),
                    ]
                    m.next = "RUN"
                reset()
            with m.State("RUN"):
                with m.If(self._latch_fault(m, cause, index)):
                    m.next = "DRAIN"
                with m.Elif(finishing):
                    with m.If(self.tokens_left):
                        m.d.sync += [cause.eq(Cause.TOKENS_LEFT), index.eq(finish_index)]
                    m.next = "DRAIN"
                with m.Elif(hung):
                    m.d.sync += [cause.eq(Cause.BUS_HUNG), done.eq(1)]
                    m.d.comb += ended.eq(1)
                    m.next = "HUNG"
                reset()
            with m.State("DRAIN"):
                m.d.comb += self.stop.eq(1)
                with m.If(~self.bus_busy):
                    m.next = "CLEAR"
                with m.Elif(hung):
                    with m.If(cause == 0):
                        m.d.sync += cause.eq(Cause.BUS_HUNG)
                    m.d.sync += [done.eq(1), resetting.eq(0)]
                    m.d.comb += ended.eq(1)
                    m.next = "HUNG"
                reset()
            with m.State("CLEAR"):
                m.d.comb += [self.stop.eq(1), self.clear.eq(1), ended.eq(~resetting & ~done)]
                m.d.sync += [done.eq(~resetting), resetting.eq(0)]
                m.next = "IDLE"
                reset()
            with m.State("HUNG"):
                m.d.comb += self.stop.eq(1)
                with m.If(~self.bus_busy):
                    m.next = "CLEAR"
                reset()
        running = fsm.ongoing("RUN") | fsm.ongoing("DRAIN") | fsm.ongoing("CLEAR")
        m.d.comb += self.busy.eq(running & ~resetting & ~done)

    def _latch_fault(self, m: Module, cause: Signal, index: Signal) -> Signal:
        """Keeps the first of the faults that come in this cycle."""
        found = Signal()
        m.d.comb += found.eq(Cat(fault.valid for fault in self.faults).any())
        for fault in reversed(list(self.faults)):
            with m.If(fault.valid):
                m.d.sync += [cause.eq(fault.cause), index.eq(fault.index)]
        return found

    def _show(
        self,
        m: Module,
        done: Signal,
        cause: Signal,
        index: Signal,
        resetting: Signal,
        refused: Signal,
        pending: Signal,
    ) -> None:
        shown = {
            "busy": self.busy,
            "done": done,
            "error": done & (cause != 0),
            "resetting": resetting,
            "refused": refused,
            "cause": Mux(done, cause, 0),
        }
        for name, value in shown.items():
            m.d.comb += self._bit("status", name, self.status).eq(value)
        m.d.comb += [
            self.error_index.eq(Mux(done, index, 0)),
            self._bit("irq_status", "done", self.irq_status).eq(pending),
            self.irq.eq(pending & self._bit("irq_enable", "done", self.irq_enable)),
        ]
