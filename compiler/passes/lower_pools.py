"""Rewrites pools of quantized tensors in the accelerator's arithmetic."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import requantize
from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AccelConv2d, AccelMaxPool2d, AveragePool, MaxPool, Op
from vitral.compiler.ir.rounding import Weighted
from vitral.compiler.passes.averages import average_thresholds
from vitral.compiler.passes.scaling import Limits, find_weighted
from vitral.compiler.schedule.layer import ChannelParams

__all__ = ["lower_pools"]

Int64 = npt.NDArray[np.int64]

_LARGEST_COUNT = 1 << 16
"""Elements of a window whose sum is sure to fit int32."""


def lower_pools(graph: Graph) -> Graph:
    """Pools of int8 values become `AccelMaxPool2d`, or `AccelConv2d` with equal weights.

    An average is lowered when all windows count as many elements, and when parameters of the
    requantiser were proved to round as the exact rational does for every sum; else it stays.
    """
    return replace(graph, ops=tuple(_lowered(graph, op) for op in graph.ops))


def _lowered(graph: Graph, op: Op) -> Op:
    if op.device == "cpu":
        return op
    if isinstance(op, MaxPool) and graph.types[op.output].dtype == "int8":
        return AccelMaxPool2d(
            name=op.name,
            inputs=op.inputs,
            output=op.output,
            device=op.device,
            kernel=op.kernel,
            strides=op.strides,
            pads=op.pads,
            dilations=op.dilations,
        )
    if isinstance(op, AveragePool) and op.y_quant is not None:
        return _lowered_average(graph, op)
    return op


def _lowered_average(graph: Graph, op: AveragePool) -> Op:
    assert op.y_quant is not None
    _, channels, *size = graph.types[op.inputs[0]].shape
    counts, thresholds, low = average_thresholds(op, tuple(size))
    if len(counts) != 1 or int(np.prod(op.kernel)) > _LARGEST_COUNT:
        return op
    high = low + thresholds.shape[1]
    found = _weighted(op, int(counts[0]), thresholds[0], low, high)
    if found is None:
        return op
    params = ChannelParams(
        bias=np.full(channels, found.bias, np.int32),
        mult=np.full(channels, found.mult, np.uint32),
        shift=np.full(channels, found.shift, np.uint8),
        zero_point=np.full(channels, found.zero_point, np.int16),
        low=np.full(channels, low, np.int16),
        high=np.full(channels, high, np.int16),
        rounding=found.rounding,
    )
    top, left, bottom, right = op.pads
    return AccelConv2d(
        name=op.name,
        inputs=op.inputs,
        output=op.output,
        device=op.device,
        weight=np.full((channels, 1, *op.kernel), found.weight, np.int16),
        params=params,
        pad_value=op.x_quant.tensor_zero,
        strides=op.strides,
        pads=(top, left, bottom + op.excess[0], right + op.excess[1]),
        dilations=op.dilations,
        group=channels,
        origin=op,
    )


def _weighted(
    op: AveragePool, count: int, thresholds: Int64, low: int, high: int
) -> Weighted | None:
    """The weight of all elements and a scaling that give the codes of windows of `count` codes.

    Rounding is monotone for the law and the requantiser, so both sides of each step and the ends
    of the reachable sums decide all of them.
    """
    assert op.y_quant is not None
    zero = op.x_quant.tensor_zero
    taps = int(np.prod(op.kernel))  # padding that is not counted holds the zero point's code
    ends = np.array([-128 - zero, 127 - zero], np.int64) * count
    sums = np.unique(np.concatenate([thresholds - 1, thresholds, ends]).clip(*ends))
    codes = low + np.searchsorted(thresholds, sums, side="right")
    core = None if op.thresholds is None else op.thresholds.core
    if core is not None and np.array_equal(_codes(core, sums + zero * taps, low, high), codes):
        return core
    limits = Limits(codes=codes, zero_point=op.y_quant.tensor_zero, low=low, high=high)
    found = find_weighted(sums, limits)
    if found is None:
        return None
    weight, scaling = found
    return Weighted(
        weight=weight,
        bias=-zero * weight * taps,
        mult=scaling.mult,
        shift=scaling.shift,
        zero_point=op.y_quant.tensor_zero,
        rounding=scaling.rounding,
    )


def _codes(core: Weighted, sums: Int64, low: int, high: int) -> Int64:
    """What the requantiser gives for sums of codes."""
    return requantize(
        core.weight * sums,
        bias=core.bias,
        mult=core.mult,
        shift=core.shift,
        zero_point=core.zero_point,
        low=low,
        high=high,
        rounding=core.rounding,
    )
