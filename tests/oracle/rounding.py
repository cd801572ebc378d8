"""Rounding and saturation: the few places where a bit can be won or lost."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["rne_ratio", "saturate", "to_int32_range"]

_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1


def rne_ratio(numerator: int, denominator: int) -> int:
    """numerator / denominator rounded to the nearest integer, ties to even; denominator > 0."""
    quotient, remainder = divmod(numerator, denominator)
    twice = 2 * remainder
    if twice > denominator or (twice == denominator and quotient % 2 == 1):
        quotient += 1
    return quotient


def saturate(
    rounded: npt.NDArray[np.floating[Any]] | npt.NDArray[np.int64],
    zero_point: npt.NDArray[np.int64],
    dtype: np.dtype[Any],
) -> npt.NDArray[Any]:
    """sat(rounded + zero_point) in `dtype`; `rounded` holds integers, if floats of any size."""
    limits = np.iinfo(dtype)
    low, high = limits.min - zero_point, limits.max - zero_point
    clipped = np.minimum(np.maximum(rounded, low), high)
    return (clipped.astype(np.int64) + zero_point).astype(dtype)


def to_int32_range(total: npt.NDArray[np.int64]) -> tuple[int, ...] | None:
    """Index of the first element that int32 cannot hold, or None when all fit."""
    outside = (total < _INT32_MIN) | (total > _INT32_MAX)
    if not outside.any():
        return None
    return tuple(int(i) for i in np.argwhere(outside)[0])
