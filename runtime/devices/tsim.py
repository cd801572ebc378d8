"""The RTL simulator as a device."""

from collections.abc import Collection
from os import PathLike

from vitral.config import CoreConfig
from vitral.program import Dram, Launch, MemoryModel, Outcome
from vitral.runtime.devices.simulated import SimulatedDevice
from vitral.sim.rtl import RtlSimulator

__all__ = ["TsimDevice"]


class TsimDevice(SimulatedDevice):
    """`vitral.sim.rtl` behind the device protocol: the real core, with cycles and counters.

    Parameters
    ----------
    memory_model : MemoryModel or None
        Timing of the memory; the yardstick memory when None.
    max_cycles : int or None
        Cycles that one program may take; the memory model's limit when None.
    trace : path or None
        File for a waveform.
    timeline : bool
        Whether outcomes tell what each stage did in every cycle.
    """

    name = "tsim"
    OPTIONS = ("memory_model", "max_cycles", "trace", "timeline")

    def __init__(
        self,
        config: CoreConfig,
        *,
        memory_model: MemoryModel | None = None,
        max_cycles: int | None = None,
        trace: str | PathLike[str] | None = None,
        timeline: bool = False,
    ) -> None:
        self.memory_model = memory_model or MemoryModel()
        self.max_cycles = max_cycles
        self.timeline = timeline
        self.trace = None if trace is None else str(trace)
        super().__init__(config)

    def _open(self) -> None:
        self._simulator = RtlSimulator(
            self.config, memory_model=self.memory_model, trace=self.trace
        )

    def _simulate(self, launch: Launch, dram: Dram, marks: Collection[int]) -> Outcome:
        return self._run_watched(launch, dram, None, marks)

    def _run_in_time(self, launch: Launch, timeout: float, marks: Collection[int]) -> Outcome:
        """The simulator watches the clock itself, and says where the core stands."""
        return self._run_watched(launch, self.dram, timeout, marks)

    def _run_watched(
        self, launch: Launch, dram: Dram, timeout: float | None, marks: Collection[int]
    ) -> Outcome:
        return self._simulator.run(
            launch,
            dram,
            max_cycles=self.max_cycles,
            max_seconds=timeout,
            marks=marks,
            timeline=self.timeline,
        )

    def _dispose(self) -> None:
        self._simulator.close()
