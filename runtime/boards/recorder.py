"""Keeps what a board says: every access to registers and memory, as a file of JSON lines.

| line | meaning |
|---|---|
| ``{"vitral": 1, "board": name, "core": digest, "config": {...}}`` | first line |
| ``["allocate", nbytes, address, line_bytes]`` | memory given by the board |
| ``["r", offset, value, count]`` | `count` reads in a row with this value |
| ``["w", offset, value]`` | register write |
| ``["flush", offset, nbytes, sha256]`` | what the processor had written there |
| ``["invalidate", offset, nbytes, sha256]`` | what the processor sees there afterwards |
| ``["arm"]``, ``["irq", came]`` | interrupt let through; whether it came in time |
"""

import hashlib
import json
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.runtime.boards.interfaces import Board, Interrupt, RegisterWindow, SharedMemory

__all__ = ["RECORD_VERSION", "Recorder", "memory_digest"]

RECORD_VERSION = 1


def memory_digest(data: npt.NDArray[np.uint8]) -> str:
    """SHA-256 (hex) of bytes as records have them."""
    return hashlib.sha256(data.tobytes()).hexdigest()


class _Log:
    """Lines of a record; reads in a row with one value are one line."""

    def __init__(self, path: "str | os.PathLike[str]", head: dict[str, Any]) -> None:
        try:
            self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115  # closed in `close`
        except OSError as error:
            raise DeviceError(f"{os.fspath(path)}: cannot write: {error.strerror}") from None
        self._read: list[Any] | None = None
        self._line(head)

    def add(self, *entry: Any) -> None:
        if entry[0] == "r" and self._read is not None and self._read[:3] == list(entry):
            self._read[3] += 1
            return
        self._end_reads()
        if entry[0] == "r":
            self._read = [*entry, 1]
        else:
            self._line(list(entry))

    def _end_reads(self) -> None:
        if self._read is not None:
            self._line(self._read)
            self._read = None

    def _line(self, value: Any) -> None:
        self._file.write(json.dumps(value) + "\n")

    def close(self) -> None:
        if not self._file.closed:
            self._end_reads()
            self._file.close()


class _Window:
    def __init__(self, window: RegisterWindow, log: _Log) -> None:
        self._window, self._log = window, log

    def read(self, offset: int) -> int:
        value = self._window.read(offset)
        self._log.add("r", offset, value)
        return value

    def write(self, offset: int, value: int) -> None:
        self._log.add("w", offset, value)  # first: a write may hang the board
        self._window.write(offset, value)


class _Memory:
    def __init__(self, memory: SharedMemory, log: _Log) -> None:
        self._memory, self._log = memory, log
        self.address, self.data = memory.address, memory.data
        self.line_bytes = memory.line_bytes
        log.add("allocate", self.data.size, self.address, self.line_bytes)

    def flush(self, offset: int, nbytes: int) -> None:
        self._log.add("flush", offset, nbytes, self._digest(offset, nbytes))
        self._memory.flush(offset, nbytes)

    def invalidate(self, offset: int, nbytes: int) -> None:
        self._memory.invalidate(offset, nbytes)
        self._log.add("invalidate", offset, nbytes, self._digest(offset, nbytes))

    def _digest(self, offset: int, nbytes: int) -> str:
        return memory_digest(self.data[offset : offset + nbytes])

    def close(self) -> None:
        self._memory.close()


class _Interrupt:
    def __init__(self, interrupt: Interrupt, log: _Log) -> None:
        self._interrupt, self._log = interrupt, log

    def arm(self) -> None:
        self._interrupt.arm()
        self._log.add("arm")

    def wait(self, seconds: float) -> bool:
        came = self._interrupt.wait(seconds)
        self._log.add("irq", came)
        return came

    def close(self) -> None:
        self._interrupt.close()


class Recorder:
    """A board that behaves as another one and writes down all that passes.

    Parameters
    ----------
    board : Board
        The one to listen to.
    config : CoreConfig
        Of its core; kept in the record.
    path : path
        File to write; replaced when it exists.

    Raises
    ------
    DeviceError
        When the file cannot be written.
    """

    def __init__(self, board: Board, config: CoreConfig, path: "str | os.PathLike[str]") -> None:
        self._board = board
        self._log = _Log(
            path,
            {
                "vitral": RECORD_VERSION,
                "board": board.name,
                "core": config.digest,
                "config": config.to_dict(),
                "interrupt": board.interrupt is not None,
            },
        )
        self.name = board.name
        self.registers: RegisterWindow = _Window(board.registers, self._log)
        self.interrupt: Interrupt | None = (
            None if board.interrupt is None else _Interrupt(board.interrupt, self._log)
        )

    def allocate(self, nbytes: int) -> SharedMemory:
        return _Memory(self._board.allocate(nbytes), self._log)

    def close(self) -> None:
        self._board.close()
        self._log.close()
