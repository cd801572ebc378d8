"""Operators that only move elements, on images and on tensors of other ranks."""

from collections.abc import Callable

import numpy as np
import pytest
from litert.compare import assert_same_bytes
from litert.layers import Layers
from litert.writer import Tensor

from vitral.runtime.module import CpuStep

MOVES: dict[str, Callable[[Layers, Tensor], Tensor]] = {
    "pad": lambda m, x: m.pad(x, ((0, 0), (1, 2), (0, 3), (1, 0))),
    "padv2": lambda m, x: m.pad(x, ((0, 0), (2, 0), (1, 1), (0, 0)), fill=-100),
    "reshape": lambda m, x: m.reshape(x, (1, 8, 3, 12)),
    "squeeze": lambda m, x: m.moved(
        "SQUEEZE", x, (6, 8, 6), options="SqueezeOptions", version=1, squeezeDims=[0]
    ),
    "expand_dims": lambda m, x: m.moved(
        "EXPAND_DIMS", x, (1, 6, 1, 8, 6), [2], options="ExpandDimsOptions", version=1
    ),
    "transpose": lambda m, x: m.moved(
        "TRANSPOSE", x, (1, 6, 6, 8), [0, 3, 1, 2], options="TransposeOptions"
    ),
    "slice": lambda m, x: m.moved(
        "SLICE", x, (1, 2, 8, 3), [0, 3, 0, 1], [1, 2, -1, 3], options="SliceOptions"
    ),
    "strided_slice": lambda m, x: m.moved(
        "STRIDED_SLICE",
        x,
        (1, 3, 4, 6),
        [0, 5, 1, 0],
        [1, -7, 0, 6],
        [1, -2, 2, 1],
        options="StridedSliceOptions",
        endMask=4,
    ),
    "strided_slice_drops_axes": lambda m, x: m.moved(
        "STRIDED_SLICE",
        x,
        (1, 8, 6),
        [0, -1],
        [0, 0],
        [1, 1],
        options="StridedSliceOptions",
        beginMask=1,
        endMask=1,
        shrinkAxisMask=2,
    ),
    "gather": lambda m, x: m.moved(
        "GATHER", x, (1, 6, 3, 6), [7, 0, 3], options="GatherOptions", axis=2
    ),
    "resize": lambda m, x: m.moved(
        "RESIZE_NEAREST_NEIGHBOR", x, (1, 13, 4, 6), [13, 4], options="ResizeNearestNeighborOptions"
    ),
    "resize_half_pixel": lambda m, x: m.moved(
        "RESIZE_NEAREST_NEIGHBOR",
        x,
        (1, 11, 17, 6),
        [11, 17],
        options="ResizeNearestNeighborOptions",
        version=3,
        halfPixelCenters=True,
    ),
    "resize_aligned": lambda m, x: m.moved(
        "RESIZE_NEAREST_NEIGHBOR",
        x,
        (1, 11, 17, 6),
        [11, 17],
        options="ResizeNearestNeighborOptions",
        version=3,
        alignCorners=True,
    ),
    "concat_channels": lambda m, x: m.concat([x, m.pad(x, ((0, 0), (0, 0), (0, 0), (2, 0)))], 3),
    "concat_rows": lambda m, x: m.concat([x, x, x], 1),
}


@pytest.mark.parametrize("move", MOVES)
def test_moves_of_an_image_between_convolutions(move: str):
    m = Layers(seed=1)
    image = m.conv(m.input((1, 6, 8, 4), 0.02, 3), 6)
    moved = MOVES[move](m, image)
    outputs = [moved, m.conv(moved, 5, (2, 2))] if len(moved.shape) == 4 else [moved]
    assert_same_bytes(m.model(*outputs))


@pytest.mark.parametrize("move", [*MOVES])
def test_moves_of_an_input(move: str):
    m = Layers(seed=2)
    assert_same_bytes(m.model(MOVES[move](m, m.input((1, 6, 8, 6), 0.02, 3))))


def test_split_into_equal_parts():
    m = Layers(seed=3)
    image = m.conv(m.input((1, 4, 5, 4), 0.02, 3), 6)
    parts = [m.tensor((1, 4, 5, 2), image.scale, image.zero) for _ in range(3)]
    m.operator(
        "SPLIT",
        [m.constant(np.array(3, np.int32)), image],
        parts,
        "SplitOptions",
        version=2,
        numSplits=3,
    )
    assert_same_bytes(m.model(*parts, m.conv(parts[1], 8)))


def test_padding_with_the_zero_point_becomes_the_convolutions():
    m = Layers(seed=4)
    padded = m.pad(m.input((1, 6, 6, 16), 0.02, 3), ((0, 0), (1, 1), (2, 0), (0, 0)))
    module = assert_same_bytes(m.model(m.conv(padded, 16, (3, 3), padding=1)))
    assert "pick" not in [step.op for step in module.steps if isinstance(step, CpuStep)]
