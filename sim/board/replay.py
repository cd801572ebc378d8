"""A board that says what a real one said, and checks that the driver still asks the same."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import PAGE, Dram
from vitral.registers import register
from vitral.runtime.boards.interfaces import Interrupt, RegisterWindow, SharedMemory
from vitral.runtime.boards.recorder import RECORD_VERSION, memory_digest
from vitral.sim.board.logic import FunctionalLogic

__all__ = ["ReplayBoard", "read_record"]

POLLED = {register(f"{name}_state").offset for name in ("load", "compute", "store")}
STATUS = register("status").offset


IDLE_STATE = register("load_state")["wait"].insert(1)


def read_record(path: "str | os.PathLike[str]") -> tuple[dict[str, Any], list[list[Any]]]:
    """Head and entries of a record, as `vitral.runtime.boards.recorder` tells.

    Raises
    ------
    DeviceError
        When the file cannot be read, or is no record of this version.
    """
    name = os.fspath(path)
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        head, *entries = [json.loads(line) for line in lines]
        version = head["vitral"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DeviceError(f"{name}: no record of a board: {error}") from None
    if version != RECORD_VERSION:
        raise DeviceError(f"{name}: a record of version {version}, needs {RECORD_VERSION}")
    return head, entries


class ReplayBoard:
    """Answers register reads from a record; programs run on the functional simulator.

    So three things are checked: that the driver makes the accesses of the record in its order,
    that it puts the same bytes into memory, and that the board computed what the simulator does.
    How often status and state registers are polled, and when, is free.

    Parameters
    ----------
    path : path
        The record.

    Raises
    ------
    DeviceError
        When it is none; and from any access that is not the record's, with its line.
    """

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        head, entries = read_record(path)
        self.name = f"record of {head['board']}"
        self.config = CoreConfig(**head["config"])
        self.script = Script(os.fspath(path), entries)
        self.logic = FunctionalLogic(self.config)
        self.registers: RegisterWindow = _Window(self)
        self.interrupt: Interrupt | None = _Line(self.script) if head["interrupt"] else None

    def allocate(self, nbytes: int) -> SharedMemory:
        size, address, line_bytes = self.script.take("allocate")
        if size < nbytes:
            raise DeviceError(f"{self.script.place}: {size} bytes allocated, now asked {nbytes}")
        memory = _Memory(self.script, size, address, line_bytes)
        self.logic.attach(Dram(address, memory.data))
        return memory

    def close(self) -> None:
        """Nothing to give back; whether all was replayed is `script.finished`."""


class Script:
    """The entries of a record, taken in order."""

    def __init__(self, name: str, entries: Sequence[Sequence[Any]]) -> None:
        self._name = name
        self._entries = entries
        self._next = 0
        self._status = 0

    @property
    def place(self) -> str:
        """File and line of the next entry; the head is line 1."""
        return f"{self._name}:{self._next + 2}"

    @property
    def finished(self) -> bool:
        """Whether everything that the board was asked has been asked again."""
        self._leave_polling()
        return self._next == len(self._entries)

    def take(self, *wanted: Any) -> Sequence[Any]:
        """The rest of the next entry, which must begin like this."""
        self._leave_polling()
        entry = list(self._entries[self._next]) if self._next < len(self._entries) else ["the end"]
        if entry[: len(wanted)] != list(wanted):
            raise DeviceError(
                f"{self.place}: the board was asked {_text(entry)}, the driver asks {_text(wanted)}"
            )
        self._next += 1
        return entry[len(wanted) :]

    def poll(self, offset: int) -> int:
        """A status or state register: the next that the board said while it was polled."""
        at = self._next
        while at < len(self._entries) and _is_poll(self._entries[at]):
            entry = self._entries[at]
            if entry[0] == "r" and entry[1] == offset:
                if offset == STATUS:
                    self._next, self._status = at + 1, entry[2]
                return entry[2]
            at += 1
        return self._status if offset == STATUS else IDLE_STATE

    def _leave_polling(self) -> None:
        """Go past polls that this driver did not need; an unseen status ends that."""
        while self._next < len(self._entries):
            entry = self._entries[self._next]
            if not _is_poll(entry) or (entry[:2] == ["r", STATUS] and entry[2] != self._status):
                return
            self._next += 1


def _is_poll(entry: Sequence[Any]) -> bool:
    return entry[0] == "irq" or (entry[0] == "r" and entry[1] in POLLED | {STATUS})


def _text(entry: Sequence[Any]) -> str:
    return " ".join(f"{part:#x}" if isinstance(part, int) else str(part) for part in entry)


class _Window:
    def __init__(self, board: ReplayBoard) -> None:
        self._board = board

    def read(self, offset: int) -> int:
        script = self._board.script
        if offset == STATUS or offset in POLLED:
            return script.poll(offset)
        return script.take("r", offset)[0]

    def write(self, offset: int, value: int) -> None:
        self._board.script.take("w", offset, value)
        self._board.logic.write(offset, value)


class _Memory:
    """Memory without a cache: what the driver puts there and the simulator computes."""

    def __init__(self, script: Script, size: int, address: int, line_bytes: int) -> None:
        self.address = address
        self.line_bytes = line_bytes
        self.data = np.zeros(-(-size // PAGE) * PAGE, np.uint8)
        self._script = script

    def flush(self, offset: int, nbytes: int) -> None:
        self._same("flush", offset, nbytes)

    def invalidate(self, offset: int, nbytes: int) -> None:
        self._same("invalidate", offset, nbytes)

    def _same(self, what: str, offset: int, nbytes: int) -> None:
        place = self._script.place
        (recorded,) = self._script.take(what, offset, nbytes)
        if memory_digest(self.data[offset : offset + nbytes]) != recorded:
            raise DeviceError(
                f"{place}: {what} of {nbytes} bytes at offset {offset}: other bytes than on the"
                " board"
            )

    def close(self) -> None:
        """Nothing to give back."""


class _Line:
    def __init__(self, script: Script) -> None:
        self._script = script

    def arm(self) -> None:
        self._script.take("arm")

    def wait(self, seconds: float) -> bool:
        return True

    def close(self) -> None:
        """Nothing to give back."""
