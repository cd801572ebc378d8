"""The trained network on a simulated board: the bytes of fsim, the cycles of tsim."""

from collections.abc import Iterator

import numpy as np
import pytest
from digits import INT8_MODEL, load_images, model_input

import vitral
from vitral.errors import ExecutionFault
from vitral.program import MemoryModel
from vitral.runtime.boards.device import BoardDevice
from vitral.sim.board import FunctionalLogic, Logic, SimulatedBoard
from vitral.sim.board.rtl import RtlLogic

pytestmark = [pytest.mark.board, pytest.mark.xdist_group("tsim")]
SLOW_MEMORY = MemoryModel(latency=200, write_latency=100)


@pytest.fixture(scope="module")
def module() -> vitral.Module:
    return vitral.compile(INT8_MODEL)


@pytest.fixture(scope="module")
def expected(module: vitral.Module) -> Iterator[list[np.ndarray]]:
    with vitral.Session(module, "fsim") as session:
        yield [
            session.run(None, {"image": model_input(pixels)})[0]
            for pixels in load_images("demo").pixels[:6]
        ]


def logic(name: str, module: vitral.Module, model: MemoryModel | None = None) -> Logic:
    if name == "functional":
        return FunctionalLogic(module.config)
    return RtlLogic(module.config, memory_model=model)


@pytest.mark.parametrize("interrupt", [False, True], ids=["polled", "interrupt"])
@pytest.mark.parametrize("name", ["functional", "rtl"])
def test_same_bytes(
    name: str, interrupt: bool, module: vitral.Module, expected: list[np.ndarray]
) -> None:
    board = SimulatedBoard(logic(name, module), seed=4, interrupt=interrupt)
    with vitral.Session(module, BoardDevice(module.config, board), timeout=60) as session:
        for pixels, logits in zip(load_images("demo").pixels, expected, strict=False):
            (found,) = session.run(None, {"image": model_input(pixels)})
            np.testing.assert_array_equal(found, logits)


@pytest.mark.parametrize("model", [None, SLOW_MEMORY], ids=["yardstick", "slow"])
def test_same_cycles_as_tsim(module: vitral.Module, model: MemoryModel | None) -> None:
    feeds = {"image": model_input(load_images("demo").pixels[0])}
    with vitral.Session(module, "tsim", memory_model=model) as session:
        session.run(None, feeds)
        (wanted,) = session.outcomes()
    board = SimulatedBoard(logic("rtl", module, model), seed=9)
    with vitral.Session(module, BoardDevice(module.config, board), timeout=60) as session:
        session.run(None, feeds)
        (found,) = session.outcomes()
        profile = session.profile()
    assert (found.cycles, found.counters) == (wanted.cycles, wanted.counters)
    accelerated = [entry for entry in profile if entry.device == "board"]
    assert accelerated
    assert accelerated[0].counters["cycles"] == wanted.cycles


def test_a_hung_bus_is_one_line(module: vitral.Module) -> None:
    """Memory that takes longer than the watchdog waits."""
    board = SimulatedBoard(logic("rtl", module, MemoryModel(latency=50_000)))
    device = BoardDevice(module.config, board, watchdog=2_000)
    with vitral.Session(module, device, timeout=60) as session:
        with pytest.raises(ExecutionFault, match=r"segment0: memory bus does not answer"):
            session.run(None, {"image": model_input(load_images("demo").pixels[0])})
