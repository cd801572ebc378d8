"""Operators that only move elements: they keep integers integer."""

from collections.abc import Callable, Sequence

import numpy as np

from oracle.graph import Node
from oracle.qdq import quantized_input, quantized_output
from oracle.values import Array, Dequantized, Value, materialise, quantize

__all__ = ["OPERATORS"]


def _identity(node: Node, args: Sequence[Value | None]) -> Value:
    if args[0] is None:
        raise node.fail("needs an input, got an empty name")
    return args[0]


def _reshape(node: Node, args: Sequence[Value | None]) -> Value:
    x, shape = _identity(node, args), _integers(node, args, 1)
    old = _shape(x)
    sizes = list(shape)
    if not node.get("allowzero", 0):
        sizes = [old[i] if s == 0 and i < len(old) else s for i, s in enumerate(sizes)]
    return _moved(node, x, lambda data: data.reshape(sizes))


def _flatten(node: Node, args: Sequence[Value | None]) -> Value:
    x = _identity(node, args)
    shape = _shape(x)
    axis = node.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    rows = int(np.prod(shape[:axis], dtype=np.int64))
    return _moved(node, x, lambda data: data.reshape(rows, -1))


def _transpose(node: Node, args: Sequence[Value | None]) -> Value:
    order = node.get("perm", None)
    return _moved(node, _identity(node, args), lambda data: data.transpose(order))


def _squeeze(node: Node, args: Sequence[Value | None]) -> Value:
    axes = _axes(node, args)
    x = _identity(node, args)
    return _moved(node, x, lambda data: data.squeeze(None if axes is None else tuple(axes)))


def _unsqueeze(node: Node, args: Sequence[Value | None]) -> Value:
    axes = _axes(node, args)
    if axes is None:
        raise node.fail("needs axes, got none")
    return _moved(node, _identity(node, args), lambda data: np.expand_dims(data, tuple(axes)))


def _depth_to_space(node: Node, args: Sequence[Value | None]) -> Value:
    x, block = _identity(node, args), node.get("blocksize", 1)
    n, c, h, w = _shape(x)
    out = c // block**2

    def move(data: Array) -> Array:
        """One block position at a time."""
        result = np.empty((n, out, h * block, w * block), data.dtype)
        for i in range(block):
            for j in range(block):
                phase = i * block + j
                dcr = node.get("mode", "DCR") == "DCR"
                source = (
                    data[:, phase * out : (phase + 1) * out] if dcr else data[:, phase :: block**2]
                )
                result[:, :, i::block, j::block] = source
        return result

    return _moved(node, x, move)


def _space_to_depth(node: Node, args: Sequence[Value | None]) -> Value:
    x, block = _identity(node, args), node.get("blocksize", 1)

    def move(data: Array) -> Array:
        phases = [data[:, :, i::block, j::block] for i in range(block) for j in range(block)]
        if node.get("mode", "DCR") == "DCR":
            return np.concatenate(phases, axis=1)
        n, c, h, w = phases[0].shape
        return np.stack(phases, axis=2).reshape(n, c * len(phases), h, w)

    return _moved(node, x, move)


def _concat(node: Node, args: Sequence[Value | None]) -> Value:
    """Integers stay integers when every input has the same parameters, else float32."""
    values = [v for v in args if v is not None]
    axis, first = node.get("axis", 1), values[0]
    same = [v.data for v in values if isinstance(v, Dequantized) and _same(first, v)]
    if isinstance(first, Dequantized) and len(same) == len(values):
        return Dequantized(data=np.concatenate(same, axis=axis), params=first.params)
    return np.concatenate([materialise(v) for v in values], axis=axis)


def _qlinear_concat(node: Node, args: Sequence[Value | None]) -> Value:
    """com.microsoft: output scale and zero point first, then one triple per input."""
    parts = [quantized_input(node, args, first) for first in range(2, len(args), 3)]
    params = quantized_output(node, args, 0, parts[0].data.dtype)
    joined = np.concatenate([p.real() for p in parts], axis=node.get("axis", 1))
    return quantize(joined, params, node.unrounded)


def _same(a: Value, b: Dequantized) -> bool:
    """Whether both have the same scale, zero point and type per tensor."""
    if not isinstance(a, Dequantized) or a.params.axis is not None or b.params.axis is not None:
        return False
    p, q = a.params, b.params
    return (p.scale, p.zero_point, p.dtype) == (q.scale, q.zero_point, q.dtype)


def _moved(node: Node, x: Value, move: Callable[[Array], Array]) -> Value:
    try:
        if isinstance(x, Dequantized) and x.params.axis is None:
            return Dequantized(data=move(x.data), params=x.params)
        return move(materialise(x))
    except ValueError as error:
        raise node.fail(str(error)) from error


def _axes(node: Node, args: Sequence[Value | None]) -> list[int] | None:
    if len(args) > 1 and args[1] is not None:
        return _integers(node, args, 1)
    return node.get("axes", None)


def _integers(node: Node, args: Sequence[Value | None], index: int) -> list[int]:
    value = args[index] if index < len(args) else None
    if value is None:
        raise node.fail(f"needs input {index}, got none")
    return [int(v) for v in materialise(value).reshape(-1)]


def _shape(x: Value) -> tuple[int, ...]:
    return x.data.shape if isinstance(x, Dequantized) else materialise(x).shape


OPERATORS = {
    ("", "Identity"): _identity,
    ("", "Dropout"): _identity,
    ("", "Reshape"): _reshape,
    ("", "Flatten"): _flatten,
    ("", "Transpose"): _transpose,
    ("", "Squeeze"): _squeeze,
    ("", "Unsqueeze"): _unsqueeze,
    ("", "DepthToSpace"): _depth_to_space,
    ("", "SpaceToDepth"): _space_to_depth,
    ("", "Concat"): _concat,
    ("com.microsoft", "QLinearConcat"): _qlinear_concat,
}
