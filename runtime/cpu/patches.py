"""Lays an image out for a first layer with few channels: each pixel becomes a window of pixels."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]


def _patches(
    x: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    pad_value: int,
    packed: Sequence[int] | None = None,
) -> npt.NDArray[np.int8]:
    """The window of each position as channels: int8 (N, KH · KW · C, R, S) of x (N, C, H, W).

    Channel (i · KW + j) · C + c is tap (i, j) of channel c; padding elements are `pad_value`. With
    `packed` = (batch, block) the result is the accelerator's form of that tensor,
    (N / batch, channels / block, R, S, batch, block), with 0 in missing entries.
    """
    windows = _windows(x, kernel, strides, pads, dilations, pad_value)
    images, rows, columns, *inner = windows.shape
    depth = int(np.prod(inner))
    if packed is None:
        return windows.reshape(images, rows, columns, depth).transpose(0, 3, 1, 2).copy()
    batch, block = packed
    shape = (-(-images // batch), -(-depth // block), rows, columns, batch, block)
    result = np.zeros(shape, np.int8)
    for first, run in _runs(windows):
        for start, end in _pieces(first, first + run.shape[-1], block):
            lanes = slice(start % block, start % block + end - start)
            for image in range(images):
                group, entry = divmod(image, batch)
                target = result[group, start // block, :, :, entry, lanes]
                _whole(target)[:] = _whole(run[image, :, :, start - first : end - first])
    return result


def _windows(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    pad_value: int,
) -> Array:
    """A view (N, R, S, KH, KW, C) of the padded image."""
    top, left, bottom, right = pads
    images, channels, height, width = x.shape
    padded = np.full(
        (images, top + height + bottom, left + width + right, channels), pad_value, np.int8
    )
    padded[:, top : top + height, left : left + width] = x.transpose(0, 2, 3, 1)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(padded, extent, axis=(1, 2))
    view = view[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]
    return view.transpose(0, 1, 2, 4, 5, 3)


def _runs(windows: Array) -> Iterator[tuple[int, Array]]:
    """(first channel, view (N, R, S, count)) of channels that lie together in the image."""
    _, _, _, rows, columns, channels = windows.shape
    together = windows.strides[4] == channels * windows.strides[5] or columns == 1
    for row in range(rows):
        if together:
            shape = (*windows.shape[:3], columns * channels)
            strides = (*windows.strides[:3], windows.strides[5])
            line = np.lib.stride_tricks.as_strided(windows[:, :, :, row], shape, strides)
            yield row * columns * channels, line
            continue
        for column in range(columns):
            yield (row * columns + column) * channels, windows[:, :, :, row, column]


def _whole(array: Array) -> Array:
    """Each row of the last axis, whose bytes lie together, as one element: quicker to copy."""
    return array.view(np.dtype((np.void, array.shape[-1])))[..., 0]


def _pieces(first: int, end: int, block: int) -> Iterator[tuple[int, int]]:
    """The range first..end cut at multiples of `block`."""
    while first < end:
        stop = min(end, (first // block + 1) * block)
        yield first, stop
        first = stop


OPERATORS = {"patches": _patches}
"""patches(x)."""
