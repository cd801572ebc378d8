"""Float operators on sample activations, float32 (N, C, H, W): what calibration needs of a network.

Speed matters more than the last bit: sums are single precision matrix products.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

__all__ = ["Float", "Pads", "Window", "average_pool", "conv2d", "max_pool", "upsample"]

Float = npt.NDArray[np.float32]
Pads = tuple[int, int, int, int]
"""Top, left, bottom, right."""
Window = tuple[int, int]


def conv2d(x: Float, weight: Float, stride: Window, pads: Pads, group: int) -> Float:
    """Convolution without bias; `group` is 1, or the channels of a depthwise one."""
    padded = _pad(x, pads, 0.0)
    if group > 1:
        return _depthwise(padded, weight, stride)
    kernel = (weight.shape[2], weight.shape[3])
    matrix = weight.reshape(weight.shape[0], -1)
    return np.stack([_product(matrix, sample, kernel, stride) for sample in padded])


def max_pool(x: Float, kernel: Window, stride: Window, pads: Pads) -> Float:
    """Maximum over windows; padding never wins."""
    taps = _taps(_pad(x, pads, -np.inf), kernel, stride)
    result = next(taps).copy()
    for tap in taps:
        np.maximum(result, tap, out=result)
    return result


def average_pool(x: Float) -> Float:
    """Mean over height and width, (N, C, 1, 1)."""
    return x.mean(axis=(2, 3), keepdims=True, dtype=np.float32)


def upsample(x: Float, factor: int) -> Float:
    """Every value `factor` times on both axes."""
    return x.repeat(factor, axis=2).repeat(factor, axis=3)


def _product(matrix: Float, sample: Float, kernel: Window, stride: Window) -> Float:
    windows = np.lib.stride_tricks.sliding_window_view(sample, kernel, (1, 2))
    windows = windows[:, :: stride[0], :: stride[1]]
    height, width = windows.shape[1:3]
    columns = windows.transpose(0, 3, 4, 1, 2).reshape(matrix.shape[1], height * width)
    return (matrix @ columns).reshape(-1, height, width)


def _depthwise(padded: Float, weight: Float, stride: Window) -> Float:
    kernel = (weight.shape[2], weight.shape[3])
    factors = weight.reshape(weight.shape[0], -1)
    taps = _taps(padded, kernel, stride)
    result = next(taps) * factors[:, 0, None, None]
    for place, tap in enumerate(taps, 1):
        result += tap * factors[:, place, None, None]
    return result


def _taps(padded: Float, kernel: Window, stride: Window) -> Iterator[Float]:
    """The windows' elements, one place of the kernel after the other, (N, C, OH, OW) each."""
    height = (padded.shape[2] - kernel[0]) // stride[0] + 1
    width = (padded.shape[3] - kernel[1]) // stride[1] + 1
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            rows = slice(row, row + (height - 1) * stride[0] + 1, stride[0])
            columns = slice(column, column + (width - 1) * stride[1] + 1, stride[1])
            yield padded[:, :, rows, columns]


def _pad(x: Float, pads: Pads, value: float) -> Float:
    top, left, bottom, right = pads
    if not any(pads):
        return x
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=value)
