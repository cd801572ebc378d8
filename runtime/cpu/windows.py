"""Sliding windows over the last two axes, one kernel tap at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["taps"]

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
