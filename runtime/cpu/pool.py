"""Pooling of int8 codes: largest element, and averages by exact integer thresholds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.runtime.cpu.windows import taps, window_counts, window_means, window_sums

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]
Window = Mapping[str, Sequence[int]]


def _centred_sums(x: Array, x_zero: int, window: Window) -> npt.NDArray[np.int64]:
    """sum(x - x_zero) of each window; padding adds 0."""
    whole = tuple(window["kernel"]) == x.shape[2:] and set(window["dilations"]) == {1}
    if whole and not any((*window["pads"], *window["excess"])):
        sums = x.sum(axis=(2, 3), dtype=np.int64, keepdims=True)
        return sums - x_zero * int(np.prod(window["kernel"]))
    return window_sums(x.astype(np.int64) - x_zero, **window)


def _average_pool(
    x: Array,
    counts: Array,
    thresholds: Array,
    *,
    include_pad: bool,
    x_zero: int,
    low: int,
    **window: Sequence[int],
) -> npt.NDArray[np.int8]:
    """low + how many thresholds the window's sum reaches, as int8 (N, C, OH, OW).

    `counts` int64 (K,) are the counts that occur; `thresholds` int64 (K, high - low) ascend along
    their last axis: entry i is the least sum whose rounded average is low + 1 + i. `window` holds
    kernel, strides, pads, excess and dilations.
    """
    total = _centred_sums(x, x_zero, window)
    count = window_counts(x.shape[2:], include_pad=include_pad, **window)
    result = np.empty(total.shape, np.int8)
    for value, steps in zip(counts, thresholds, strict=True):
        here = count == value
        result[:, :, here] = low + np.searchsorted(steps, total[:, :, here], side="right")
    return result


def _average_pool_real(
    x: Array, *, include_pad: bool, x_zero: int, scale: float, **window: Sequence[int]
) -> npt.NDArray[np.float32]:
    """The average times `scale`, in float64 and then rounded to float32."""
    total = _centred_sums(x, x_zero, window)
    means = window_means(total, x.shape[2:], include_pad=include_pad, **window)
    return (means * scale).astype(np.float32)


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
