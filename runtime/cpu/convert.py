"""Between real numbers and codes, between signed and unsigned codes, and tables of 256 entries."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS", "dequantize_array", "quantize_array", "table_array"]

Array = npt.NDArray[Any]


def quantize_array(
    reals: Array, scale: Array, zero_point: Array, dtype: np.dtype, axis: int | None = None
) -> Array:
    """sat(rne(fl32(v / scale)) + zero_point) in float32; `scale` and `zero_point` () or (C,).

    Infinities saturate. ValueError on NaN, for which no code exists.
    """
    scale, zero_point = _along(scale, reals.ndim, axis), _along(zero_point, reals.ndim, axis)
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.rint(reals.astype(np.float32, copy=False) / scale.astype(np.float32))
    if np.isnan(rounded).any():
        raise ValueError("quantize needs numbers, got NaN in its input; check the data fed")
    limits, zero = np.iinfo(dtype), zero_point.astype(np.int32)
    rounded = np.minimum(np.maximum(rounded, limits.min - zero), limits.max - zero)
    return (rounded.astype(np.int32) + zero).astype(dtype)


def dequantize_array(
    codes: Array, scale: Array, zero_point: Array, axis: int | None = None
) -> npt.NDArray[np.float32]:
    """(code - zero_point) * scale, the product in float32; `scale` and `zero_point` () or (C,).

    A product past float32 is an infinity, as in IEEE arithmetic.
    """
    scale, zero_point = _along(scale, codes.ndim, axis), _along(zero_point, codes.ndim, axis)
    centred = codes.astype(np.int64) - zero_point.astype(np.int64)
    with np.errstate(over="ignore", under="ignore"):
        return centred.astype(np.float32) * scale.astype(np.float32)


def table_array(table: Array, codes: Array) -> Array:
    """table[code + 128] for int8 codes; `table` has 256 entries in ascending order of codes."""
    by_byte = np.roll(table, 128)
    return np.take(by_byte, np.ascontiguousarray(codes).view(np.uint8))


def _channel_table(codes: Array, tables: Array, *, axis: int) -> Array:
    """tables[c, code + 128], c the index along `axis`; `tables` is (C, 256)."""
    shape = [-1 if i == axis else 1 for i in range(codes.ndim)]
    first = (np.arange(len(tables), dtype=np.int64) * 256 + 128).reshape(shape)
    return np.take(tables.reshape(-1), codes + first)


def _along(values: Array, ndim: int, axis: int | None) -> Array:
    """Shape () or (C,) made to broadcast along `axis` of `ndim` dimensions."""
    values = np.asarray(values)
    if axis is None or values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if i == axis else 1 for i in range(ndim)])


def _quantize(reals: Array, scale: Array, zero_point: Array, *, axis: int | None = None) -> Array:
    return quantize_array(reals, scale, zero_point, np.dtype(np.int8), axis)


def _flip_sign(codes: Array) -> Array:
    """uint8 value <-> int8 value - 128: the top bit of each byte is inverted."""
    flipped = np.ascontiguousarray(codes).view(np.uint8) ^ np.uint8(0x80)
    return flipped.view(np.int8 if codes.dtype == np.uint8 else np.uint8)


def _table(codes: Array, table: Array) -> Array:
    return table_array(table, codes)


OPERATORS = {
    "quantize": _quantize,
    "dequantize": dequantize_array,
    "flip_sign": _flip_sign,
    "table": _table,
    "channel_table": _channel_table,
}
"""quantize(real, scale, zero_point) gives int8; dequantize(code, scale, zero_point);
flip_sign(code); table(code, table); channel_table(code, tables)."""
