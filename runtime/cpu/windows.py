"""Sliding windows over the last two axes, one kernel tap at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["taps", "window_counts", "window_means", "window_sums"]

Array = npt.NDArray[Any]


def taps(
    x: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    fill: int | float,
) -> Iterator[Array]:
    """For each kernel position, rows first: the elements of x (N, C, H, W) that it meets.

    `pads` are (top, left, bottom, right) of value `fill`. Yields views (N, C, OH, OW).
    """
    top, left, bottom, right = pads
    if any(pads):
        widths = ((0, 0), (0, 0), (top, bottom), (left, right))
        x = np.pad(x, widths, constant_values=fill)
    rows, columns = (
        (x.shape[2 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)
    )
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            y0, x0 = i * dilations[0], j * dilations[1]
            y1, x1 = y0 + (rows - 1) * strides[0] + 1, x0 + (columns - 1) * strides[1] + 1
            yield x[:, :, y0 : y1 : strides[0], x0 : x1 : strides[1]]


def window_sums(
    x: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    excess: Sequence[int] = (0, 0),
    dilations: Sequence[int],
) -> Array:
    """Sum of each window (N, C, OH, OW), in the type of `x`; padding adds 0.

    `excess` (bottom, right) is padding behind `pads` (top, left, bottom, right).
    """
    top, left, bottom, right = pads
    whole = (top, left, bottom + excess[0], right + excess[1])
    windows = taps(x, kernel=kernel, strides=strides, pads=whole, dilations=dilations, fill=0)
    total = next(windows).copy()
    for window in windows:
        total += window
    return total


def window_counts(
    size: Sequence[int],
    *,
    pads: Sequence[int],
    include_pad: bool,
    excess: Sequence[int] = (0, 0),
    **window: Sequence[int],
) -> npt.NDArray[np.int64]:
    """Elements of an image of `size` that each window counts, int64 (OH, OW).

    `pads` count when `include_pad`, `excess` never; `window` holds kernel, strides and dilations.
    """
    top, left, bottom, right = pads
    edge = 1 if include_pad else 0
    ones = np.ones((1, 1, *size), np.int64)
    ones = np.pad(ones, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=edge)
    return window_sums(ones, pads=(0, 0, 0, 0), excess=excess, **window)[0, 0]


def window_means(
    sums: Array, size: Sequence[int], *, include_pad: bool, **window: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Sums of the windows of an image of `size` over the elements that each counts."""
    return sums / window_counts(size, include_pad=include_pad, **window)
