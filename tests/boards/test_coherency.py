"""Every flush and invalidate is needed: without one of them the simulated board gives other bytes.

Case by case: a buffer of 256 words and one of 1 MiB written, used by the core, and read back.
"""

import numpy as np
import pytest
from board_programs import CONFIG, check_doubles, doubled, image
from hand_made import double_module

from vitral.errors import DeviceError, ExecutionFault
from vitral.runtime.boards.device import BoardDevice
from vitral.runtime.session import Session
from vitral.sim.board import CachedMemory, FunctionalLogic, SimulatedBoard

pytestmark = pytest.mark.board


def nothing(memory: CachedMemory, offset: int, nbytes: int) -> None:
    """A cache operation that was forgotten."""


def session(seed: int | None, line_bytes: int = 32) -> tuple[Session, SimulatedBoard]:
    board = SimulatedBoard(FunctionalLogic(CONFIG), seed=seed, line_bytes=line_bytes)
    return Session(double_module(), BoardDevice(CONFIG, board)), board


def differs(seed: int | None) -> bool:
    opened, _ = session(seed)
    try:
        check_doubles(opened)
    except AssertionError:
        return True
    except DeviceError as error:  # a program that never reached memory ends in anything
        return isinstance(error, ExecutionFault) or "deadlock" in str(error)
    return False


@pytest.mark.parametrize("line_bytes", [32, 64])
@pytest.mark.parametrize("seed", [None, *range(8)])
def test_bytes_are_right_whatever_falls_out_of_the_cache(seed: int | None, line_bytes: int) -> None:
    opened, board = session(seed, line_bytes)
    check_doubles(opened)
    (region,) = board.regions
    assert region.dirty_lines == 0, "nothing may wait to be written over the core's results"
    assert region.flushes
    assert region.invalidates


@pytest.mark.parametrize("operation", ["flush", "invalidate"])
def test_without_it_bytes_are_wrong(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differs(None)
    monkeypatch.setattr(CachedMemory, operation, nothing)
    assert differs(None)


def test_invalidating_before_the_start_only_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = BoardDevice.run

    def run(device: BoardDevice, *args: object, **options: object) -> object:
        device.memory.invalidate(0, device.memory.data.size)
        monkeypatch.setattr(CachedMemory, "invalidate", nothing)
        try:
            return right(device, *args, **options)  # pyright: ignore[reportArgumentType]
        finally:
            monkeypatch.setattr(BoardDevice, "read", stale)

    def stale(device: BoardDevice, offset: int, nbytes: int) -> object:
        return device.memory.data[offset : offset + nbytes]

    monkeypatch.setattr(BoardDevice, "run", run)
    assert differs(None)


def test_flushing_after_the_start_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right, flush = BoardDevice.run, CachedMemory.flush

    def run(device: BoardDevice, *args: object, **options: object) -> object:
        outcome = right(device, *args, **options)  # pyright: ignore[reportArgumentType]
        flush(device.memory, 0, device.memory.data.size)  # pyright: ignore[reportArgumentType]
        return outcome

    monkeypatch.setattr(BoardDevice, "run", run)
    monkeypatch.setattr(CachedMemory, "flush", nothing)
    assert differs(None)


@pytest.mark.parametrize("offset", [0, 8, 24, 40])
def test_a_line_shared_by_input_and_result_is_right_for_both(offset: int) -> None:
    """The processor writes part of a line whose other part the core has written since."""
    board = SimulatedBoard(FunctionalLogic(CONFIG))
    device = BoardDevice(CONFIG, board)
    device.allocate(4096)
    (region,) = board.regions
    device.write(0, np.full(64, 1, np.uint8))
    region.dram[:64] = 2  # by the core
    device.write(offset, np.full(8, 3, np.uint8))
    expected = np.full(64, 2, np.uint8)
    expected[offset : offset + 8] = 3
    np.testing.assert_array_equal(region.dram[:64], expected)
    np.testing.assert_array_equal(device.read(0, 64), expected)


@pytest.mark.parametrize("shape", [(1, 16, 8, 8), (1, 512, 16, 128)])
def test_each_buffer_is_flushed_before_and_invalidated_after(shape: tuple) -> None:
    """256 words, and 1 MiB."""
    nbytes = int(np.prod(shape))
    assert nbytes in (4 * 256, 1 << 20)
    board = SimulatedBoard(FunctionalLogic(CONFIG), seed=5)
    device = BoardDevice(CONFIG, board)
    device.allocate(nbytes)
    (region,) = board.regions
    del region.flushes[:], region.invalidates[:]
    x = image(0, shape).view(np.uint8)
    device.write(0, x)
    assert (region.flushes, region.invalidates) == ([(0, nbytes)], [])
    np.testing.assert_array_equal(region.dram[:nbytes], x.ravel())
    region.dram[:nbytes] = doubled(x.ravel().view(np.int8)).view(np.uint8)  # what a core does
    assert (device.read(0, nbytes) == doubled(x.ravel().view(np.int8)).view(np.uint8)).all()
    assert region.invalidates == [(0, nbytes)]


def test_a_coherent_region_needs_no_edges() -> None:
    class Coherent(SimulatedBoard):
        def allocate(self, nbytes: int):
            memory = self.reserve(nbytes)
            memory.line_bytes = 1
            memory.data = memory.dram
            return memory

    device = BoardDevice(CONFIG, Coherent(FunctionalLogic(CONFIG)))
    device.allocate(4096)
    device.write(3, np.full(5, 9, np.uint8))
    assert device.read(3, 5).tolist() == [9] * 5
