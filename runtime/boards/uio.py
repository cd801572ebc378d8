"""An interrupt through Linux's userspace I/O: a file that counts."""

import os
import select
import struct

from vitral.errors import DeviceError
from vitral.runtime.boards.system import ROOT_HINT, System

__all__ = ["UioInterrupt", "find_uio"]

CLASS = "/sys/class/uio"
ENABLE = struct.pack("=I", 1)
COUNT_BYTES = 4


def find_uio(system: System, name: str) -> str:
    """Number of the UIO device with this name in the device tree, as ``uio0``.

    Raises
    ------
    DeviceError
        When there is none.
    """
    found = {
        entry: system.read(f"{CLASS}/{entry}/name")
        for entry in system.names(CLASS)
        if system.exists(f"{CLASS}/{entry}/name")
    }
    for entry, what in found.items():
        if name in (entry, what):
            return entry
    known = ", ".join(f"{entry} ({what})" for entry, what in found.items()) or "none"
    raise DeviceError(
        f"no UIO device {name!r} in {system.path(CLASS)}, there are: {known}; load uio_pdrv_genirq"
        " and an overlay that names the core"
    )


class UioInterrupt:
    """The interrupt of a UIO device.

    The kernel masks it each time it comes; writing 1 lets the next one through.

    Parameters
    ----------
    system : System
        Where /dev is.
    device : str
        ``uio0`` and the like.

    Raises
    ------
    DeviceError
        When the device cannot be opened.
    """

    def __init__(self, system: System, device: str) -> None:
        path = system.path(f"/dev/{device}")
        try:
            self._file: int | None = os.open(path, os.O_RDWR)
        except PermissionError:
            raise DeviceError(f"{path}: no permission; {ROOT_HINT}") from None
        except OSError as error:
            raise DeviceError(f"{path}: {(error.strerror or str(error)).lower()}") from None

    def arm(self) -> None:
        while self.wait(0):
            pass  # one that nobody waited for
        os.write(self._handle(), ENABLE)

    def wait(self, seconds: float) -> bool:
        handle = self._handle()
        ready, _, _ = select.select([handle], [], [], max(seconds, 0.0))
        if ready:
            os.read(handle, COUNT_BYTES)
        return bool(ready)

    def _handle(self) -> int:
        if self._file is None:
            raise DeviceError("the interrupt is closed")
        return self._file

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
