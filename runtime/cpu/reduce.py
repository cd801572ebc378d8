"""Reductions along axes, and casts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]


def _reduce_mean(x: Array, *, axes: Sequence[int], keepdims: bool) -> npt.NDArray[np.float32]:
    """In float64, rounded to float32 once."""
    mean = x.astype(np.float64).mean(axis=tuple(axes), keepdims=keepdims)
    return np.asarray(mean, np.float32)


def _arg_max(x: Array, *, axis: int, keepdims: bool, last: bool) -> npt.NDArray[np.int64]:
    """Index of the first or last of the largest elements."""
    found = x.shape[axis] - 1 - np.flip(x, axis).argmax(axis) if last else x.argmax(axis)
    index = np.asarray(found, np.int64)
    return np.expand_dims(index, axis) if keepdims else index


def _arg_min(x: Array, *, axis: int, keepdims: bool, last: bool) -> npt.NDArray[np.int64]:
    turned = -x.astype(np.float64)  # exact for codes and float32
    return _arg_max(turned, axis=axis, keepdims=keepdims, last=last)


def _cast(x: Array, *, dtype: str) -> Array:
    with np.errstate(invalid="ignore"):
        return x.astype(dtype)


OPERATORS = {
    "arg_max": _arg_max,
    "arg_min": _arg_min,
    "float.arg_max": _arg_max,
    "float.arg_min": _arg_min,
    "float.reduce_mean": _reduce_mean,
    "float.cast": _cast,
}
"""arg_max(x), arg_min(x), float.reduce_mean(x) and float.cast(x)."""
