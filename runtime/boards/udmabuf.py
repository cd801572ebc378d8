"""Memory from the u-dma-buf driver: contiguous, cached, with cache operations in sysfs."""

import threading

from vitral.errors import DeviceError
from vitral.runtime.boards.mapped import MappedMemory
from vitral.runtime.boards.system import System

__all__ = ["Udmabuf"]

CLASSES = ("/sys/class/u-dma-buf", "/sys/class/udmabuf")
"""Folder of the driver's current and of its former name."""
TO_DEVICE, FROM_DEVICE = 1, 2
UNIT = 16
"""The driver wants sizes in multiples of this."""
HINT = (
    "load the driver with: modprobe u-dma-buf udmabuf0=67108864, or name another buffer (memory=)"
)


class Udmabuf:
    """One buffer of the driver.

    Parameters
    ----------
    system : System
        Where sysfs and /dev are.
    name : str
        ``udmabuf0`` and the like.

    Raises
    ------
    DeviceError
        When there is no such buffer.
    """

    def __init__(self, system: System, name: str) -> None:
        self._system = system
        self._name = name
        self._lock = threading.Lock()
        for folder in CLASSES:
            if system.exists(f"{folder}/{name}"):
                self._folder = f"{folder}/{name}"
                break
        else:
            raise DeviceError(f"{system.path(CLASSES[0])}/{name}: no such buffer; {HINT}")
        self.nbytes = system.read_number(f"{self._folder}/size")
        self.address = system.read_number(f"{self._folder}/phys_addr")
        coherent = f"{self._folder}/dma_coherent"
        self.coherent = system.exists(coherent) and system.read_number(coherent) == 1

    def map(self, nbytes: int, *, address_offset: int, line_bytes: int) -> MappedMemory:
        """Its first `nbytes`; the core reaches them at `phys_addr` + `address_offset`.

        Raises
        ------
        DeviceError
            When it is smaller, or may not be opened.
        """
        if nbytes > self.nbytes:
            raise DeviceError(
                f"{self._name}: needs {nbytes} bytes, has {self.nbytes}; load u-dma-buf with"
                f" {self._name}={nbytes} or more"
            )
        mapping = self._system.map(f"/dev/{self._name}", 0, nbytes, uncached=False)
        return MappedMemory(
            mapping,
            self.address + address_offset,
            sync=None if self.coherent else self,
            line_bytes=line_bytes,
        )

    def for_device(self, offset: int, nbytes: int) -> None:
        self._sync("sync_for_device", TO_DEVICE, offset, nbytes)

    def for_cpu(self, offset: int, nbytes: int) -> None:
        self._sync("sync_for_cpu", FROM_DEVICE, offset, nbytes)

    def _sync(self, what: str, direction: int, offset: int, nbytes: int) -> None:
        first = offset - offset % UNIT
        size = -(-(offset + nbytes - first) // UNIT) * UNIT
        with self._lock:
            write = self._system.write
            write(f"{self._folder}/sync_offset", f"{first}")
            write(f"{self._folder}/sync_size", f"{size}")
            write(f"{self._folder}/sync_direction", f"{direction}")
            write(f"{self._folder}/{what}", "1")
