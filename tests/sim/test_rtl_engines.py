"""Both simulations of the netlist: alike in every cycle, not only in their results."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from programs import CONFIGS
from programs.compare import Runnable, state_after
from programs.trials import trials

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import Dram, Launch, MemoryModel, OnChip, Outcome, ProgramFolder
from vitral.sim.rtl import RtlSimulator

CORE = "block4"
PROGRAMS = 24
GOLDEN = sorted(path.parent for path in Path("tests/data/golden").glob("*/instructions.bin"))


@dataclass(frozen=True)
class Golden:
    """A golden program as random ones are."""

    launch: Launch
    dram: Dram
    onchip: OnChip


class Looking:
    """A core that notes what its stages do and all its outputs, in every cycle, from a reset on."""

    def __init__(self, core: RtlSimulator) -> None:
        self.core = core
        core.reset()
        core.watch()

    def run(self, launch: Launch, dram: Dram, *, onchip: OnChip | None = None) -> Outcome:
        return self.core.run(launch, dram, onchip=onchip, timeline=True)


def compare(native: RtlSimulator, verilated: RtlSimulator, program: Runnable, name: str) -> None:
    """One program on both: all outputs and the stages' registers in every cycle, all memories."""
    (outcome, *contents), (wanted, *others) = (
        state_after(program, Looking(core)) for core in (native, verilated)
    )
    assert native.signature == verilated.signature, name
    assert outcome.timeline is not None
    assert wanted.timeline is not None
    assert outcome.timeline.spans == wanted.timeline.spans, name
    assert replace(outcome, timeline=None) == replace(wanted, timeline=None), name
    for content, other in zip(contents, others, strict=True):
        assert _bytes(content) == _bytes(other), name
    assert native.beats == verilated.beats
    assert native.cycle == verilated.cycle


def test_native_and_verilator_take_the_same_cycles() -> None:
    """On random programs, on a memory that stalls at random."""
    config = CONFIGS[CORE]
    with (
        RtlSimulator(config, engine="native") as native,
        RtlSimulator(config, engine="verilator") as verilated,
    ):
        for trial in trials(config, range(PROGRAMS), bad=4, long_every=3):
            for core in (native, verilated):
                core.memory_model = replace(trial.memory, stall_seed=trial.program.seed)
            compare(native, verilated, trial.program, trial.name)


@pytest.mark.slow
def test_native_and_verilator_take_the_same_cycles_on_golden_programs() -> None:
    """On the default core, with and without stalls."""
    with (
        RtlSimulator(CoreConfig(), engine="native") as native,
        RtlSimulator(CoreConfig(), engine="verilator") as verilated,
    ):
        for folder in GOLDEN:
            program = ProgramFolder.load(folder)
            onchip = OnChip.random(program.config, np.random.default_rng(1))
            for seed in (None, 1):
                for core in (native, verilated):
                    core.memory_model = MemoryModel(stall_seed=seed)
                golden = Golden(program.launch, program.dram(), onchip)
                compare(native, verilated, golden, folder.name)


def _bytes(content: object) -> list[bytes]:
    parts = vars(content) if hasattr(content, "__dict__") else {"": content}
    return [part.tobytes() for part in parts.values() if isinstance(part, np.ndarray)]


def test_unknown_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match=r"engine .icarus.; there are: native"):
        RtlSimulator(CoreConfig(), engine="icarus")
    monkeypatch.setenv("VITRAL_TSIM", "cxxrtl")
    with pytest.raises(DeviceError, match="no simulation engine 'cxxrtl'"):
        RtlSimulator(CoreConfig())
