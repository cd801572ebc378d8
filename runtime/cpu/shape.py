"""Operators that only move elements, and functions of two codes by table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]


def _constant(array: Array) -> Array:
    return array


def _reshape(x: Array, *, shape: Sequence[int]) -> Array:
    return x.reshape(tuple(shape))


def _transpose(x: Array, *, perm: Sequence[int]) -> Array:
    return np.ascontiguousarray(x.transpose(tuple(perm)))


def _concat(*arrays: Array, axis: int) -> Array:
    return np.concatenate(arrays, axis=axis)


def _pick(x: Array, *indices: Array, axes: Sequence[int], fill: float) -> Array:
    """Elements by index along each of `axes`; index -1 is `fill`."""
    for axis, index in zip(axes, indices, strict=True):
        x = np.take(x, np.maximum(index, 0), axis=axis)
        if index.min() < 0:
            x[(slice(None),) * axis + (index < 0,)] = fill
    return x


def _binary_table(a: Array, b: Array, table: Array) -> npt.NDArray[np.int8]:
    """table[a + 128, b + 128] with broadcasting; `table` is int8 (256, 256)."""
    by_byte = np.roll(table, (128, 128), axis=(0, 1)).reshape(-1)
    left, right = (np.ascontiguousarray(v).view(np.uint8).astype(np.uint16) for v in (a, b))
    return np.take(by_byte, (left << np.uint16(8)) | right)


OPERATORS = {
    "constant": _constant,
    "reshape": _reshape,
    "transpose": _transpose,
    "concat": _concat,
    "pick": _pick,
    "binary_table": _binary_table,
}
"""constant(array), reshape(x), transpose(x), concat(*x), pick(x, *indices) and
binary_table(a, b, table)."""
