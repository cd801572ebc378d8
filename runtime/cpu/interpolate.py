"""Weighted sums of elements along axes: linear interpolation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]


def _sums(x: Array, taps: Sequence[Array], axes: Sequence[int]) -> Array:
    """`taps` are indices and weights (length, T) of each axis in turn."""
    for number, axis in enumerate(axes):
        index, weight = taps[2 * number], taps[2 * number + 1]
        along = [-1 if i == axis else 1 for i in range(x.ndim)]
        parts = (
            np.take(x, index[:, tap], axis=axis) * weight[:, tap].reshape(along)
            for tap in range(index.shape[1])
        )
        total = next(parts)
        for part in parts:
            total += part
        x = total
    return x


def _interpolate(
    x: Array, thresholds: Array, *taps: Array, axes: Sequence[int], x_zero: int, low: int
) -> npt.NDArray[np.int8]:
    """low + how many `thresholds`, ascending int64, the weighted sum of x - x_zero reaches."""
    total = _sums(x.astype(np.int64) - x_zero, taps, axes)
    return (low + np.searchsorted(thresholds, total, side="right")).astype(np.int8)


def _interpolate_real(
    x: Array, *taps: Array, axes: Sequence[int], x_zero: int, scale: float, denominator: int
) -> npt.NDArray[np.float32]:
    """The weighted sum of x - x_zero over `denominator`, times `scale`, rounded to float32."""
    total = _sums(x.astype(np.int64) - x_zero, taps, axes)
    return (total / denominator * scale).astype(np.float32)


def _float(x: Array, *taps: Array, axes: Sequence[int]) -> npt.NDArray[np.float32]:
    """Weights are float64, the result is rounded to float32 once."""
    return _sums(x.astype(np.float64), taps, axes).astype(np.float32)


OPERATORS = {
    "interpolate": _interpolate,
    "interpolate_real": _interpolate_real,
    "float.interpolate": _float,
}
"""interpolate(x, thresholds, *taps), interpolate_real(x, *taps) and float.interpolate(x, *taps)."""
