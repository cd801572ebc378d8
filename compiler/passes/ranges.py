"""The codes that a value can hold, from the clamps of what computes it."""

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AccelAdd, AccelConv2d, AccelMaxPool2d, MaxPool, Op, Reshape

__all__ = ["Range", "code_ranges"]

Range = tuple[int, int]

_ALL: Range = (-128, 127)


def code_ranges(graph: Graph) -> dict[str, Range]:
    """Lowest and highest code of each int8 value; the CPU obeys the same clamps."""
    ranges: dict[str, Range] = dict.fromkeys((*graph.inputs, *graph.constants), _ALL)
    for op in graph.ops:
        ranges[op.output] = _range(op, ranges)
    return ranges


def _range(op: Op, ranges: dict[str, Range]) -> Range:
    if isinstance(op, AccelConv2d | AccelAdd):
        return int(op.params.low.min()), int(op.params.high.max())
    if isinstance(op, MaxPool | AccelMaxPool2d | Reshape):
        return ranges[op.inputs[0]]
    return _ALL
