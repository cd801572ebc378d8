"""Writes a core with its bridge and memory as one Verilog file, for simulators."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bridge.system import SerialSystem
from vitral.hw.verilog import connect_clock, verilog_text

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
        m.submodules.system = system = self._system
        connect_clock(m, self.aclk, self.aresetn)
        m.d.comb += [
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
    return verilog_text(_Top(system), SERIAL_TOP)
