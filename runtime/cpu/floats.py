"""Operators of float islands; sums are taken in float64 and rounded to float32 once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.runtime.cpu.windows import taps, window_means, window_sums

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]
Float32 = npt.NDArray[np.float32]


def _add(a: Array, b: Array) -> Float32:
    return a + b


def _sub(a: Array, b: Array) -> Float32:
    return a - b


def _mul(a: Array, b: Array) -> Float32:
    return a * b


def _div(a: Array, b: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return a / b


def _prelu(x: Array, slope: Array) -> Float32:
    return np.where(x >= 0, x, x * slope)


def _softmax(x: Array, *, axes: Sequence[int]) -> Float32:
    """exp(x) / sum(exp(x)) over `axes`, in float64 and then rounded to float32."""
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=tuple(axes), keepdims=True))
    return (powers / powers.sum(axis=tuple(axes), keepdims=True)).astype(np.float32)


def _matmul(a: Array, b: Array) -> Float32:
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)


def _average_pool(x: Array, *, include_pad: bool, **window: Sequence[int]) -> Float32:
    """`window` holds kernel, strides, pads, excess and dilations."""
    total = window_sums(x.astype(np.float64), **window)
    means = window_means(total, x.shape[2:], include_pad=include_pad, **window)
    return means.astype(np.float32)


def _conv2d(
    x: Array,
    weight: Array,
    bias: Array,
    *,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    group: int,
) -> Float32:
    outputs, per_group, *kernel = weight.shape
    batch, channels = x.shape[:2]
    grouped = weight.astype(np.float64).reshape(group, outputs // group, per_group, -1)
    windows = taps(
        x.astype(np.float64), kernel=kernel, strides=strides, pads=pads, dilations=dilations, fill=0
    )
    total, shape = np.float64(0), (1, 1)
    for tap, window in enumerate(windows):
        columns = window.reshape(batch, group, channels // group, -1)
        total = total + grouped[None, :, :, :, tap] @ columns
        shape = window.shape[2:]
    result = np.reshape(total, (batch, outputs, *shape)) + bias.reshape(1, -1, 1, 1)
    return result.astype(np.float32)


OPERATORS = {
    "float.add": _add,
    "float.sub": _sub,
    "float.mul": _mul,
    "float.div": _div,
    "float.max": np.maximum,
    "float.min": np.minimum,
    "float.prelu": _prelu,
    "float.softmax": _softmax,
    "float.matmul": _matmul,
    "float.average_pool": _average_pool,
    "float.conv2d": _conv2d,
}
"""float.add/sub/mul/div/max/min/matmul(a, b), float.prelu(x, slope), float.softmax/average_pool(x)
and float.conv2d(x, w, bias)."""
