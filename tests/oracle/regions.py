"""Operators that pick, repeat or pad elements, and the shape arithmetic exporters leave in graphs.

On a quantized tensor they work on its integers; padding with real 0 is padding with the zero point.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from onnx import helper

from oracle.graph import Node
from oracle.values import Array, Dequantized, Value, materialise, quantize_float

__all__ = ["OPERATORS"]

_HALF = Fraction(1, 2)
_COORDINATES: dict[str, Callable[[int, Fraction], Fraction]] = {
    "asymmetric": lambda i, ratio: i / ratio,
    "half_pixel": lambda i, ratio: (i + _HALF) / ratio - _HALF,
}
_NEAREST: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda c: math.ceil(c - _HALF),
    "round_prefer_ceil": lambda c: math.floor(c + _HALF),
}
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
        return _moved(x, lambda data: np.pad(data, widths, mode=mode))
    fill = np.float32(node.get("value", 0.0))
    if len(args) > 2 and args[2] is not None:
        fill = materialise(args[2]).reshape(()).astype(np.float32)
    if isinstance(x, Dequantized) and x.params.axis is None:
        inside = quantize_float(np.asarray(fill), x.params)
        if Dequantized(data=inside, params=x.params).real() == fill:
            return _moved(x, lambda data: np.pad(data, widths, constant_values=inside))
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
    return _moved(x, lambda data: data[tuple(index)])


def _split(node: Node, args: Sequence[Value | None]) -> list[Value]:
    x = _operand(node, args)
    axis, parts = node.get("axis", 0), len(node.outputs)
    size = _data(x).shape[axis]
    whole = math.ceil(size / parts)
    sizes = node.get("split", None) or _integers(args, 1) or [whole] * (parts - 1)
    edges = np.cumsum(sizes[: parts - 1])
    return [_moved(x, lambda data, i=i: np.split(data, edges, axis=axis)[i]) for i in range(parts)]


def _gather(node: Node, args: Sequence[Value | None]) -> Value:
    indices = args[1]
    if indices is None:
        raise node.fail("needs indices, got none")
    axis = node.get("axis", 0)
    return _moved(_operand(node, args), lambda data: np.take(data, materialise(indices), axis=axis))


def _resize(node: Node, args: Sequence[Value | None]) -> Value:
    """Nearest neighbour; the source of every output index is found in exact rationals."""
    x = _operand(node, args)
    if node.get("mode", "nearest") != "nearest" or node.get("axes", None):
        raise node.fail(f"needs nearest over all axes, got {node.get('mode', 'nearest')!r}")
    old = node.op == "Upsample" or node.opset < 11
    coordinates = "asymmetric" if old else "half_pixel"
    coordinates = node.get("coordinate_transformation_mode", coordinates)
    rounding = node.get("nearest_mode", "floor" if old else "round_prefer_floor")
    if coordinates not in _COORDINATES or rounding not in _NEAREST:
        raise node.fail(f"needs a known nearest rule, got {coordinates!r} with {rounding!r}")
    ratios = _ratios(node, args, _data(x).shape, old)

    def resized(data: Array) -> Array:
        for axis, ratio in enumerate(ratios):
            size = data.shape[axis]
            sources = [_COORDINATES[coordinates](i, ratio) for i in range(int(size * ratio))]
            picked = [min(max(_NEAREST[rounding](c), 0), size - 1) for c in sources]
            data = np.take(data, picked, axis=axis)
        return data

    return _moved(x, resized)


def _ratios(
    node: Node, args: Sequence[Value | None], shape: tuple[int, ...], old: bool
) -> list[Fraction]:
    """Output over input size of each axis, from sizes or scales."""
    sizes = _integers(args, 3)
    if sizes:
        return [Fraction(n, m) for n, m in zip(sizes, shape, strict=True)]
    at = 1 if old else 2
    given = args[at] if len(args) > at else None
    scales = node.get("scales", []) if given is None else materialise(given).tolist()
    if len(scales) != len(shape):
        raise node.fail(f"needs {len(shape)} scales or sizes, got {len(scales)}")
    return [Fraction(float(s)) for s in scales]


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


def _moved(x: Value, move: Callable[[Array], Array]) -> Value:
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
    ("", "Resize"): _resize,
    ("", "Upsample"): _resize,
    ("", "Shape"): _shape,
    ("", "Cast"): _cast,
    ("", "Softmax"): _softmax,
}
