"""Fill rules: test data from a formula, so that no data files are needed.

The flat index i counts in C order.
"""

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["crc32", "fill_b", "fill_w", "fill_x", "w_scales"]


def fill_x(shape: tuple[int, ...], dtype: npt.DTypeLike = np.int8) -> npt.NDArray[Any]:
    """Activations: v = (37 i + 11) mod 256; uint8 takes v, int8 takes v - 128."""
    values = (37 * _index(shape) + 11) % 256
    return (values - (128 if np.dtype(dtype) == np.int8 else 0)).astype(dtype)


def fill_w(shape: tuple[int, ...], dtype: npt.DTypeLike = np.int8) -> npt.NDArray[Any]:
    """Weights (O, I, KH, KW): (29 i + 5) mod 255, less 127 for int8."""
    values = (29 * _index(shape) + 5) % 255
    return (values - (127 if np.dtype(dtype) == np.int8 else 0)).astype(dtype)


def fill_b(channels: int) -> npt.NDArray[np.int32]:
    """Bias int32 (O,): ((4099 o + 977) mod 20011) - 10005."""
    return (((4099 * np.arange(channels) + 977) % 20011) - 10005).astype(np.int32)


def w_scales(channels: int, *, per_channel: bool = True) -> npt.NDArray[np.float32]:
    """Weight scales: (1 + o mod 7) 2^-9 of shape (O,), or 2^-9 of shape ()."""
    if not per_channel:
        return np.array(2.0**-9, dtype=np.float32)
    return ((1 + np.arange(channels) % 7) * 2.0**-9).astype(np.float32)


def crc32(tensor: npt.NDArray[Any]) -> str:
    """CRC-32 of the bytes in C order, eight hex digits."""
    return f"{zlib.crc32(np.ascontiguousarray(tensor).tobytes()):08x}"


def _index(shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    return np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
