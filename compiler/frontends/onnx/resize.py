"""Resize and Upsample: nearest neighbours move codes, linear interpolation is an exact average.

Where a result element lies in the input is an exact rational, whatever the coordinate mode. The
weights of linear interpolation are rationals too; in units of their common denominator they are
integers, so that the result is an exact integer sum divided by a count and rounded once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.regions import picked
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Real, Symbol
from vitral.compiler.ir.ops import Interpolate

__all__ = ["OPERATORS"]

Int64 = npt.NDArray[np.int64]
_HALF = Fraction(1, 2)
_LARGEST_SUM = 1 << 62


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """Sizes before and after, and the ratio that coordinates are computed with."""

    size: int
    length: int
    ratio: Fraction

    @property
    def kept(self) -> bool:
        """Whether the axis is left alone, wherever a coordinate mode puts its elements."""
        return self.length == self.size and self.ratio == 1


def _half_pixel(i: int, axis: _Axis) -> Fraction:
    return (i + _HALF) / axis.ratio - _HALF


def _align_corners(i: int, axis: _Axis) -> Fraction:
    """ONNX's node tests take the length before it is rounded down."""
    return i * (axis.size - 1) / (axis.ratio * axis.size - 1) if axis.length > 1 else Fraction(0)


def _half_pixel_symmetric(i: int, axis: _Axis) -> Fraction:
    adjustment = axis.length / (axis.ratio * axis.size)
    return Fraction(axis.size, 2) * (1 - adjustment) + _half_pixel(i, axis)


_COORDINATES: dict[str, Callable[[int, _Axis], Fraction]] = {
    "asymmetric": lambda i, axis: i / axis.ratio,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": lambda i, a: _half_pixel(i, a) if a.length > 1 else Fraction(0),
    "tf_half_pixel_for_nn": lambda i, axis: (i + _HALF) / axis.ratio,
    "align_corners": _align_corners,
}
_NEAREST: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda c: math.ceil(c - _HALF),
    "round_prefer_ceil": lambda c: math.floor(c + _HALF),
}


def _resize(scope: Scope) -> Symbol:
    old = scope.node.op == "Upsample" or scope.node.opset < 11
    mode = scope.text("mode", "nearest")
    default = "asymmetric" if old else "half_pixel"
    coordinates = scope.text("coordinate_transformation_mode", default)
    rounding = scope.text("nearest_mode", "floor" if old else "round_prefer_floor")
    known = coordinates in _COORDINATES and rounding in _NEAREST
    if mode not in ("nearest", "linear") or not known or scope.integer("antialias", 0):
        raise scope.fail(
            "needs mode nearest or linear without antialias and coordinates"
            f" {', '.join(sorted(_COORDINATES))}, got {mode!r}, {coordinates!r}, {rounding!r}"
        )
    axes = _axes(scope, scope.need(0).shape, old)
    source = _COORDINATES[coordinates]
    if mode == "linear":
        return _linear(scope, axes, source)
    indices = {
        number: np.arange(axis.size)
        if axis.kept
        else np.array(
            [_NEAREST[rounding](source(i, axis)) for i in range(axis.length)], np.int64
        ).clip(0, axis.size - 1)
        for number, axis in enumerate(axes)
    }
    return picked(scope, indices)


def _axes(scope: Scope, shape: Sequence[int], old: bool) -> list[_Axis]:
    """From sizes or scales of all axes, or of those in attribute `axes`."""
    rank = len(shape)
    chosen = scope.integer_list("axes") or list(range(rank))
    if any(not -rank <= axis < rank for axis in chosen):
        raise scope.fail(f"needs axes of {rank} dimensions, got {chosen}")
    chosen = [axis % rank for axis in chosen]
    axes = [_Axis(size=n, length=n, ratio=Fraction(1)) for n in shape]
    sizes = scope.integers(3)
    if sizes:
        found = _from_sizes(scope, [shape[axis] for axis in chosen], sizes)
    else:
        found = _from_scales(scope, [shape[axis] for axis in chosen], old)
    for axis, result in zip(chosen, found, strict=True):
        axes[axis] = result
    return axes


def _from_sizes(scope: Scope, shape: Sequence[int], sizes: Sequence[int]) -> list[_Axis]:
    if len(sizes) != len(shape) or min(sizes) < 1:
        raise scope.fail(f"needs {len(shape)} sizes >= 1, got {list(sizes)}")
    ratios = [Fraction(n, m) for n, m in zip(sizes, shape, strict=True)]
    policy = scope.text("keep_aspect_ratio_policy", "stretch")
    if policy not in ("stretch", "not_larger", "not_smaller"):
        raise scope.fail(f"needs a known keep_aspect_ratio_policy, got {policy!r}")
    if policy != "stretch":
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        ratios = [ratio] * len(shape)
        sizes = [math.floor(ratio * n + _HALF) for n in shape]
    return [
        _Axis(size=n, length=length, ratio=ratio)
        for n, length, ratio in zip(shape, sizes, ratios, strict=True)
    ]


def _from_scales(scope: Scope, shape: Sequence[int], old: bool) -> list[_Axis]:
    scales = scope.array(1 if old else 2)
    values = scope.numbers("scales") if scales is None else scales.reshape(-1).tolist()
    if len(values) != len(shape) or not all(math.isfinite(v) and v > 0 for v in values):
        raise scope.fail(f"needs {len(shape)} scales > 0 or as many sizes, got {values}")
    ratios = [Fraction(value) for value in values]
    axes = [
        _Axis(size=n, length=int(n * ratio), ratio=ratio)
        for n, ratio in zip(shape, ratios, strict=True)
    ]
    if any(axis.length < 1 for axis in axes):
        raise scope.fail(f"needs at least one element along each axis, got scales {values}")
    return axes


def _linear(
    scope: Scope, axes: Sequence[_Axis], source: Callable[[int, _Axis], Fraction]
) -> Symbol:
    x = scope.need(0)
    changed = [
        number for number, axis in enumerate(axes) if axis.length != axis.size or axis.ratio != 1
    ]
    if not changed:
        return picked(scope, {})
    taps = [_taps(axes[number], source) for number in changed]
    denominator = math.prod(unit for _, _, unit in taps)
    shape = tuple(axis.length for axis in axes)
    if not isinstance(x, Real) or x.quant is None:
        tensor = scope.real(x)
        constants = [
            scope.builder.constant(f"{scope.node.name}.{what}{n}", array)
            for n, (index, weight, unit) in enumerate(taps)
            for what, array in (("index", index), ("weight", weight / unit))
        ]
        attributes = {"axes": changed}
        return scope.float_op("interpolate", (tensor, *constants), shape, attributes=attributes)
    if denominator * 256 >= _LARGEST_SUM:
        raise scope.fail("needs scales whose weights have a common denominator below 2 ** 54")
    op = Interpolate(
        name=scope.node.name,
        inputs=(x.tensor.name,),
        output="",
        y_quant=None,
        x_quant=x.quant,
        axes=tuple(changed),
        indices=tuple(index for index, _, _ in taps),
        weights=tuple(weight for _, weight, _ in taps),
        denominator=denominator,
    )
    return scope.pending(op)


def _taps(axis: _Axis, source: Callable[[int, _Axis], Fraction]) -> tuple[Int64, Int64, int]:
    """Two indices and two integer weights for each result, (length, 2), and what weights add to."""
    places = [source(i, axis) for i in range(axis.length)]
    unit = math.lcm(*(place.denominator for place in places))
    left = [math.floor(place) for place in places]
    right = [int((place - first) * unit) for place, first in zip(places, left, strict=True)]
    indices = np.array([(first, first + 1) for first in left], np.int64).clip(0, axis.size - 1)
    return indices, np.array([(unit - part, part) for part in right], np.int64), unit


OPERATORS = {("", "Resize"): _resize, ("", "Upsample"): _resize}
