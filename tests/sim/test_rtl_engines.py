"""Both simulations of the netlist: alike in every cycle, not only in their results."""

from dataclasses import replace

import numpy as np
import pytest
from programs import CONFIGS
from programs.compare import state_after
from programs.trials import trials

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.sim.rtl import RtlSimulator

CORE = "block4"
PROGRAMS = 24


def test_native_and_verilator_take_the_same_cycles() -> None:
    """All outputs in every cycle, counters, status, all memories; the memory stalls at random."""
    config = CONFIGS[CORE]
    with (
        RtlSimulator(config, engine="native") as native,
        RtlSimulator(config, engine="verilator") as verilated,
    ):
        for trial in trials(config, range(PROGRAMS), bad=4, long_every=3):
            states = []
            for core in (native, verilated):
                core.reset()
                core.watch()
                core.memory_model = replace(trial.memory, stall_seed=trial.program.seed)
                states.append(state_after(trial.program, core))
            (outcome, *contents), (wanted, *others) = states
            assert native.signature == verilated.signature, trial.name
            assert outcome == wanted, trial.name
            assert outcome.counters == wanted.counters, trial.name
            for content, other in zip(contents, others, strict=True):
                assert _bytes(content) == _bytes(other), trial.name
            assert native.beats == verilated.beats
            assert native.cycle == verilated.cycle


def _bytes(content: object) -> list[bytes]:
    parts = vars(content) if hasattr(content, "__dict__") else {"": content}
    return [part.tobytes() for part in parts.values() if isinstance(part, np.ndarray)]


def test_unknown_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match=r"engine .icarus.; there are: native"):
        RtlSimulator(CoreConfig(), engine="icarus")
    monkeypatch.setenv("VITRAL_TSIM", "cxxrtl")
    with pytest.raises(DeviceError, match="no simulation engine 'cxxrtl'"):
        RtlSimulator(CoreConfig())
