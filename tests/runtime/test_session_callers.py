"""Session: outputs belong to the caller, threads take turns, and slips are named in one line."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hand_made import double_module

from vitral.errors import DeviceError
from vitral.runtime.module import CpuStep, Module, TensorInfo
from vitral.runtime.session import Session

SHAPE = (1, 16, 2, 3)
INFO = TensorInfo(name="x", shape=(2, 3), dtype="int8")


def arrays(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(8)
    return [rng.integers(-128, 128, SHAPE).astype(np.int8) for _ in range(count)]


def without_programs(*outputs: str, **parts: Any) -> Module:
    """A module that hands int8 (2, 3) tensors on."""
    infos = tuple(replace(INFO, name=name) for name in outputs)
    return replace(
        double_module(), inputs=(INFO,), outputs=infos, **({"steps": (), "image": {}} | parts)
    )


def test_an_input_that_is_an_output_is_copied() -> None:
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    with Session(without_programs("x")) as session:
        (y,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, x)
    assert not np.shares_memory(x, y)


def test_a_reshaped_input_is_copied() -> None:
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    step = CpuStep(
        name="r", op="reshape", inputs=("x",), outputs=("y",), attributes={"shape": (2, 3)}
    )
    with Session(without_programs("y", steps=(step,))) as session:
        first, second = session.run(["y", "y"], {"x": x})
    assert not any(np.shares_memory(a, b) for a, b in ((x, first), (first, second)))


def test_writing_to_a_constant_output_changes_no_later_run() -> None:
    """The session's own constants stay as they are, whatever is done with a result."""
    constant = np.arange(6, dtype=np.int8).reshape(2, 3)
    step = CpuStep(name="c", op="constant", inputs=(), outputs=("y",), constants=("c",))
    module = without_programs("y", steps=(step,), arrays={"c": constant.copy()})
    with Session(module) as session:
        (y,) = session.run(None, {"x": constant})
        y[...] = 99
        np.testing.assert_array_equal(session.run(None, {"x": constant})[0], constant)


@pytest.mark.parametrize("device", ["fsim", "reference"])
def test_threads_that_share_a_session_get_their_own_results(device: str) -> None:
    feeds = arrays(4)
    wrong: list[int] = []

    def work(number: int, session: Session) -> None:
        want = (2 * feeds[number].astype(np.int64)).astype(np.int8)
        for _ in range(25):
            (y,) = session.run(None, {"x": feeds[number]})
            if not np.array_equal(y, want):
                wrong.append(number)

    with Session(double_module(), device=device) as session:
        threads = [threading.Thread(target=work, args=(n, session)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("names", "feeds", "text"),
    [
        (None, None, "inputs must be arrays by name, like {'x': array}, got NoneType"),
        (None, [np.zeros(SHAPE, np.int8)], "inputs must be arrays by name"),
        (None, {"x": [[1], [1, 2]]}, "input 'x' must be int8 .* got nested lists of unequal"),
        ("y", {"x": np.zeros(SHAPE, np.int8)}, r"output names must be a list, like \['y'\]"),
    ],
)
def test_a_wrong_call_is_named(names: Any, feeds: Any, text: str) -> None:
    with Session(double_module(), device="null") as session:
        with pytest.raises(DeviceError, match=text) as caught:
            session.run(names, feeds)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), 1e300, "3"])
def test_a_timeout_that_is_no_time_is_refused(seconds: Any) -> None:
    with pytest.raises(DeviceError, match="timeout must be more than 0 seconds"):
        Session(double_module(), device="null", timeout=seconds)
