"""Lets the host lay images out for first layers, whose few channels would leave the array idle.

A convolution of 3 channels fills 3 of 16 rows of the array. When windows of `taps` = (GH, GW)
pixels are channels instead, the kernel has as many taps fewer: 7x7 of 3 channels takes 49 blocks as
it is, 16 with 2x2 pixels (space to depth), 14 with kernel rows, 10 with whole windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Graph, TensorType, infer
from vitral.compiler.ir.ops import AccelConv2d, AccelOp, Conv2d, Op, Patches
from vitral.compiler.passes.rename import unused_name
from vitral.config import CoreConfig
from vitral.errors import CompileError

__all__ = ["HostLayout", "Taps", "host_layouts", "lay_out_images", "read_taps"]

Taps = tuple[int, int]

_WORTHWHILE = 0.8
"""Share of the plain layout's cycles below which the host's work pays."""
_NAMES = "'auto', 'channels', 'rows', 'windows', or taps such as '2x2'"


@dataclass(frozen=True, kw_only=True)
class HostLayout:
    """One way to lay an image out.

    Parameters
    ----------
    taps : (GH, GW)
        Pixels (rows, columns) that become channels.
    kernel : (height, width)
        What is left of the layer's kernel.
    host_bytes : int
        Bytes that the host writes for an image, channels padded to whole blocks.
    cycles : int
        Of the busiest of array, read and write channel.
    """

    taps: Taps
    kernel: tuple[int, int]
    host_bytes: int
    cycles: int


def read_taps(layout: str, kernel: Sequence[int]) -> Taps | None:
    """Taps of a layout's name for a layer of that kernel; None for 'auto'.

    Raises
    ------
    CompileError
        For a name that means nothing.
    """
    names = {"channels": (1, 1), "rows": (1, kernel[1]), "windows": (kernel[0], kernel[1])}
    if layout == "auto":
        return None
    if layout in names:
        return names[layout]
    sizes = layout.split("x")
    if len(sizes) != 2 or not all(size.isdigit() and int(size) for size in sizes):
        raise CompileError(f"host_layout must be {_NAMES}, got {layout!r}")
    return min(int(sizes[0]), kernel[0]), min(int(sizes[1]), kernel[1])


def host_layouts(graph: Graph, op: AccelConv2d, config: CoreConfig) -> list[HostLayout]:
    """All layouts for a first layer, the fastest first, then the one with the fewest bytes."""
    rows, columns = op.weight.shape[2:]
    found = [
        _layout(graph, op, (i, j), config)
        for i in range(1, rows + 1)
        for j in range(1, columns + 1)
    ]
    return sorted(found, key=lambda layout: (layout.cycles, layout.host_bytes))


def lay_out_images(graph: Graph, config: CoreConfig, layout: str = "auto") -> Graph:
    """First layers read windows of pixels where that saves a fifth of their cycles.

    A first layer is a convolution of one group on the accelerator that reads a value of the host.
    `layout` other than 'auto' forces one.
    """
    there = {op.output for op in graph.ops if isinstance(op, AccelOp) and not op.on_cpu}
    ops: list[Op] = []
    types = dict(graph.types)
    for op in graph.ops:
        taps = _chosen(graph, op, config, layout) if _is_first(op, there) else (1, 1)
        if not isinstance(op, AccelConv2d) or taps == (1, 1):
            ops.append(op)
            continue
        patches = _patches(graph, op, taps, unused_name(f"{op.inputs[0]}.patches", types))
        types[patches.output] = _patches_type(graph, patches)
        ops += [patches, _convolution(op, taps, patches.output)]
    return replace(graph, ops=tuple(ops), types=types)


def _is_first(op: Op, there: set[str]) -> bool:
    if not isinstance(op, AccelConv2d) or not isinstance(op.origin, Conv2d) or op.on_cpu:
        return False
    return op.group == 1 and op.inputs[0] not in there


def _chosen(graph: Graph, op: Op, config: CoreConfig, layout: str) -> Taps:
    assert isinstance(op, AccelConv2d)
    taps = read_taps(layout, op.weight.shape[2:])
    if taps is not None:
        return taps
    best, plain = host_layouts(graph, op, config)[0], _layout(graph, op, (1, 1), config)
    return best.taps if best.cycles < _WORTHWHILE * plain.cycles else (1, 1)


def _layout(graph: Graph, op: AccelConv2d, taps: Taps, config: CoreConfig) -> HostLayout:
    images, outputs, rows, columns = graph.types[op.output].shape
    kernel = _left(op, taps)
    patches = _patches(graph, op, taps, "patches")
    _, depth, height, width = _patches_type(graph, patches).shape
    blocks, out_blocks = -(-depth // config.block), -(-outputs // config.block)
    groups, element = -(-images // config.batch), config.layout.inp_bytes
    pixels = groups * rows * columns
    moved = groups * height * width * blocks * element
    weights = out_blocks * blocks * kernel[0] * kernel[1] * config.layout.wgt_bytes
    beat = config.layout.beat_bytes
    return HostLayout(
        taps=taps,
        kernel=kernel,
        host_bytes=moved,
        cycles=max(
            pixels * out_blocks * blocks * kernel[0] * kernel[1],
            (moved + weights) // beat,
            pixels * out_blocks * config.layout.out_bytes // beat,
        ),
    )


def _left(op: AccelConv2d, taps: Taps) -> tuple[int, int]:
    """The kernel over windows of `taps`."""
    rows, columns = op.weight.shape[2:]
    return -(-rows // taps[0]), -(-columns // taps[1])


def _steps(op: AccelConv2d, taps: Taps) -> tuple[int, int]:
    """Pixels (rows, columns) from one window to the next."""
    rows, columns = (
        op.strides[i] if left == 1 else gcd(op.strides[i], taps[i] * op.dilations[i])
        for i, left in enumerate(_left(op, taps))
    )
    return rows, columns


def _patches(graph: Graph, op: AccelConv2d, taps: Taps, output: str) -> Patches:
    _, _, *size = graph.types[op.inputs[0]].shape
    _, _, *results = graph.types[op.output].shape
    ends: list[int] = []
    for i, left in enumerate(_left(op, taps)):
        kernel = left * taps[i]
        reach = (results[i] - 1) * op.strides[i] + (kernel - 1) * op.dilations[i] + 1
        ends.append(max(reach - op.pads[i] - size[i], 0))
    return Patches(
        name=op.name,
        inputs=op.inputs,
        output=output,
        kernel=taps,
        strides=_steps(op, taps),
        pads=(op.pads[0], op.pads[1], ends[0], ends[1]),
        dilations=op.dilations,
        pad_value=op.pad_value,
    )


def _patches_type(graph: Graph, patches: Patches) -> TensorType:
    return infer(patches, [graph.types[patches.inputs[0]]])


def _convolution(op: AccelConv2d, taps: Taps, source: str) -> AccelConv2d:
    """The layer that reads windows; `origin` and with it the law stay those of the model."""
    strides, dilations = [], []
    for i, (left, step) in enumerate(zip(_left(op, taps), _steps(op, taps), strict=True)):
        strides.append(op.strides[i] // step)
        dilations.append(1 if left == 1 else taps[i] * op.dilations[i] // step)
    return replace(
        op,
        inputs=(source,),
        weight=_windowed(op.weight, taps),
        strides=(strides[0], strides[1]),
        dilations=(dilations[0], dilations[1]),
        pads=(0, 0, 0, 0),
    )


def _windowed(weight: npt.NDArray[np.int16], taps: Taps) -> npt.NDArray[np.int16]:
    """(O, C, KH, KW) as (O, GH · GW · C, KH / GH, KW / GW), taps beyond the kernel 0."""
    outputs, channels, *kernel = weight.shape
    left = [-(-size // tap) for size, tap in zip(kernel, taps, strict=True)]
    whole = np.zeros((outputs, channels, left[0] * taps[0], left[1] * taps[1]), weight.dtype)
    whole[:, :, : kernel[0], : kernel[1]] = weight
    split = whole.reshape(outputs, channels, left[0], taps[0], left[1], taps[1])
    return split.transpose(0, 3, 5, 1, 2, 4).reshape(outputs, -1, left[0], left[1])
