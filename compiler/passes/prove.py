"""Proves that a lowered convolution rounds as the arithmetic law does, on every reachable sum.

Law and lowering are both monotone in the accumulator A: each is a chain of monotone steps (to
float32, times a positive number, to an integer, clamp). For the float32 mode of the requantiser,
within one integer part the result goes from that integer over the tie to the next one as the
fraction grows. So the law is a staircase of at most 255 steps, and two staircases are equal when
they agree at both ends of the reachable range and on both sides of every step of one of them.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import requantize
from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AccelConv2d, Conv2d, Op
from vitral.compiler.ir.rounding import FixedPoint
from vitral.compiler.passes.law import (
    centred_weight,
    code_bounds,
    law_multiplier,
    law_output,
    product_range,
    raw_bias,
)
from vitral.compiler.schedule.layer import ChannelParams

__all__ = ["Difference", "first_difference", "prove", "staircase"]

Int64 = npt.NDArray[np.int64]
Reached = Callable[[Int64], npt.NDArray[np.bool_]]
Difference = tuple[int, int]
"""Output channel and accumulator for which a lowering is wrong."""

_CHANNELS_AT_ONCE = 256


def prove(graph: Graph) -> Graph:
    """Lowered convolutions that differ from the law go to the CPU, which computes the law."""
    notices: list[str] = []

    def checked(op: Op) -> Op:
        if not isinstance(op, AccelConv2d) or not isinstance(op.origin, Conv2d):
            return op
        found = first_difference(op)
        if found is None:
            return op
        notices.append(
            f"node {op.name!r} runs on the CPU: {op.params.rounding.name} rounds a sum of"
            f" {found[1]} in channel {found[0]} differently from the law"
        )
        return replace(op, on_cpu=True)

    return replace(graph, ops=tuple(map(checked, graph.ops))).noted(*notices)


def first_difference(op: AccelConv2d) -> Difference | None:
    """A reachable accumulator for which `op` and its origin differ, None when there is none.

    The origin is a convolution.
    """
    assert isinstance(op.origin, Conv2d)
    weight = centred_weight(op.origin)
    if not np.array_equal(weight, op.weight):
        return int(np.argmax((weight != op.weight).any(axis=(1, 2, 3)))), 0
    if op.origin.fixed is not None:
        return _other_parameters(op.params, op.origin.fixed)
    bias = raw_bias(op.origin, weight)
    ends = tuple(products + bias for products in product_range(weight))
    for start in range(0, len(bias), _CHANNELS_AT_ONCE):
        part = slice(start, start + _CHANNELS_AT_ONCE)
        found = _difference(op, bias[part], (ends[0][part], ends[1][part]), part)
        if found is not None:
            return start + found[0], found[1]
    return None


def _other_parameters(params: ChannelParams, law: FixedPoint) -> Difference | None:
    """A law in fixed point is the requantiser's own arithmetic, so its numbers are compared."""
    same = (
        (params.mult == law.mult)
        & (params.shift == law.shift)
        & (params.low == law.low)
        & (params.high == law.high)
        & (params.rounding is law.rounding)
    )
    return None if same.all() else (int(np.argmin(same)), 0)


def _difference(
    op: AccelConv2d, bias: Int64, ends: tuple[Int64, Int64], part: slice
) -> Difference | None:
    """The same for output channels `part`, whose law adds `bias` and whose sums lie in `ends`."""
    origin, params = op.origin, op.params
    assert isinstance(origin, Conv2d)
    quant = origin.y_quant
    assert quant is not None
    low, high = code_bounds(quant, origin.bounds)
    multiplier = law_multiplier(origin)[part]
    points = staircase(multiplier, *ends, quant.tensor_zero, low, high)
    law = law_output(points, multiplier[:, None], quant.tensor_zero, low, high)
    lowered = requantize(
        points - bias[:, None],
        bias=params.bias[part, None],
        mult=params.mult[part, None],
        shift=params.shift[part, None],
        zero_point=params.zero_point[part, None],
        low=params.low[part, None],
        high=params.high[part, None],
        rounding=params.rounding,
    )
    wrong = law != lowered
    if not wrong.any():
        return None
    channel, column = (int(i) for i in np.argwhere(wrong)[0])
    return channel, int(points[channel, column])


def staircase(
    multiplier: npt.NDArray[np.float32],
    lowest: Int64,
    highest: Int64,
    zero_point: int,
    low: int,
    high: int,
) -> Int64:
    """Accumulators that decide equality, (channels, 2 · steps + 2).

    For each channel's range lowest..highest: both ends, and the accumulators before and at each
    step of the law's staircase (an end of the range in place of a step outside it).
    """
    first, last = lowest[:, None], highest[:, None]
    targets = np.arange(low + 1, high + 1, dtype=np.int64)[None]
    scale = multiplier[:, None]

    def reached(total: Int64) -> npt.NDArray[np.bool_]:
        return law_output(total, scale, zero_point, low, high) >= targets

    below, above = _bracket(scale, first, last, targets - zero_point, reached)
    while (above - below > 1).any():
        middle = (below + above) >> 1
        good = reached(middle)
        above, below = np.where(good, middle, above), np.where(good, below, middle)
    points = np.concatenate([below, above, first, last], axis=1)
    return np.clip(points, first, last)


def _bracket(
    scale: npt.NDArray[np.float32], first: Int64, last: Int64, targets: Int64, reached: Reached
) -> tuple[Int64, Int64]:
    """Around each step: an accumulator that misses the target, and one that does not.

    They may lie one past the ends of the range, where nothing is known.
    The guess from real arithmetic is off by a few units in the last place of a float32.
    """
    shape = np.broadcast_shapes(first.shape, targets.shape)
    before, after = np.broadcast_to(first - 1, shape), np.broadcast_to(last + 1, shape)
    with np.errstate(divide="ignore", over="ignore"):
        guess = (targets - 0.5) / scale.astype(np.float64)
    guess = np.clip(guess, before, after).astype(np.int64)
    margin = (np.abs(guess) >> 20) + 2
    below, above = np.maximum(guess - margin, before), np.minimum(guess + margin, after)
    good = (~reached(below) | (below == before)) & (reached(above) | (above == after))
    return np.where(good, below, before), np.where(good, above, after)
