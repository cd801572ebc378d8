"""Windows and memory in mapped files, and a core behind one that only sees the file."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from board_programs import CONFIG, doubled, image
from hand_made import double_module

from vitral.config import ISA_VERSION
from vitral.errors import DeviceError
from vitral.isa import Memory
from vitral.program import Dram, Launch
from vitral.registers import MAGIC, register
from vitral.runtime.boards.device import BoardDevice
from vitral.runtime.boards.interfaces import Interrupt, RegisterWindow
from vitral.runtime.boards.mapped import MappedMemory, MappedWindow, map_file
from vitral.runtime.session import Session
from vitral.sim.functional import FunctionalSimulator

pytestmark = pytest.mark.board
HINT = "run as root"


def words(path: Path, offset: int, nbytes: int) -> MappedWindow:
    return MappedWindow(map_file(path, offset, nbytes, uncached=True, hint=HINT))


def test_a_window_starts_anywhere_in_a_page(tmp_path: Path) -> None:
    path = tmp_path / "mem"
    path.write_bytes(bytes(3 * 4096))
    window = words(path, 4096 + 0x80, 128)
    window.write(0, 0xDEADBEEF)
    window.write(124, 1)
    assert window.read(0) == 0xDEADBEEF
    raw = path.read_bytes()
    assert raw[4096 + 0x80 :][:4] == bytes.fromhex("efbeadde")
    assert raw[4096 + 0xFC :][:4] == bytes.fromhex("01000000")
    for offset in (128, 6, -4):
        with pytest.raises(DeviceError, match=f"register offset {offset:#x}: needs a multiple"):
            window.read(offset)
    window.close()


def test_files_that_cannot_be_mapped(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"none: not there; run as root"):
        words(tmp_path / "none", 0, 4096)
    short = tmp_path / "short"
    short.write_bytes(bytes(10))
    with pytest.raises(DeviceError, match="short: cannot map 4096 bytes at 0x0"):
        words(short, 0, 4096)


class FileBoard:
    """A board whose registers and memory are plain files, seen by another thread."""

    name = "files"
    interrupt: Interrupt | None = None

    def __init__(self, folder: Path, base: int) -> None:
        self.base = base
        self.registers_file, self.memory_file = folder / "registers", folder / "memory"
        self.registers_file.write_bytes(bytes(4096))
        self.memory_file.write_bytes(bytes(1 << 16))
        self.registers: RegisterWindow = words(self.registers_file, 0, 4096)

    def allocate(self, nbytes: int) -> MappedMemory:
        mapping = map_file(self.memory_file, 0, nbytes, uncached=True, hint=HINT)
        return MappedMemory(mapping, self.base)

    def close(self) -> None:
        """Nothing to give back."""


class FileCore:
    """Runs one program when the file's control word says so."""

    def __init__(self, board: FileBoard) -> None:
        self._window = words(board.registers_file, 0, 4096)
        data = np.memmap(board.memory_file, np.uint8, "r+").view(np.ndarray)
        self._dram = Dram(board.base, data)
        self._simulator = FunctionalSimulator(CONFIG)
        for name, value in (("id", MAGIC), ("version", ISA_VERSION), ("digest", CONFIG.digest32)):
            self._window.write(register(name).offset, value)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _value(self, name: str) -> int:
        entry = register(name)
        places = range(entry.words)
        return sum(self._window.read(entry.offset + 4 * n) << 32 * n for n in places)

    def _serve(self) -> None:
        start = register("control")["start"]
        until = time.monotonic() + 20
        while not start.extract(self._value("control")) and time.monotonic() < until:
            time.sleep(0.001)
        launch = Launch(
            insn_base=self._value("insn_base"),
            insn_count=self._value("insn_count"),
            bases={memory: self._value(f"{memory.name.lower()}_base") for memory in Memory},
            limit_low=self._value("limit_low"),
            limit_high=self._value("limit_high"),
        )
        outcome = self._simulator.run(launch, self._dram)
        word = register("status")["done"].mask if outcome.ok else 0
        self._window.write(register("status").offset, word)


def test_a_core_that_sees_files_only(tmp_path: Path) -> None:
    board = FileBoard(tmp_path, 0x2000_0000)
    core = FileCore(board)
    x = image()
    with Session(double_module(), BoardDevice(CONFIG, board), timeout=10) as session:
        (y,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, doubled(x))
    core._thread.join()
