"""A convolution in the accelerator's own units: channel blocks, padded extents, reduction taps."""

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import gcd
from typing import NamedTuple

import numpy as np

from vitral.compiler.schedule.layer import ConvLayer, PoolLayer
from vitral.compiler.schedule.shapes import check_shapes
from vitral.config import CoreConfig

__all__ = ["LOAD_PAD_MAX", "Axis", "Geometry", "Span", "Task", "blocks_of", "split"]

LOAD_PAD_MAX = 15
"""Widest padding on one side that a LOAD can write; wider borders lie in DRAM."""

_INT8_MIN, _INT8_MAX = -128, 127


def blocks_of(count: int, size: int) -> int:
    """Groups of `size` that hold `count`."""
    return -(-count // size)


def split(count: int, part: int) -> list[tuple[int, int]]:
    """`range(count)` in runs (first, length) of `part`, the last one shorter."""
    return [(first, min(part, count - first)) for first in range(0, count, part)]


class Span(NamedTuple):
    """Positions that a LOAD brings in along one axis: `before` pads, `real` ones, `after` pads.

    `first` is the first real position in the tensor. `skip` loaded positions precede the wanted
    ones: a LOAD without real data would do nothing, so one is added to a window of pads.
    """

    first: int
    real: int
    before: int = 0
    after: int = 0
    skip: int = 0

    @property
    def loaded(self) -> int:
        return self.before + self.real + self.after


@dataclass(frozen=True)
class Axis:
    """Height or width of a convolution. `before` positions of padding precede the input."""

    out: int
    size: int
    kernel: int
    stride: int
    dilation: int
    before: int

    @staticmethod
    def of(layer: ConvLayer | PoolLayer, number: int, kernel: int) -> "Axis":
        """Axis 0 (height) or 1 (width) of a layer with that many kernel positions along it."""
        return Axis(
            out=layer.out_shape[2 + number],
            size=layer.in_shape[2 + number],
            kernel=kernel,
            stride=layer.strides[number],
            dilation=layer.dilations[number],
            before=layer.pads[number],
        )

    @property
    def extent(self) -> int:
        """Input positions that one window spans."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def after(self) -> int:
        """Positions of padding after the input that windows really reach."""
        last = (self.out - 1) * self.stride - self.before + self.extent
        return max(0, last - self.size)

    def in_memory(self) -> "Axis":
        """The same axis when the padding lies in DRAM as part of the tensor."""
        size = self.before + self.size + self.after
        return Axis(self.out, size, self.kernel, self.stride, self.dilation, 0)

    def step(self, out: int, taps: int) -> int:
        """Input positions between loaded ones: more than 1 when some are never wanted."""
        step = gcd(self.stride if out > 1 else 0, self.dilation if taps > 1 else 0)
        return step if 0 < step <= self.size else 1

    def window(self, out: int, taps: int, step: int) -> int:
        """Loaded positions that `out` outputs and `taps` kernel positions need."""
        return ((out - 1) * self.stride + (taps - 1) * self.dilation) // step + 1

    def span(self, first_out: int, out: int, first_tap: int, taps: int, step: int) -> Span:
        """What to load for outputs and taps from the given ones on; always one real position."""
        start = first_out * self.stride - self.before + first_tap * self.dilation
        count = self.window(out, taps, step)
        before = min(count, max(0, blocks_of(-start, step)))
        after = min(count, max(0, count - blocks_of(self.size - start, step)))
        if before == count:
            return Span(0, 1, before=count)
        if after == count:
            return Span(self.size - 1, 1, after=count, skip=1)
        return Span(start + before * step, count - before - after, before, after)


@dataclass(frozen=True)
class Task:
    """Output channel blocks that read the same run of input channel blocks."""

    first_out: int
    outs: int
    first_in: int
    ins: int


@dataclass(frozen=True)
class Geometry:
    """All sizes that scheduling depends on; equal for layers that can share a schedule.

    `batches` counts elements along N, `planes` the int8 weight planes whose sum is the weight.
    """

    batches: int
    y: Axis
    x: Axis
    planes: int
    tasks: tuple[Task, ...]

    @staticmethod
    def of(layer: ConvLayer, config: CoreConfig) -> "Geometry":
        """The geometry of a layer.

        Raises
        ------
        CompileError
            When the layer's shapes contradict each other.
        """
        _, _, kernel_h, kernel_w = layer.weight.shape
        check_shapes(layer, layer.weight.shape, layer.group)
        return Geometry(
            batches=blocks_of(layer.in_shape[0], config.batch),
            y=Axis.of(layer, 0, kernel_h),
            x=Axis.of(layer, 1, kernel_w),
            planes=_planes(layer.weight),
            tasks=tuple(_tasks(layer, config.block)),
        )

    @property
    def pads_in_memory(self) -> bool:
        """Whether the input's padding must lie in DRAM."""
        sides = (self.y.before, self.y.after, self.x.before, self.x.after)
        return max(sides) > LOAD_PAD_MAX

    def in_memory(self) -> "Geometry":
        """The same convolution of an input whose padding lies in DRAM."""
        return Geometry(
            self.batches, self.y.in_memory(), self.x.in_memory(), self.planes, self.tasks
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Looked up thousands of times in a search."""
        return hash((self.batches, self.y, self.x, self.planes, self.tasks))

    @property
    def positions(self) -> int:
        """Output elements of one channel block."""
        return self.batches * self.y.out * self.x.out

    @cached_property
    def block_pairs(self) -> int:
        """Pairs of output and input channel blocks with weights."""
        return sum(task.outs * task.ins for task in self.tasks)

    @property
    def taps(self) -> int:
        """Weight elements of one pair of channel blocks."""
        return self.y.kernel * self.x.kernel * self.planes

    @property
    def gemm_cycles(self) -> int:
        """Matrix products, which take one cycle each."""
        return self.positions * self.block_pairs * self.taps


def _tasks(layer: ConvLayer, block: int) -> list[Task]:
    outs, ins = layer.weight.shape[0] // layer.group, layer.weight.shape[1]

    def inputs(out_block: int) -> tuple[int, int]:
        last = min((out_block + 1) * block, layer.weight.shape[0]) - 1
        first_channel = out_block * block // outs * ins
        last_channel = (last // outs + 1) * ins - 1
        return first_channel // block, last_channel // block + 1

    tasks = []
    for (low, high), run in groupby(range(blocks_of(layer.weight.shape[0], block)), inputs):
        blocks = list(run)
        tasks.append(Task(blocks[0], len(blocks), low, high - low))
    return tasks


def _planes(weight: np.ndarray) -> int:
    high, low = max(int(weight.max()), 0), min(int(weight.min()), 0)
    return max(1, blocks_of(high, _INT8_MAX), blocks_of(-low, -_INT8_MIN))
