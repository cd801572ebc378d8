"""The functional simulator as a device."""

from collections.abc import Collection

from vitral.program import Dram, Launch, Outcome
from vitral.runtime.devices.simulated import SimulatedDevice
from vitral.sim.functional import FunctionalSimulator

__all__ = ["FsimDevice"]


class FsimDevice(SimulatedDevice):
    """`vitral.sim.functional` behind the device protocol: native code, no cycles."""

    name = "fsim"

    def _open(self) -> None:
        self._simulator = FunctionalSimulator(self.config)

    def _simulate(self, launch: Launch, dram: Dram, marks: Collection[int]) -> Outcome:
        return self._simulator.run(launch, dram)
