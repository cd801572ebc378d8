"""Shares out a device's memory in pages."""

import threading

from vitral.errors import DeviceError
from vitral.program import PAGE

__all__ = ["Space"]


class Space:
    """Ranges of a region of `nbytes` bytes, first fit."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes // PAGE * PAGE
        self._taken: dict[int, int] = {}
        self._lock = threading.Lock()

    @property
    def free_bytes(self) -> int:
        return self.nbytes - sum(self._taken.values())

    def take(self, nbytes: int) -> int:
        """Offset of a range of at least `nbytes` bytes, whole pages; DeviceError when full."""
        size = -(-max(nbytes, 1) // PAGE) * PAGE
        with self._lock:
            offset = self._find(size)
            self._taken[offset] = size
        return offset

    def give_back(self, offset: int) -> None:
        with self._lock:
            del self._taken[offset]

    def _find(self, size: int) -> int:
        offset = 0
        for taken in sorted(self._taken):
            if taken - offset >= size:
                break
            offset = taken + self._taken[taken]
        if offset + size > self.nbytes:
            raise DeviceError(
                f"the module needs {size} bytes of device memory, the server has {self.nbytes} of"
                f" which {self.free_bytes} are free; wait for other clients, or give it more"
            )
        return offset
