"""Performance counters."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.hw.core.interfaces import WAIT_BITS, Wait
from vitral.registers import COUNTERS

__all__ = ["COUNTER_BITS", "Counters"]

COUNTER_BITS = 48
"""Wraps after a month at 100 MHz."""

_WAITS = {
    "busy": (Wait.BUSY,),
    "idle": (Wait.IDLE,),
    "wait_prev": (Wait.POP_PREV,),
    "wait_next": (Wait.POP_NEXT,),
    "wait_push": (Wait.PUSH_PREV, Wait.PUSH_NEXT),
    "wait_memory": (Wait.MEMORY,),
}


class Counters(wiring.Component):
    """Counts events in the cycles with `running`; reset by `clear`.

    Ports
    -----
    gemm, alu, read_beats, write_beats
        The event happens in this cycle.
    load_wait, compute_wait, store_wait
        Wait codes of the stages; each is counted under its name.
    count_<name>
        Values, for the registers of these names.
    """

    def __init__(self) -> None:
        members: dict[str, wiring.Member] = {"running": In(1), "clear": In(1)}
        for name in ("gemm", "alu", "read_beats", "write_beats"):
            members[name] = In(1)
        for stage in ("load", "compute", "store"):
            members[f"{stage}_wait"] = In(WAIT_BITS)
        for name, _ in COUNTERS:
            members[f"count_{name}"] = Out(COUNTER_BITS)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        for name, _ in COUNTERS:
            count = getattr(self, f"count_{name}")
            event = self._event(m, name)
            with m.If(self.clear):
                m.d.sync += count.eq(0)
            with m.Elif(self.running & event):
                m.d.sync += count.eq(count + 1)
        return m

    def _event(self, m: Module, name: str) -> Signal:
        event = Signal(name=f"{name}_event")
        stage, _, what = name.partition("_")
        if name == "cycles":
            m.d.comb += event.eq(1)
        elif what in _WAITS:
            code = getattr(self, f"{stage}_wait")
            m.d.comb += event.eq(code.matches(*_WAITS[what]))
        else:
            m.d.comb += event.eq(getattr(self, name))
        return event
