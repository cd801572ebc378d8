"""The memory outside the core: one region of bytes at a base address."""

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError

__all__ = ["GUARD", "PAGE", "Dram"]

PAGE = 4096
GUARD = 0xA5
"""Fills bytes that no program may touch, so that a stray write shows."""

Bytes = npt.NDArray[np.uint8]


class Dram:
    """One region of memory that programs read and write in place.

    An access outside it is answered with a bus error (BUS_READ, BUS_WRITE).

    Parameters
    ----------
    base : int
        Byte address of ``data[0]``, a multiple of 4096.
    data : numpy.ndarray
        uint8 (size,), C-contiguous and writeable, size a multiple of 4096. Kept, not copied.

    Raises
    ------
    DeviceError
        For a base, a size or an array of another kind.
    """

    def __init__(self, base: int, data: Bytes) -> None:
        if data.dtype != np.uint8 or data.ndim != 1:
            raise DeviceError(
                f"DRAM data must be uint8 (size,), got {data.dtype} {data.shape}; use .view(uint8)"
            )
        if not data.flags.c_contiguous or not data.flags.writeable:
            raise DeviceError("DRAM data must be contiguous and writeable; pass a copy")
        if base % PAGE or not data.size or data.size % PAGE:
            raise DeviceError(
                f"DRAM base and size must be multiples of {PAGE}, got {base:#x} and {data.size}"
            )
        if base < 0 or base + data.size > 1 << 64:
            raise DeviceError(f"DRAM must lie in 0..2**64, got {base:#x} + {data.size:#x}")
        self.base = base
        self.data = data

    @classmethod
    def filled(cls, base: int, size: int, value: int = 0) -> "Dram":
        """A new region of `size` bytes (rounded up to pages), each of them `value`."""
        pages = max(1, -(-size // PAGE))
        return cls(base, np.full(pages * PAGE, value, np.uint8))

    @property
    def end(self) -> int:
        """One past the last byte address."""
        return self.base + self.data.size

    def copy(self) -> "Dram":
        return Dram(self.base, self.data.copy())

    def holds(self, address: int, size: int) -> bool:
        """Whether bytes ``address .. address + size`` lie in the region."""
        return self.base <= address and address + size <= self.end

    def view(self, address: int, size: int) -> Bytes:
        """The bytes from `address` on, uint8 (size,), as a window on the memory itself.

        Raises
        ------
        DeviceError
            When they do not all lie in the region.
        """
        if size < 0 or not self.holds(address, size):
            raise DeviceError(
                f"DRAM holds {self.base:#x}..{self.end:#x}, asked for {size} bytes at {address:#x}"
            )
        return self.data[address - self.base : address - self.base + size]

    def read(self, address: int, size: int) -> bytes:
        """A copy of `size` bytes; DeviceError outside the region."""
        return self.view(address, size).tobytes()

    def write(self, address: int, data: "bytes | npt.NDArray[np.generic]") -> None:
        """Write bytes, or an array's elements as they lie in memory; DeviceError outside."""
        raw = np.frombuffer(data if isinstance(data, bytes) else data.tobytes(), np.uint8)
        self.view(address, raw.size)[:] = raw
