"""Writes a core with its bridge and memory as one Verilog file, for simulators."""

import re

from amaranth import ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.back import verilog
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bridge.system import SerialSystem

__all__ = ["SERIAL_TOP", "emit_serial"]

SERIAL_TOP = "vitral_serial"


class _Top(wiring.Component):
    """A `SerialSystem` with clock `aclk` and active-low `aresetn`, a cycle late."""

    def __init__(self, system: SerialSystem) -> None:
        self._system = system
        super().__init__(
            {
                **{name: In(1) for name in ("aclk", "aresetn", "rx")},
                **{name: Out(1) for name in ("tx", "irq")},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.unreset = ClockDomain(reset_less=True)
        m.submodules.system = system = self._system
        reset = Signal(init=1)
        m.d.unreset += reset.eq(~self.aresetn)
        m.d.comb += [
            ClockSignal().eq(self.aclk),
            ClockSignal("unreset").eq(self.aclk),
            ResetSignal().eq(reset),
            system.rx.eq(self.rx),
            self.tx.eq(system.tx),
            self.irq.eq(system.irq),
        ]
        return m


def emit_serial(config: CoreConfig, *, memory_bytes: int, bit_cycles: int, idle_cycles: int) -> str:
    """Verilog text; top module `vitral_serial` with ports aclk, aresetn, rx, tx and irq.

    The parameters are those of `SerialSystem`.
    """
    system = SerialSystem(
        config, memory_bytes=memory_bytes, bit_cycles=bit_cycles, idle_cycles=idle_cycles
    )
    text = verilog.convert(_Top(system), name=SERIAL_TOP, emit_src=False, strip_internal_attrs=True)
    return re.sub(
        r"^  initial begin\n(?:    \S+\[\d+\] = \d+'[a-z]\d+;\n)+  end\n", "", text, flags=re.M
    )
