"""A run that fails says what and where in one line, on every device, and the next one is right."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from e2e.compiled import case_named, compiled
from e2e.tampered import ISA, MISTAKES, as_bytes, instructions_of, is_data, tampered_words

import vitral
from vitral.errors import DeviceError, ExecutionFault
from vitral.isa import Cause, Store
from vitral.program import MemoryModel
from vitral.runtime.devices.simulated import BASE
from vitral.runtime.devices.tsim import TsimDevice

DEVICES = ("reference", "fsim", "tsim")
CASE = case_named("V2")


@pytest.fixture
def module() -> vitral.Module:
    return compiled("V2", "qdq")


@pytest.fixture(scope="module")
def sessions() -> Iterator[dict[str, vitral.Session]]:
    """One session per device for all tests of this file: each leaves it usable."""
    module = compiled("V2", "qdq")
    opened = {name: vitral.Session(module, device=name) for name in DEVICES}
    yield opened
    for session in opened.values():
        session.close()


def check(session: vitral.Session) -> None:
    CASE.check(session.run(None, {"x": CASE.x})[0])


def failure(session: vitral.Session) -> DeviceError:
    """The one-line error of a run."""
    with pytest.raises(DeviceError) as caught:
        session.run(None, {"x": CASE.x})
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("segment0: ")
    return caught.value


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_program(
    mistake: str, device: str, sessions: dict[str, vitral.Session], module: vitral.Module
) -> None:
    """The program in the device's memory is damaged; the session writes it anew afterwards."""
    session = sessions[device]
    check(session)
    words, text = tampered_words(instructions_of(module), mistake)
    session.device.write(module.segments[0].insn_offset, as_bytes(words))
    error = failure(session)
    assert text in str(error)
    assert isinstance(error, ExecutionFault) == ("deadlock" not in text)
    check(session)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_all_devices_say_the_same(
    mistake: str, sessions: dict[str, vitral.Session], module: vitral.Module
) -> None:
    words, _ = tampered_words(instructions_of(module), mistake)
    texts = set()
    for session in sessions.values():
        check(session)
        session.device.write(module.segments[0].insn_offset, as_bytes(words))
        texts.add(str(failure(session)))
    assert len(texts) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_an_empty_program(device: str, module: vitral.Module) -> None:
    (segment,) = module.segments
    empty = replace(module, steps=(replace(segment, insn_count=0),))
    with vitral.Session(empty, device=device) as session:
        for _ in range(2):
            assert "empty program at instruction 0" in str(failure(session))


def tsim(session: vitral.Session) -> TsimDevice:
    assert isinstance(session.device, TsimDevice)
    return session.device


def with_memory(session: vitral.Session, model: MemoryModel) -> None:
    """The device's memory from the next run on."""
    device = tsim(session)
    device.memory_model = model
    device.reset()


@pytest.mark.parametrize("burst", [0, 1, 3, 7, 12])
def test_an_error_on_a_read(burst: int, sessions: dict[str, vitral.Session]) -> None:
    session = sessions["tsim"]
    with_memory(session, MemoryModel(fail_reads=(burst,)))
    error = failure(session)
    assert "bus error on a read at instruction" in str(error)
    assert isinstance(error, ExecutionFault)
    assert error.cause == Cause.BUS_READ
    tsim(session).memory_model = MemoryModel()
    check(session)


@pytest.mark.parametrize("burst", [0, 1, 4])
def test_an_error_on_a_write(burst: int, sessions: dict[str, vitral.Session]) -> None:
    session = sessions["tsim"]
    with_memory(session, MemoryModel(fail_writes=(burst,)))
    error = failure(session)
    assert "bus error on a write at instruction" in str(error)
    assert isinstance(error, ExecutionFault)
    assert error.cause == Cause.BUS_WRITE
    tsim(session).memory_model = MemoryModel()
    check(session)


@pytest.mark.parametrize(
    ("what", "cause"),
    [("x", Cause.BUS_READ), ("y", Cause.BUS_WRITE), ("insn", Cause.BUS_READ)],
)
def test_memory_that_fails_at_an_address(
    what: str,
    cause: Cause,
    sessions: dict[str, vitral.Session],
    module: vitral.Module,
) -> None:
    """The instruction that touches it first is named."""
    (segment,) = module.segments
    offsets = {"x": segment.inputs[0].offset, "y": segment.outputs[0].offset}
    address = BASE + offsets.get(what, segment.insn_offset)
    touching = {"x": is_data, "y": lambda insn: isinstance(insn, Store), "insn": lambda _: True}
    insns = [ISA.decode(word) for word in instructions_of(module)]
    index = [touching[what](insn) for insn in insns].index(True)
    session = sessions["tsim"]
    with_memory(session, MemoryModel(error_ranges=((address, address + 1),)))
    error = failure(session)
    assert isinstance(error, ExecutionFault)
    assert (error.cause, error.index) == (cause, index)
    tsim(session).memory_model = MemoryModel()
    check(session)


def test_a_cycle_limit_says_where_the_core_stands(module: vitral.Module) -> None:
    with vitral.Session(module, device="tsim", max_cycles=300) as session:
        error = failure(session)
        assert "time-out: " in str(error)
        assert " at instruction " in str(error)
        tsim(session).max_cycles = None
        check(session)


@pytest.mark.parametrize(
    ("feeds", "text"),
    [
        ({}, "input 'x' must be int8 (1, 17, 5, 7), it is missing"),
        ({"x": CASE.x[0]}, "input 'x' must be int8 (1, 17, 5, 7), got int8 (17, 5, 7)"),
        ({"x": CASE.x.astype(np.float32)}, "got float32 (1, 17, 5, 7)"),
        ({"x": CASE.x.astype(np.uint8)}, "got uint8"),
        ({"x": CASE.x, "z": CASE.x}, "the model has no input 'z'; it takes 'x'"),
        ({"X": CASE.x}, "the model has no input 'X'; it takes 'x'"),
        ({"x": "text"}, "input 'x' must be int8"),
        ({"x": None}, "input 'x' must be int8"),
    ],
)
@pytest.mark.parametrize("device", DEVICES)
def test_wrong_inputs(
    device: str, feeds: dict, text: str, sessions: dict[str, vitral.Session]
) -> None:
    session = sessions[device]
    with pytest.raises(DeviceError) as caught:
        session.run(None, feeds)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    check(session)


def test_wrong_output_name(sessions: dict[str, vitral.Session]) -> None:
    with pytest.raises(DeviceError, match=r"the model has no output 'z'; it gives 'y'"):
        sessions["fsim"].run(["z"], {"x": CASE.x})
    check(sessions["fsim"])


def test_a_time_out_in_seconds_leaves_a_working_session(module: vitral.Module) -> None:
    big = compiled("V17", "qdq")
    case = case_named("V17")
    with vitral.Session(big, device="tsim", timeout=0.05) as session:
        with pytest.raises(DeviceError, match=r"^segment0: .*time-out") as caught:
            session.run(None, {"x": case.x})
        assert "\n" not in str(caught.value)
    with vitral.Session(module, device="tsim", timeout=60) as session:
        check(session)
    assert threading.active_count() < 50
