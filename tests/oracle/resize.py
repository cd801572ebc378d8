"""Resize and Upsample, written as one matrix of rational weights for each axis.

Row i of the matrix says how much of every input element result i is made of. Nearest neighbours are
rows with a single 1 and keep integers; linear rows have two entries, and the weighted sum of exact
integers over the common denominator is rounded once.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from oracle.graph import Node
from oracle.regions import moved
from oracle.values import Array, Averaged, Dequantized, Value, materialise

__all__ = ["OPERATORS"]

_NEAREST: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda c: math.ceil(c - Fraction(1, 2)),
    "round_prefer_ceil": lambda c: math.floor(c + Fraction(1, 2)),
}


def _resize(node: Node, args: Sequence[Value | None]) -> Value:
    x, mode = args[0], node.get("mode", "nearest")
    if x is None or mode not in ("nearest", "linear") or node.get("antialias", 0):
        raise node.fail(f"needs an input and nearest or linear without antialias, got {mode!r}")
    data = x.data if isinstance(x, Dequantized) else materialise(x)
    geometry = _geometry(node, args, data.shape)
    places = [_places(node, size, *rest) for size, rest in zip(data.shape, geometry, strict=True)]
    if mode == "nearest":
        return moved(x, lambda array: _nearest(node, array, places))
    if all(length == n and r == 1 for n, (length, r) in zip(data.shape, geometry, strict=True)):
        return x
    total, unit = x.centred() if isinstance(x, Dequantized) else data.astype(np.float64), 1
    for axis, centres in enumerate(places):
        matrix, denominator = _matrix(data.shape[axis], centres)
        if not isinstance(x, Dequantized):
            matrix, denominator = matrix / denominator, 1
        total = np.moveaxis(np.tensordot(total, matrix, axes=(axis, 1)), -1, axis)
        unit *= denominator
    if not isinstance(x, Dequantized):
        return total.astype(np.float32)
    return Averaged(
        total=total.astype(np.int64), count=np.array(unit), scale=x.tensor_scale(node.where)
    )


def _nearest(node: Node, data: Array, places: list[list[Fraction]]) -> Array:
    old = node.op == "Upsample" or node.opset < 11
    rule = node.get("nearest_mode", "floor" if old else "round_prefer_floor")
    if rule not in _NEAREST:
        raise node.fail(f"needs a known nearest_mode, got {rule!r}")
    for axis, centres in enumerate(places):
        size = data.shape[axis]
        data = np.take(data, [min(max(_NEAREST[rule](c), 0), size - 1) for c in centres], axis)
    return data


def _matrix(size: int, centres: list[Fraction]) -> tuple[Array, int]:
    """Integer weights (results, size) in units of one over their common denominator."""
    denominator = math.lcm(*(c.denominator for c in centres))
    matrix = np.zeros((len(centres), size), np.int64)
    for row, centre in enumerate(centres):
        first = math.floor(centre)
        share = int((centre - first) * denominator)
        matrix[row, min(max(first, 0), size - 1)] += denominator - share
        matrix[row, min(max(first + 1, 0), size - 1)] += share
    return matrix, denominator


def _geometry(
    node: Node, args: Sequence[Value | None], shape: tuple[int, ...]
) -> list[tuple[int, Fraction]]:
    """(size of the result, ratio) of each axis."""
    rank, old = len(shape), node.op == "Upsample" or node.opset < 11
    result = [(n, Fraction(1)) for n in shape]
    axes = [a % rank for a in node.get("axes", range(rank))]
    sizes = args[3] if len(args) > 3 else None
    if sizes is not None:
        wanted = [int(v) for v in materialise(sizes)]
        ratios = [Fraction(n, shape[a]) for n, a in zip(wanted, axes, strict=True)]
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            ratios = [ratio for _ in axes]
            wanted = [math.floor(ratio * shape[a] + Fraction(1, 2)) for a in axes]
    else:
        at = 1 if old else 2
        given = args[at] if len(args) > at else None
        scales = node.get("scales", []) if given is None else materialise(given).tolist()
        ratios = [Fraction(float(s)) for s in scales]
        wanted = [int(shape[a] * r) for a, r in zip(axes, ratios, strict=True)]
    for axis, length, ratio in zip(axes, wanted, ratios, strict=True):
        result[axis] = (length, ratio)
    return result


def _places(node: Node, size: int, length: int, ratio: Fraction) -> list[Fraction]:
    """Where each result lies in the input; an axis that keeps its size is left alone."""
    if length == size and ratio == 1:
        return [Fraction(i) for i in range(length)]
    old = node.op == "Upsample" or node.opset < 11
    mode = node.get("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    half = Fraction(1, 2)
    middles = [(i + half) / ratio for i in range(length)]
    if mode == "asymmetric":
        return [i / ratio for i in range(length)]
    if mode == "half_pixel":
        return [m - half for m in middles]
    if mode == "pytorch_half_pixel":
        return [m - half for m in middles] if length > 1 else [Fraction(0)]
    if mode == "tf_half_pixel_for_nn":
        return middles
    if mode == "align_corners":
        # The length that scales ask for, which need not be whole, as in ONNX's own node tests.
        last = ratio * size - 1 if length > 1 else Fraction(1)
        return [i * (size - 1) / last for i in range(length)]
    if mode == "half_pixel_symmetric":
        offset = Fraction(size, 2) * (1 - length / (ratio * size))
        return [offset + m - half for m in middles]
    raise node.fail(f"needs a known coordinate mode, got {mode!r}")


OPERATORS = {("", "Resize"): _resize, ("", "Upsample"): _resize}
