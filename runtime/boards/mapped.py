"""Registers and memory through files that the kernel maps: /dev/mem, UIO, u-dma-buf."""

import mmap
import os
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError

__all__ = ["Mapping", "MappedMemory", "MappedWindow", "Sync", "map_file"]

WORD_BYTES = 4


class Sync(Protocol):
    """Moves a range of a mapped region between caches and memory."""

    def for_device(self, offset: int, nbytes: int) -> None: ...

    def for_cpu(self, offset: int, nbytes: int) -> None: ...


class Mapping:
    """Bytes of a file in this process's memory, from any offset on.

    Attributes
    ----------
    data : numpy.ndarray
        uint8 (nbytes,), the file itself.
    """

    def __init__(self, path: Path, offset: int, nbytes: int, *, uncached: bool) -> None:
        flags = os.O_RDWR | (os.O_SYNC if uncached else 0)
        inside = offset % mmap.PAGESIZE  # mappings start at a page
        file = os.open(path, flags)
        try:
            self._map = mmap.mmap(file, inside + nbytes, offset=offset - inside)
        finally:
            os.close(file)
        self.data: npt.NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)[inside:]

    def close(self) -> None:
        """Unmap; where arrays on it are still alive, when the last one dies."""
        self.data = np.zeros(0, np.uint8)
        try:
            self._map.close()
        except BufferError:
            return


def map_file(path: Path, offset: int, nbytes: int, *, uncached: bool, hint: str) -> Mapping:
    """Map `nbytes` of a file or device from a byte offset on.

    `uncached` opens it so that the processor keeps nothing of it in its caches.

    Raises
    ------
    DeviceError
        When it is not there, may not be opened or is too short; ends with `hint`.
    """
    try:
        return Mapping(path, offset, nbytes, uncached=uncached)
    except PermissionError:
        raise DeviceError(f"{path}: no permission; {hint}") from None
    except FileNotFoundError:
        raise DeviceError(f"{path}: not there; {hint}") from None
    except (OSError, ValueError) as error:
        raise DeviceError(f"{path}: cannot map {nbytes} bytes at {offset:#x}: {error}") from None


class MappedWindow:
    """A register window in a mapping; every access is one load or store of 32 bits.

    Parameters
    ----------
    mapping : Mapping
        Uncached. Its length is a multiple of 4.
    """

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._words = mapping.data.view(np.uint32)

    def read(self, offset: int) -> int:
        return int(self._words[self._index(offset)])

    def write(self, offset: int, value: int) -> None:
        self._words[self._index(offset)] = value

    def _index(self, offset: int) -> int:
        size = WORD_BYTES * self._words.size
        if offset % WORD_BYTES or not 0 <= offset < size:
            raise DeviceError(
                f"register offset {offset:#x}: needs a multiple of {WORD_BYTES} below {size:#x}"
            )
        return offset // WORD_BYTES

    def close(self) -> None:
        self._words = np.zeros(0, np.uint32)
        self._mapping.close()


class MappedMemory:
    """Memory for the core in a mapping.

    Parameters
    ----------
    mapping : Mapping
        The region.
    address : int
        Its address on the core's memory port.
    sync : Sync or None
        Cache operations; None when the mapping is uncached, or the port coherent.
    line_bytes : int
        Cache line of the processor, where there is a `sync`.
    """

    def __init__(
        self, mapping: Mapping, address: int, *, sync: Sync | None = None, line_bytes: int = 1
    ) -> None:
        self.address = address
        self.data = mapping.data
        self.line_bytes = 1 if sync is None else line_bytes
        self._mapping = mapping
        self._sync = sync

    def flush(self, offset: int, nbytes: int) -> None:
        if self._sync is not None:
            self._sync.for_device(offset, nbytes)
        elif nbytes:
            # an uncached write may wait in the processor's write buffer: a read of the same
            # place comes back after it has left
            int(self.data[offset + nbytes - 1])

    def invalidate(self, offset: int, nbytes: int) -> None:
        if self._sync is not None:
            self._sync.for_cpu(offset, nbytes)

    def close(self) -> None:
        self.data = np.zeros(0, np.uint8)
        self._mapping.close()
