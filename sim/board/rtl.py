"""The RTL behind a register port: tsim without its own host."""

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import Dram, MemoryModel
from vitral.registers import register
from vitral.sim.rtl import RtlSimulator
from vitral.sim.rtl.library import End

__all__ = ["RtlLogic"]

STEP_CYCLES = 4096
"""Cycles of the core that pass at each `advance`."""
QUIET_CYCLES = 1 << 62


class RtlLogic(RtlSimulator):
    """The core that tsim simulates, with its own clock, started by whoever writes its registers.

    The clock runs while somebody waits (`advance`) and for each register access. The cycles that
    the core counts are tsim's, whatever the accesses.

    Parameters
    ----------
    config : CoreConfig
        The core.
    memory_model : MemoryModel or None
        Timing of the memory; the yardstick memory when None.
    """

    def __init__(self, config: CoreConfig, *, memory_model: MemoryModel | None = None) -> None:
        super().__init__(config, memory_model=memory_model)

    def attach(self, dram: Dram) -> None:
        self._harness.attach(dram)
        self._harness.configure(self.memory_model, self.config.burst_beats)

    @property
    def irq(self) -> bool:
        """From the registers: the line itself is seen while the clock runs only."""
        pending = self.read(register("irq_status").offset)
        return bool(pending & self.read(register("irq_enable").offset))

    def read(self, offset: int) -> int:
        return self._harness.read(offset)

    def write(self, offset: int, value: int) -> None:
        self._harness.write(offset, value)

    def advance(self) -> None:
        if self._harness.run(STEP_CYCLES, QUIET_CYCLES) is End.PROTOCOL:
            raise DeviceError(f"memory port: {self._harness.error}")
