"""Pooling of int8 codes: largest element, and averages by exact integer thresholds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.runtime.cpu.windows import taps

__all__ = ["OPERATORS", "window_counts"]

Array = npt.NDArray[Any]


def window_counts(
    size: Sequence[int],
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    excess: Sequence[int],
    dilations: Sequence[int],
    include_pad: bool,
) -> npt.NDArray[np.int64]:
    """Elements that each window counts, int64 (OH, OW).

    `pads` (top, left, bottom, right) count when `include_pad`; `excess` (bottom, right) never.
    """
    top, left, bottom, right = pads
    edge = 1 if include_pad else 0
    ones = np.ones((1, 1, *size), np.int64)
    ones = np.pad(ones, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=edge)
    end = (0, 0, *excess)
    windows = taps(ones, kernel=kernel, strides=strides, pads=end, dilations=dilations, fill=0)
    return np.stack([window[0, 0] for window in windows]).sum(axis=0)


def _window_sums(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    excess: Sequence[int],
    dilations: Sequence[int],
    x_zero: int,
) -> npt.NDArray[np.int64]:
    """sum(x - x_zero) of each window; padding adds 0."""
    top, left, bottom, right = pads
    whole = (top, left, bottom + excess[0], right + excess[1])
    if tuple(kernel) == x.shape[2:] and not any(whole) and set(dilations) == {1}:
        sums = x.sum(axis=(2, 3), dtype=np.int64, keepdims=True)
        return sums - x_zero * int(np.prod(kernel))
    centred = x.astype(np.int64) - x_zero
    windows = taps(centred, kernel=kernel, strides=strides, pads=whole, dilations=dilations, fill=0)
    total = next(windows).copy()
    for window in windows:
        total += window
    return total


def _average_pool(
    x: Array,
    counts: Array,
    thresholds: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    excess: Sequence[int],
    dilations: Sequence[int],
    include_pad: bool,
    x_zero: int,
    low: int,
) -> npt.NDArray[np.int8]:
    """low + how many thresholds the window's sum reaches, as int8 (N, C, OH, OW).

    `counts` int64 (K,) are the counts that occur; `thresholds` int64 (K, high - low) ascend along
    their last axis: entry i is the least sum whose rounded average is low + 1 + i.
    """
    total = _window_sums(x, kernel, strides, pads, excess, dilations, x_zero)
    count = window_counts(
        x.shape[2:],
        kernel=kernel,
        strides=strides,
        pads=pads,
        excess=excess,
        dilations=dilations,
        include_pad=include_pad,
    )
    result = np.empty(total.shape, np.int8)
    for value, steps in zip(counts, thresholds, strict=True):
        here = count == value
        result[:, :, here] = low + np.searchsorted(steps, total[:, :, here], side="right")
    return result


def _average_pool_real(
    x: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    excess: Sequence[int],
    dilations: Sequence[int],
    include_pad: bool,
    x_zero: int,
    scale: float,
) -> npt.NDArray[np.float32]:
    """The average times `scale`, in float64 and then rounded to float32."""
    total = _window_sums(x, kernel, strides, pads, excess, dilations, x_zero)
    count = window_counts(
        x.shape[2:],
        kernel=kernel,
        strides=strides,
        pads=pads,
        excess=excess,
        dilations=dilations,
        include_pad=include_pad,
    )
    return (total / count * scale).astype(np.float32)


def _max_pool(
    x: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> Array:
    """Largest element of each window, int8 or float32; padding is the lowest value."""
    lowest = -np.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
    windows = taps(x, kernel=kernel, strides=strides, pads=pads, dilations=dilations, fill=lowest)
    largest = next(windows).copy()
    for window in windows:
        np.maximum(largest, window, out=largest)
    return largest


OPERATORS = {
    "average_pool": _average_pool,
    "average_pool_real": _average_pool_real,
    "max_pool": _max_pool,
}
"""average_pool(x, counts, thresholds), average_pool_real(x) and max_pool(x)."""
