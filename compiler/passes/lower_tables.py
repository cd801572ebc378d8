"""Rewrites tables that are lines, or two lines that meet at 0, in the accelerator's arithmetic.

A line is a depthwise convolution with one weight: another scale, Relu and Clip are of that form.
LeakyRelu has a slope on each side of 0: slope · x + (other - slope) · max(x, 0), a sum of the codes
and of the codes clamped from below at the zero point.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Graph, TensorType
from vitral.compiler.ir.ops import AccelAdd, AccelConv2d, AccelOp, Op, Table
from vitral.compiler.passes.rename import unused_name
from vitral.compiler.passes.scaling import (
    Limits,
    Scaling,
    find_scaling,
    find_weighted,
    multiplier_range,
    multipliers_within,
)
from vitral.compiler.schedule.layer import ChannelParams
from vitral.isa import Rounding

__all__ = ["lower_tables"]

Int64 = npt.NDArray[np.int64]

_CODES = np.arange(-128, 128)
_SEARCHES = (
    (127, Rounding.HALF_EVEN),
    (127, Rounding.FLOAT32),
    (32639, Rounding.HALF_EVEN),
    (32639, Rounding.FLOAT32),
)
"""Largest multiplier and rounding: int8 multipliers take one pass of the core, larger ones two."""
_TRIALS = 512
_TOLERANCE = 1e-3
"""Of the largest value: how far real values may lie from two lines, to be worth a search."""


def lower_tables(graph: Graph) -> Graph:
    """Tables of a lowered layer's int8 codes become one or two layers, proved on all codes."""
    there = {op.output for op in graph.ops if isinstance(op, AccelOp)}
    types = dict(graph.types)
    ops: list[Op] = []
    for op in graph.ops:
        layers = _layers(op, types) if _fits(graph, op, there) else [op]
        ops += layers
        there.update(layer.output for layer in layers if isinstance(layer, AccelOp))
    return replace(graph, ops=tuple(ops), types=types)


def _fits(graph: Graph, op: Op, there: set[str]) -> bool:
    if not isinstance(op, Table) or op.steps is None or op.table.dtype != np.int8:
        return False
    if op.device == "cpu":
        return False
    return op.inputs[0] in there and len(graph.types[op.output].shape) == 4


def _layers(op: Op, types: dict[str, TensorType]) -> list[Op]:
    assert isinstance(op, Table)
    channels = types[op.output].shape[1]
    for zero in _zeros(op):
        line = _line(op, zero, channels)
        if line is not None:
            return [line]
    for zero in _zeros(op):
        found = _two_lines(op, zero)
        if found is not None:
            return _bent(op, zero, *found, types)
    return [op]


def _zeros(op: Table) -> Iterator[int]:
    """Codes whose result is 0, or rather the first and the last of them."""
    assert op.steps is not None
    found = np.flatnonzero(op.steps == 0)
    yield from dict.fromkeys(int(i) - 128 for i in found[[0, -1]]) if found.size else ()


def _limits(op: Table, zero: int) -> Limits:
    codes = op.table.astype(np.int64)
    return Limits(
        codes=codes,
        zero_point=int(codes[zero + 128]),
        low=int(codes.min()),
        high=int(codes.max()),
    )


def _line(op: Table, zero: int, channels: int) -> AccelConv2d | None:
    limits = _limits(op, zero)
    falls = op.table[-1] < op.table[0]
    found = find_weighted((zero - _CODES) if falls else (_CODES - zero), limits)
    if found is None:
        return None
    weight = -found[0] if falls else found[0]
    params = _params(channels, -weight * zero, found[1], limits)
    return _depthwise(op, op.output, op, weight, params, channels)


def _two_lines(op: Table, zero: int) -> tuple[tuple[int, int], Scaling] | None:
    """Multipliers of code and clamped code with the scaling of their sum."""
    assert op.steps is not None
    below, above = zero + 128, 127 - zero
    if not below or not above:
        return None
    left, right = -op.steps[0] / below, op.steps[-1] / above
    centred = _CODES - zero
    fitted = np.where(centred < 0, left, right) * centred
    if np.abs(fitted - op.steps).max() > _TOLERANCE * np.abs(op.steps).max():
        return None
    limits = _limits(op, zero)
    for largest, rounding in _SEARCHES:
        wanted = replace(limits, rounding=rounding)
        for pair in _likely(centred, wanted, (left, right), largest):
            scaling = find_scaling(_bent_sums(centred, *pair), wanted)
            if scaling is not None:
                return pair, scaling
    return None


def _likely(
    centred: Int64, limits: Limits, slopes: tuple[float, float], largest: int
) -> list[tuple[int, int]]:
    """Pairs of multipliers up to `largest` for which one scaling may do for all codes."""
    left, right = slopes
    shape = np.array([left, right - left]) / max(abs(left), abs(right - left))
    size = np.arange(1, largest + 1)[:, None]
    near = np.rint(size * shape)
    error = np.abs(near / size - shape).max(axis=1)
    straight, bent = near[np.argsort(error, kind="stable")[:_TRIALS]].astype(np.int64).T
    sums = _bent_sums(centred, straight[:, None], bent[:, None]).astype(np.float64)
    least, most = multiplier_range(sums, limits.lower, limits.upper)
    good = multipliers_within(least, most, limits.rounding)[0] >= 0
    return list(zip(straight[good].tolist(), bent[good].tolist(), strict=True))


def _bent_sums(centred: Int64, straight: Int64 | int, bent: Int64 | int) -> Int64:
    return straight * centred + bent * np.maximum(centred, 0)


def _bent(
    op: Table,
    zero: int,
    multipliers: tuple[int, int],
    scaling: Scaling,
    types: dict[str, TensorType],
) -> list[Op]:
    """A layer that clamps the codes at `zero`, and one that adds."""
    source, channels = op.inputs[0], types[op.output].shape[1]
    clamped = unused_name(f"{op.output}.clamped", types)
    types[clamped] = types[source]
    law = Table(
        name=op.name,
        inputs=op.inputs,
        output=clamped,
        table=np.maximum(_CODES, zero).astype(np.int8),
    )
    identity = Scaling(mult=1, shift=0, rounding=Rounding.HALF_EVEN)
    keep = Limits(codes=_CODES, zero_point=zero, low=zero, high=127)
    first = _depthwise(op, clamped, law, 1, _params(channels, -zero, identity, keep), channels)
    bias = -zero * sum(multipliers)
    params = _params(channels, bias, scaling, _limits(op, zero))
    then = AccelAdd(
        name=op.name,
        inputs=(source, clamped),
        output=op.output,
        device=op.device,
        multipliers=multipliers,
        params=params,
        origin=op,
    )
    return [first, then]


def _depthwise(
    op: Table, output: str, law: Table, weight: int, params: ChannelParams, channels: int
) -> AccelConv2d:
    return AccelConv2d(
        name=op.name,
        inputs=op.inputs,
        output=output,
        device=op.device,
        weight=np.full((channels, 1, 1, 1), weight, np.int16),
        params=params,
        pad_value=0,
        strides=(1, 1),
        pads=(0, 0, 0, 0),
        dilations=(1, 1),
        group=channels,
        origin=law,
    )


def _params(channels: int, bias: int, scaling: Scaling, limits: Limits) -> ChannelParams:
    return ChannelParams(
        bias=np.full(channels, bias, np.int32),
        mult=np.full(channels, scaling.mult, np.uint32),
        shift=np.full(channels, scaling.shift, np.uint8),
        zero_point=np.full(channels, limits.zero_point, np.int16),
        low=np.full(channels, limits.low, np.int16),
        high=np.full(channels, limits.high, np.int16),
        rounding=scaling.rounding,
    )
