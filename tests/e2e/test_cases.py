"""Every convolution case, in both forms, on both simulators: right bytes, and nothing else touched.

The accelerator's memories are random before each run and the results lie between guard bytes.
"""

import pytest
from cases import ConvCase
from e2e.compiled import CASES, FORMS, case_named, compiled, same_programs
from e2e.guarded import GuardedDevice

import vitral

DEVICES = ("fsim", "tsim")
TWO_FORMS = [case for case in CASES if case.clip is None]
"""QLinearConv has no activation of its own, so the cases with one exist as QDQ only."""
TSIM_MACS = 10_000_000
"""On tsim larger cases run in one form: the other one is the same program."""


def run(device: GuardedDevice, module: vitral.Module, case: ConvCase) -> None:
    with vitral.Session(module, device=device) as session:
        (y,) = session.run(None, {"x": case.x})
    case.check(y)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_qdq_form(case: ConvCase, device: str) -> None:
    module = compiled(case.name, "qdq")
    assert sum(s.macs for s in module.segments[0].layers) == module.macs == case.macs
    run(GuardedDevice(device, module, seed=1), module, case)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", TWO_FORMS, ids=str)
def test_qoperator_form(case: ConvCase, device: str) -> None:
    module = compiled(case.name, "qoperator")
    assert same_programs(module, compiled(case.name, "qdq"))
    if device != "tsim" or case.macs < TSIM_MACS:
        run(GuardedDevice(device, module, seed=2), module, case)


@pytest.mark.parametrize(("device", "seeds"), [("fsim", 20), ("tsim", 5)])
def test_any_contents_of_the_memories(device: str, seeds: int) -> None:
    case = case_named("V7")
    module = compiled(case.name, "qdq")
    for seed in range(seeds):
        run(GuardedDevice(device, module, seed=seed), module, case)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("device", "turns"), [("fsim", 100), ("tsim", 10)])
def test_two_modules_alternate_on_one_core(device: str, turns: int, form: str) -> None:
    """Each loaded once, on-chip memories as the other left them, the same bytes every time."""
    first, second = case_named("V1"), case_named("V2")
    modules = [compiled(case.name, form) for case in (first, second)]
    devices = [GuardedDevice(device, module, random_onchip=False) for module in modules]
    sessions = [
        vitral.Session(module, device=core) for module, core in zip(modules, devices, strict=True)
    ]
    for _ in range(min(turns, 12)):
        first.check(sessions[0].run(None, {"x": first.x})[0])
    for _ in range(turns):
        for case, session in zip((first, second), sessions, strict=True):
            case.check(session.run(None, {"x": case.x})[0])
    for core in devices:
        assert len(set(core.cycles)) == 1, "a program takes the same cycles whatever ran before"
