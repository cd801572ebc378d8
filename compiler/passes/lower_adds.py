"""Rewrites sums of two quantized tensors in the accelerator's arithmetic."""

from dataclasses import replace

import numpy as np

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AccelAdd, Binary, Op
from vitral.compiler.passes.ranges import Range, code_ranges
from vitral.compiler.passes.sums import SumLaw, SumParameters, find_sum
from vitral.compiler.schedule.layer import ChannelParams

__all__ = ["lower_adds"]


def lower_adds(graph: Graph) -> Graph:
    """Add and Sub of two int8 values of one shape of rank 4 become `AccelAdd`.

    Only with parameters that were proved right for every pair of codes that the values can hold;
    without them the operator stays, with a notice.
    """
    ranges = code_ranges(graph)
    ops: list[Op] = []
    notices: list[str] = []
    for op in graph.ops:
        if not isinstance(op, Binary) or not _fits(graph, op):
            ops.append(op)
            continue
        found = find_sum(_law(op, ranges))
        if found is None:
            ops.append(op)
            notices.append(
                f"node {op.name!r} ({op.kind}) runs on the CPU: no integers round all pairs of"
                " codes as its scales do in float32; other scales would"
            )
            continue
        ops.append(_lowered(op, found, graph.types[op.output].shape[1]))
    return replace(graph, ops=tuple(ops)).noted(*notices)


def _fits(graph: Graph, op: Binary) -> bool:
    a, b = (graph.types[name] for name in op.inputs)
    codes = op.y_quant is not None and a.dtype == b.dtype == "int8"
    same = a.shape == b.shape and len(a.shape) == 4
    computed = not any(name in graph.constants for name in op.inputs)
    free = op.device != "cpu"
    return free and codes and same and computed and op.function in ("add", "sub")


def _law(op: Binary, ranges: dict[str, Range]) -> SumLaw:
    assert op.y_quant is not None
    first, second = (ranges[name] for name in op.inputs)
    return SumLaw(
        function=op.function,
        a_quant=op.a_quant,
        b_quant=op.b_quant,
        y_quant=op.y_quant,
        bounds=op.bounds,
        a_range=first,
        b_range=second,
        table=None if op.table is None else op.table.tobytes(),
    )


def _lowered(op: Binary, found: SumParameters, channels: int) -> AccelAdd:
    assert op.y_quant is not None
    params = ChannelParams(
        bias=np.full(channels, found.bias, np.int32),
        mult=np.full(channels, found.scaling.mult, np.uint32),
        shift=np.full(channels, found.scaling.shift, np.uint8),
        zero_point=np.full(channels, op.y_quant.tensor_zero, np.int16),
        low=np.full(channels, found.low, np.int16),
        high=np.full(channels, found.high, np.int16),
        rounding=found.scaling.rounding,
    )
    return AccelAdd(
        name=op.name,
        inputs=op.inputs,
        output=op.output,
        device=op.device,
        multipliers=found.multipliers,
        params=params,
        origin=op,
    )
