"""Several inputs at once: the host works on one while the device works on another."""

import threading
from collections.abc import Callable, Collection

import numpy as np
import pytest
from hand_made import mixed_module

from vitral.errors import DeviceError
from vitral.program import Launch, Outcome
from vitral.runtime.devices.reference import ReferenceDevice
from vitral.runtime.session import Session

LIMIT = 20.0
"""Seconds after which a thread that waits for another one gives up, and the test fails."""


SHAPE = (1, 16, 2, 3)


class Watched(ReferenceDevice):
    """Calls `before` with the number of each run, before it."""

    before: Callable[[int], None] = staticmethod(lambda number: None)
    runs = 0

    def run(
        self, launch: Launch, *, timeout: float | None = None, marks: Collection[int] = ()
    ) -> Outcome:
        self.runs += 1
        self.before(self.runs)
        return super().run(launch, timeout=timeout, marks=marks)


def _batches(count: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [{"x": rng.integers(-128, 128, SHAPE).astype(np.int8)} for _ in range(count)]


def doubled(x: np.ndarray) -> np.ndarray:
    return (2 * x.astype(np.int64)).astype(np.int8)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> list[threading.Event]:
    """CPU operators of the module; the first one sets an event for each image it sees."""
    seen = [threading.Event() for _ in range(8)]
    numbers = iter(seen)

    def lookup(codes: np.ndarray, table: np.ndarray) -> np.ndarray:
        return table[codes.view(np.uint8)]

    def reshape(x: np.ndarray, **attributes: object) -> np.ndarray:
        next(numbers).set()
        return x.reshape(attributes["shape"])  # pyright: ignore  # the attribute's own type

    monkeypatch.setattr("vitral.runtime.steps.OPERATORS", {"lookup": lookup, "reshape": reshape})
    return seen


def test_results_come_in_order(host: list[threading.Event]) -> None:
    batches = _batches(5)
    module = mixed_module()
    with Session(module, Watched(module.config)) as session:
        results = session.run_many(None, batches)
        assert [len(outputs) for outputs in results] == [1] * 5
        for (y,), batch in zip(results, batches, strict=True):
            np.testing.assert_array_equal(y, doubled(batch["x"]))
        assert [entry.device for entry in session.profile() if not entry.direction]
        np.testing.assert_array_equal(session.run(None, batches[1])[0], results[1][0])


def test_host_and_device_work_at_the_same_time(host: list[threading.Event]) -> None:
    """The device's first run does not begin before the host has begun the second image."""
    module = mixed_module()
    device = Watched(module.config)
    overlapped = []

    def before(number: int) -> None:
        if number == 1:
            overlapped.append(host[1].wait(LIMIT))

    device.before = before
    with Session(module, device) as session:
        session.run_many(None, _batches(3))
    assert overlapped == [True]


def test_the_device_has_one_run_at_a_time(host: list[threading.Event]) -> None:
    module = mixed_module()
    device = Watched(module.config)
    busy = threading.Lock()
    clashes = []
    inner = device._simulate  # pyright: ignore[reportPrivateUsage]

    def alone(*arguments: object) -> Outcome:
        clashes.append(not busy.acquire(blocking=False))
        try:
            return inner(*arguments)  # pyright: ignore[reportArgumentType]
        finally:
            busy.release()

    device._simulate = alone  # pyright: ignore
    with Session(module, device) as session:
        session.run_many(None, _batches(6))
    assert clashes == [False] * 6


def test_nothing_runs_when_an_input_is_wrong(host: list[threading.Event]) -> None:
    module = mixed_module()
    device = Watched(module.config)
    with Session(module, device) as session:
        with pytest.raises(DeviceError, match="x"):
            session.run_many(None, [*_batches(2), {"x": np.zeros(3, np.int8)}])
        assert device.runs == 0
        assert session.run_many(None, []) == []


def test_after_an_error_the_session_goes_on(host: list[threading.Event]) -> None:
    module = mixed_module()
    device = Watched(module.config)

    def before(number: int) -> None:
        if number == 2:
            raise DeviceError("the cable is out")

    device.before = before
    batches = _batches(6)
    with Session(module, device) as session:
        with pytest.raises(DeviceError, match="the cable is out"):
            session.run_many(None, batches)
        assert device.runs < 6
        (y,) = session.run(None, batches[0])
        np.testing.assert_array_equal(y, doubled(batches[0]["x"]))


def test_closed(host: list[threading.Event]) -> None:
    module = mixed_module()
    session = Session(module, Watched(module.config))
    session.close()
    with pytest.raises(DeviceError, match="closed"):
        session.run_many(None, _batches(1))
