"""Makes constant padding in front of a convolution part of it."""

from dataclasses import replace

import numpy as np

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import Conv2d, Op, Pick

__all__ = ["fold_pads"]

_ROWS, _COLUMNS = 2, 3


def fold_pads(graph: Graph) -> Graph:
    """conv2d(pad(x)) becomes conv2d(x) with more padding, where the padding means real 0."""
    writers = graph.producers()
    return replace(graph, ops=tuple(_folded(graph, writers, op) for op in graph.ops))


def _folded(graph: Graph, writers: dict[str, Op], op: Op) -> Op:
    pad = writers.get(op.inputs[0]) if isinstance(op, Conv2d) else None
    if not isinstance(op, Conv2d) or not isinstance(pad, Pick):
        return op
    if pad.device not in (None, op.device):
        return op
    if pad.fill != op.x_quant.tensor_zero or not {*pad.axes} <= {_ROWS, _COLUMNS}:
        return op
    shape = graph.types[pad.inputs[0]].shape
    widths = {axis: _widths(index, shape[axis]) for axis, index in _each(pad)}
    if None in widths.values():
        return op
    (top, bottom), (left, right) = (widths.get(axis) or (0, 0) for axis in (_ROWS, _COLUMNS))
    pads = (op.pads[0] + top, op.pads[1] + left, op.pads[2] + bottom, op.pads[3] + right)
    return replace(op, inputs=pad.inputs, pads=pads)


def _each(pad: Pick) -> list[tuple[int, np.ndarray]]:
    return list(zip(pad.axes, pad.indices, strict=True))


def _widths(index: np.ndarray, size: int) -> tuple[int, int] | None:
    """(before, after) when the index is 0..size - 1 between padding, else None."""
    before = int(np.argmax(index >= 0))
    after = index.size - size - before
    if after < 0 or not np.array_equal(index[before : before + size], np.arange(size)):
        return None
    return (before, after) if (np.delete(index, slice(before, before + size)) < 0).all() else None
