"""The numpy definition as a device: slow, needs nothing but numpy."""

from collections.abc import Collection

from vitral.config import CoreConfig
from vitral.program import Dram, Launch, Outcome
from vitral.runtime.devices.simulated import SimulatedDevice
from vitral.sim.reference import Reference

__all__ = ["ReferenceDevice"]


class ReferenceDevice(SimulatedDevice):
    """`vitral.sim.reference` behind the device protocol.

    Parameters
    ----------
    order_seed : int or None
        Draws the order in which the stages go on; None lets them take turns.
    """

    name = "reference"
    OPTIONS = ("order_seed",)

    def __init__(self, config: CoreConfig, *, order_seed: int | None = None) -> None:
        self.order_seed = order_seed
        super().__init__(config)

    def _open(self) -> None:
        self._simulator = Reference(self.config)

    def _simulate(self, launch: Launch, dram: Dram, marks: Collection[int]) -> Outcome:
        return self._simulator.run(launch, dram, order_seed=self.order_seed)
