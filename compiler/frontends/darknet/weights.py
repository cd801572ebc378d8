"""Reads and writes Darknet's .weights files: a header, then float32 values layer by layer."""

import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from vitral.errors import CompileError

__all__ = ["WeightReader", "write_weights"]

Array = npt.NDArray[np.float32]

_VERSION = (0, 2, 0)
_LONG_SINCE = 2
"""From version 0.2 on, the number of images seen in training takes 8 bytes instead of 4."""


class WeightReader:
    """Takes values in the order of the file."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 16:
            raise CompileError(f"weights file: needs a header of 16 bytes, got {len(data)} bytes")
        major, minor, _ = struct.unpack_from("<3i", data)
        if not (0 <= major < 1000 and 0 <= minor < 1000):
            raise CompileError(f"weights file: needs version 0.1 or 0.2, got {major}.{minor}")
        header = 20 if major * 10 + minor >= _LONG_SINCE else 16
        if len(data) < header or (len(data) - header) % 4:
            raise CompileError(
                f"weights file: needs {header} bytes and float32 values, got {len(data)} bytes"
            )
        self._values = np.frombuffer(data, "<f4", offset=header)
        self._at = 0

    def take(self, shape: tuple[int, ...], where: str) -> Array:
        """The next values, in C order."""
        size = int(np.prod(shape))
        left = len(self._values) - self._at
        if size > left:
            raise CompileError(
                f"{where}: needs {size} weights, {left} are left in the weights file; does it"
                " belong to this cfg?"
            )
        self._at += size
        return self._values[self._at - size : self._at].reshape(shape).astype(np.float32)

    def finish(self) -> None:
        """Refuse values that no layer took."""
        left = len(self._values) - self._at
        if left:
            raise CompileError(
                f"weights file: {left} values are left behind the last layer; does it belong to"
                " this cfg?"
            )


def write_weights(arrays: Iterable[Array]) -> bytes:
    """The bytes of a file that has these values, in this order, and no images seen."""
    values = [np.ascontiguousarray(array, "<f4").tobytes() for array in arrays]
    return b"".join([struct.pack("<3iq", *_VERSION, 0), *values])
