"""Exact integer convolution and matrix product, and the requantisation of their sums."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.runtime.cpu.windows import taps

__all__ = ["OPERATORS", "exact_matmul"]

Array = npt.NDArray[Any]
Int32 = npt.NDArray[np.int32]

_EXACT_FLOAT64 = 1 << 53


def exact_matmul(a: Array, b: Array) -> npt.NDArray[np.int64]:
    """a @ b of integers below 2**16 in magnitude; float64 does it while no sum reaches 2**53."""
    if a.shape[-1] << 32 < _EXACT_FLOAT64:
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    return a.astype(np.int64) @ b.astype(np.int64)


def _conv2d_sum(
    x: Array,
    weight: Array,
    bias: Array,
    *,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    group: int,
    x_zero: int,
) -> Int32:
    """sum((x - x_zero) * weight) + bias as int32 (N, O, OH, OW).

    `weight` is int16 (O, C / group, KH, KW), `bias` int64 (O,). The compiler has checked that no
    reachable sum leaves int32.
    """
    outputs, per_group, *kernel = weight.shape
    batch, channels = x.shape[:2]
    centred = x.astype(np.int16) - np.int16(x_zero)
    grouped = weight.reshape(group, outputs // group, per_group, -1)
    total: Array | None = None
    windows = taps(centred, kernel=kernel, strides=strides, pads=pads, dilations=dilations, fill=0)
    for tap, window in enumerate(windows):
        columns = window.reshape(batch, group, channels // group, -1)
        product = exact_matmul(grouped[None, :, :, :, tap], columns)
        total = product if total is None else total + product
        shape = window.shape[2:]
    assert total is not None
    result = total.reshape(batch, outputs, *shape) + bias.reshape(1, -1, 1, 1)
    return result.astype(np.int32)


def _matmul_sum(a: Array, b: Array, *, a_zero: int, b_zero: int) -> Int32:
    """(a - a_zero) @ (b - b_zero) as int32, numpy.matmul's shapes."""
    left, right = a.astype(np.int16) - np.int16(a_zero), b.astype(np.int16) - np.int16(b_zero)
    return exact_matmul(left, right).astype(np.int32)


def _requantize(
    total: Array, multiplier: Array, *, axis: int, zero_point: int, low: int, high: int
) -> npt.NDArray[np.int8]:
    """clamp(rne(fl32(fl32(total) * multiplier)) + zero_point, low, high) as int8.

    `multiplier` is float32, shape (1,) or as long as `axis`.
    """
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.rint(total.astype(np.float32) * _along(multiplier, total.ndim, axis))
    # The clamp comes first so that large quotients do not overflow the conversion to integers.
    clamped = np.minimum(np.maximum(scaled, low - zero_point), high - zero_point)
    return (clamped.astype(np.int32) + zero_point).astype(np.int8)


def _scale(total: Array, multiplier: Array, *, axis: int) -> npt.NDArray[np.float32]:
    """fl32(total) * multiplier as float32; shapes as for requantize."""
    return total.astype(np.float32) * _along(multiplier, total.ndim, axis)


def _along(values: Array, ndim: int, axis: int) -> Array:
    return values.reshape([-1 if i == axis % ndim else 1 for i in range(ndim)])


OPERATORS = {
    "conv2d_sum": _conv2d_sum,
    "matmul_sum": _matmul_sum,
    "requantize": _requantize,
    "scale": _scale,
}
"""conv2d_sum(x, weight, bias), matmul_sum(a, b), requantize(total, multiplier) and
scale(total, multiplier)."""
