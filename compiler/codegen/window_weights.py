"""Weights of window layers: elements whose row t holds the lanes' weights of tap t."""

import numpy as np
import numpy.typing as npt

from vitral.compiler.codegen.constants import split_planes
from vitral.compiler.schedule.geometry import split
from vitral.compiler.schedule.layer import AddLayer, ConvLayer
from vitral.compiler.schedule.tiling import Tiling
from vitral.compiler.schedule.window_steps import kernel_parts
from vitral.compiler.schedule.windows import WindowGeometry, add_digits
from vitral.config import CoreConfig

__all__ = ["pack_add_weights", "pack_window_weights"]

Int8 = npt.NDArray[np.int8]


def pack_window_weights(
    layer: ConvLayer, geometry: WindowGeometry, tiling: Tiling, config: CoreConfig
) -> Int8:
    """int8 (elements, block, block): by run of channel blocks, part of the kernel's rows, block,
    row, group of columns, and plane. Where groups share a column, the first one has its weight.
    Weights that all blocks share are those of one."""
    block, blocks = config.block, 1 if geometry.shared else geometry.blocks
    weight = np.zeros((blocks * block, *layer.weight.shape[2:]), np.int16)
    if geometry.shared:
        weight[:] = layer.weight[0]
    else:
        weight[: layer.weight.shape[0]] = layer.weight[:, 0]
    planes = split_planes(weight, geometry.planes)  # (channels, rows, columns, planes)
    lanes = planes.reshape(blocks, block, *planes.shape[1:]).transpose(0, 2, 3, 4, 1)
    shape = (blocks, geometry.y.kernel, len(geometry.groups), geometry.planes)
    packed = np.zeros((*shape, block, block), np.int8)
    done = 0
    for number, first in enumerate(geometry.groups):
        last = first + geometry.taps
        for column in range(max(first, done), last):
            packed[:, :, number, :, column - first] = lanes[:, :, column]
        done = last
    parts = [
        packed[first : first + count, row : row + rows].reshape(-1, block, block)
        for first, count in split(blocks, tiling.outs)
        for row, rows in kernel_parts(geometry, tiling)
    ]
    return np.concatenate(parts)


def pack_add_weights(layer: AddLayer, config: CoreConfig) -> Int8:
    """int8 (passes, block, block): row 0 is the multiplier of the first input, row 1 the other."""
    digits = add_digits(layer.multipliers)
    packed = np.zeros((len(digits), config.block, config.block), np.int8)
    packed[:, :2] = np.array(digits, np.int8)[:, :, None]
    return packed
