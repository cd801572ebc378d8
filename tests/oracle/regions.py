"""Operators that pick, repeat or pad elements, and the shape arithmetic exporters leave in graphs.

On a quantized tensor they work on its integers; padding with real 0 is padding with the zero point.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import helper

from oracle.graph import Node
from oracle.values import Array, Dequantized, Value, materialise, quantize_float

__all__ = ["OPERATORS", "moved"]

_PAD_MODES = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def _pad(node: Node, args: Sequence[Value | None]) -> Value:
    x = _operand(node, args)
    pads = node.get("pads", None) or _integers(args, 1)
    rank = _data(x).ndim
    if pads is None or min(pads) < 0:
        raise node.fail(f"needs pads >= 0, got {pads}")
    axes = [a % rank for a in _integers(args, 3) or range(rank)]
    widths = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        widths[axis] = (pads[i], pads[len(axes) + i])
    mode = node.get("mode", "constant")
    if mode in _PAD_MODES:
        return moved(x, lambda data: np.pad(data, widths, mode=mode))
    fill = np.float32(node.get("value", 0.0))
    if len(args) > 2 and args[2] is not None:
        fill = materialise(args[2]).reshape(()).astype(np.float32)
    if isinstance(x, Dequantized) and x.params.axis is None:
        inside = quantize_float(np.asarray(fill), x.params)
        if Dequantized(data=inside, params=x.params).real() == fill:
            return moved(x, lambda data: np.pad(data, widths, constant_values=inside))
    return np.pad(materialise(x), widths, constant_values=fill)


def _slice(node: Node, args: Sequence[Value | None]) -> Value:
    """Inputs starts, ends, axes, steps (opset 10 on) or the attributes of older models."""
    x = _operand(node, args)
    starts = node.get("starts", None) or _integers(args, 1)
    ends = node.get("ends", None) or _integers(args, 2)
    if starts is None or ends is None:
        raise node.fail("needs starts and ends, got none")
    axes = node.get("axes", None) or _integers(args, 3) or range(len(starts))
    steps = _integers(args, 4) or [1] * len(starts)
    index = [slice(None)] * _data(x).ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = _data(x).shape[axis]
        stop = None if step < 0 and end < -size else end
        index[axis] = slice(start, stop, step)
    return moved(x, lambda data: data[tuple(index)])


def _split(node: Node, args: Sequence[Value | None]) -> list[Value]:
    x = _operand(node, args)
    axis, parts = node.get("axis", 0), len(node.outputs)
    size = _data(x).shape[axis]
    whole = math.ceil(size / parts)
    sizes = node.get("split", None) or _integers(args, 1) or [whole] * (parts - 1)
    edges = np.cumsum(sizes[: parts - 1])
    return [moved(x, lambda data, i=i: np.split(data, edges, axis=axis)[i]) for i in range(parts)]


def _gather(node: Node, args: Sequence[Value | None]) -> Value:
    indices = args[1]
    if indices is None:
        raise node.fail("needs indices, got none")
    axis = node.get("axis", 0)
    return moved(_operand(node, args), lambda data: np.take(data, materialise(indices), axis=axis))


def _tile(node: Node, args: Sequence[Value | None]) -> Value:
    repeats = _integers(args, 1)
    if repeats is None:
        raise node.fail("needs repeats, got none")
    return moved(_operand(node, args), lambda data: np.tile(data, repeats))


def _expand(node: Node, args: Sequence[Value | None]) -> Value:
    x, shape = _operand(node, args), _integers(args, 1) or []
    whole = np.broadcast_shapes(_data(x).shape, tuple(shape))
    return moved(x, lambda data: np.broadcast_to(data, whole))


def _shape(node: Node, args: Sequence[Value | None]) -> Value:
    shape = _data(_operand(node, args)).shape
    end = node.get("end", None)
    return np.array(shape[node.get("start", 0) : end], dtype=np.int64)


def _cast(node: Node, args: Sequence[Value | None]) -> Value:
    dtype: Any = helper.tensor_dtype_to_np_dtype(node.get("to", 1))
    return materialise(_operand(node, args)).astype(dtype)


def _softmax(node: Node, args: Sequence[Value | None]) -> Value:
    """A float island: float64 rounded to float32 once; not part of the byte promise."""
    x = materialise(_operand(node, args)).astype(np.float64)
    axis = node.get("axis", -1 if node.opset >= 13 else 1)
    axes = axis if node.opset >= 13 else tuple(range(axis % x.ndim, x.ndim))
    power = np.exp(x - x.max(axis=axes, keepdims=True))
    return (power / power.sum(axis=axes, keepdims=True)).astype(np.float32)


def moved(x: Value, move: Callable[[Array], Array]) -> Value:
    if isinstance(x, Dequantized) and x.params.axis is None:
        return Dequantized(data=move(x.data), params=x.params)
    return move(materialise(x))


def _data(x: Value) -> Array:
    return x.data if isinstance(x, Dequantized) else materialise(x)


def _operand(node: Node, args: Sequence[Value | None]) -> Value:
    if not args or args[0] is None:
        raise node.fail("needs an input, got an empty name")
    return args[0]


def _integers(args: Sequence[Value | None], index: int) -> list[int] | None:
    value = args[index] if index < len(args) else None
    return None if value is None else [int(v) for v in materialise(value).reshape(-1)]


OPERATORS = {
    ("", "Pad"): _pad,
    ("", "Slice"): _slice,
    ("", "Split"): _split,
    ("", "Gather"): _gather,
    ("", "Tile"): _tile,
    ("", "Expand"): _expand,
    ("", "Shape"): _shape,
    ("", "Cast"): _cast,
    ("", "Softmax"): _softmax,
}
