"""A device that does nothing at once: for what is not about results."""

from collections.abc import Collection

from vitral.isa import Cause
from vitral.program import Dram, Launch, Outcome
from vitral.runtime.devices.simulated import SimulatedDevice

__all__ = ["NullDevice"]


class NullDevice(SimulatedDevice):
    """Keeps what is written and runs no program: results are whatever memory held before."""

    name = "null"

    def _simulate(self, launch: Launch, dram: Dram, marks: Collection[int]) -> Outcome:
        return Outcome(Cause.NONE, 0)
