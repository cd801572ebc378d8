"""The board interfaces over a serial link: registers, and the core's on-chip memory."""

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError
from vitral.runtime.boards.interfaces import Interrupt, RegisterWindow, SharedMemory
from vitral.runtime.serial.link import SerialLink
from vitral.serial_frames import MEMORY_WORD

__all__ = ["LinkedMemory", "LinkedRegisters", "SerialBoard"]


class LinkedRegisters:
    """A register window at the other end of a link."""

    def __init__(self, link: SerialLink) -> None:
        self._link = link

    def read(self, offset: int) -> int:
        return self._link.read_register(offset)

    def write(self, offset: int, value: int) -> None:
        self._link.write_register(offset, value)


class LinkedMemory:
    """The core's memory; the view is a copy that `flush` and `invalidate` bring over the line."""

    address = 0
    line_bytes = MEMORY_WORD

    def __init__(self, link: SerialLink, nbytes: int) -> None:
        self._link = link
        self.data: npt.NDArray[np.uint8] = np.zeros(nbytes, np.uint8)

    def flush(self, offset: int, nbytes: int) -> None:
        first, end = self._lines(offset, nbytes)
        self._link.write_memory(first, self.data[first:end].tobytes())

    def invalidate(self, offset: int, nbytes: int) -> None:
        first, end = self._lines(offset, nbytes)
        read = self._link.read_memory(first, end - first)
        self.data[first:end] = np.frombuffer(read, np.uint8)

    def _lines(self, offset: int, nbytes: int) -> tuple[int, int]:
        end = offset + nbytes
        return offset - offset % MEMORY_WORD, end + -end % MEMORY_WORD

    def close(self) -> None:
        self.data = np.zeros(0, np.uint8)


class SerialBoard:
    """A core without a processor, behind `vitral.runtime.boards.interfaces.Board`.

    It is polled: the line has no interrupt.

    Parameters
    ----------
    link : SerialLink
        Owned from now on.
    """

    def __init__(self, link: SerialLink) -> None:
        self.name = link.name
        self._link = link
        self.registers: RegisterWindow = LinkedRegisters(link)
        self.interrupt: Interrupt | None = None

    def allocate(self, nbytes: int) -> SharedMemory:
        if nbytes > self._link.memory_bytes:
            raise DeviceError(
                f"{self.name}: the module needs {nbytes} bytes of memory, the board has"
                f" {self._link.memory_bytes} on chip; compile a smaller network for it"
            )
        return LinkedMemory(self._link, nbytes)

    def close(self) -> None:
        self._link.close()
