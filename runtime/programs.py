"""Runs raw program folders, at their own addresses, on a simulator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from vitral.errors import DeviceError
from vitral.program import MemoryModel, Outcome, ProgramFolder
from vitral.runtime.device import missing_package

__all__ = ["SIMULATORS", "ProgramResult", "run_folder"]


@dataclass(frozen=True, kw_only=True)
class ProgramResult:
    """How a program folder ran.

    Parameters
    ----------
    name, device : str
        The program and the simulator.
    outcome : Outcome
        How it ended.
    match : bool or None
        Whether it ended well and memory is as expected: OUT's bytes, and everything else
        unchanged. None when it ended well and the folder expects nothing.
    differences : tuple of str
        What is not as expected.
    """

    name: str
    device: str
    outcome: Outcome
    insns: int
    match: bool | None
    differences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "program": self.name,
            "device": self.device,
            "match": self.match,
            "status": self.outcome.message,
            "cycles": self.outcome.cycles,
            "insns": self.insns,
            "counters": dict(self.outcome.counters),
            "differences": list(self.differences),
        }


def run_folder(
    folder: ProgramFolder,
    device: str,
    *,
    memory_model: MemoryModel | None = None,
    seed: int | None = None,
    data_bits: int | None = None,
    max_cycles: int | None = None,
) -> ProgramResult:
    """Run a program on a fresh memory and compare.

    `seed` draws the order of the stages (reference) or the memory's stalls (tsim); fsim has
    neither. `memory_model`, `data_bits` and `max_cycles` are for tsim.

    Raises
    ------
    DeviceError
        When there is no such simulator, or what it needs is not installed.
    """
    if device not in SIMULATORS:
        raise DeviceError(f"programs run on {', '.join(SIMULATORS)}; got {device!r}")
    if data_bits is not None:
        folder = replace(folder, config=replace(folder.config, data_bits=data_bits))
    settings = {"model": memory_model or MemoryModel(), "seed": seed, "max_cycles": max_cycles}
    dram = folder.dram()
    try:
        outcome = SIMULATORS[device](folder, dram, settings)
    except ModuleNotFoundError as error:
        raise DeviceError(f"device {device} needs {missing_package(error)}") from None
    differences = tuple(folder.differences(dram)) if outcome.ok else ()
    expects = bool(folder.expected_out) or bool(differences)
    match = (not differences if expects else None) if outcome.ok else False
    return ProgramResult(
        name=folder.name,
        device=device,
        outcome=outcome,
        insns=outcome.insns or folder.launch.insn_count,
        match=match,
        differences=differences,
    )


Settings = Mapping[str, Any]


def _reference(folder: ProgramFolder, dram: Any, settings: Settings) -> Outcome:
    simulator = import_module("vitral.sim.reference").Reference(folder.config)
    return simulator.run(folder.launch, dram, order_seed=settings["seed"])


def _fsim(folder: ProgramFolder, dram: Any, settings: Settings) -> Outcome:
    simulator = import_module("vitral.sim.functional").FunctionalSimulator(folder.config)
    return simulator.run(folder.launch, dram)


def _tsim(folder: ProgramFolder, dram: Any, settings: Settings) -> Outcome:
    model = settings["model"]
    if settings["seed"] is not None:
        model = replace(model, stall_seed=settings["seed"])
    factory = import_module("vitral.sim.rtl").RtlSimulator
    with factory(folder.config, memory_model=model) as simulator:
        return simulator.run(folder.launch, dram, max_cycles=settings["max_cycles"])


SIMULATORS: dict[str, Callable[[ProgramFolder, Any, Settings], Outcome]] = {
    "reference": _reference,
    "fsim": _fsim,
    "tsim": _tsim,
}
"""Simulators by device name; imported when used."""
