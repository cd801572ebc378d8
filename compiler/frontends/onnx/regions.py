"""Operators that pick, repeat or pad elements: on codes, they only move them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Real, Symbol, Tensor
from vitral.compiler.ir.ops import Pick

__all__ = ["OPERATORS"]

Int64 = npt.NDArray[np.int64]
Indices = dict[int, Int64]
"""For each axis that changes, the index of every element kept; -1 for padding."""

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


def _pad(scope: Scope) -> Symbol:
    """With a constant that a code means, or with elements of the tensor."""
    shape = scope.need(0).shape
    rank = len(shape)
    pads = scope.integers(1) or scope.integer_list("pads")
    axes = _axes(scope, 3, rank) or list(range(rank))
    if pads is None or min(pads) < 0 or len(pads) != 2 * len(axes):
        raise scope.fail(f"needs {2 * len(axes)} pads >= 0, got {pads}")
    mode = scope.text("mode", "constant")
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise scope.fail(f"needs a known mode, got {mode!r}")
    indices: Indices = {}
    for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        here = np.arange(shape[axis])
        if mode == "constant":
            indices[axis] = np.pad(here, (before, after), constant_values=-1)
        elif mode == "edge":
            indices[axis] = np.pad(here, (before, after), mode="edge")
        else:
            indices[axis] = _folded(scope, here, (before, after), mode)
    return _picked(scope, indices, _fill(scope) if mode == "constant" else None)


def _folded(scope: Scope, here: Int64, widths: tuple[int, int], mode: str) -> Int64:
    if max(widths) > here.size - (mode == "reflect"):
        raise scope.fail(f"needs pads that fit mode {mode}, got {widths} for size {here.size}")
    return np.pad(here, widths, mode="reflect" if mode == "reflect" else "wrap")


def _fill(scope: Scope) -> np.float32:
    value = scope.array(2)
    if value is None:
        return np.float32(scope.number("value", 0.0))
    if value.size != 1:
        raise scope.fail(f"needs one number as {scope.named(2)}, got shape {list(value.shape)}")
    return np.float32(value.reshape(-1)[0])


def _slice(scope: Scope) -> Symbol:
    """Inputs starts, ends, axes, steps (opset 10 on)."""
    shape = scope.need(0).shape
    starts, ends = scope.integers(1), scope.integers(2)
    if starts is None or ends is None or len(starts) != len(ends):
        raise scope.fail(f"needs as many starts as ends, got {starts} and {ends}")
    axes = _axes(scope, 3, len(shape)) or list(range(len(starts)))
    steps = scope.integers(4) or [1] * len(starts)
    if len(axes) != len(starts) or len(steps) != len(starts) or 0 in steps:
        raise scope.fail(f"needs an axis and a step for each start, got {axes} and {steps}")
    indices: Indices = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = shape[axis]
        stop = None if step < 0 and end < -size else end
        indices[axis] = np.arange(size)[slice(start, stop, step)]
    return _picked(scope, indices)


def _split(scope: Scope) -> tuple[Symbol, ...]:
    shape, names = scope.need(0).shape, scope.node.outputs
    axis = scope.integer("axis", 0) % len(shape)
    given = scope.integers(1) or scope.integer_list("split")
    whole = -(-shape[axis] // len(names))
    sizes = given or [whole] * (len(names) - 1) + [shape[axis] - whole * (len(names) - 1)]
    if len(sizes) != len(names) or sum(sizes) != shape[axis] or min(sizes) < 1:
        raise scope.fail(f"needs {len(names)} sizes > 0 of {shape[axis]} together, got {sizes}")
    ends = np.cumsum(sizes)
    return tuple(
        _picked(scope, {axis: np.arange(end - size, end)}, name=name)
        for name, size, end in zip(names, sizes, ends, strict=True)
    )


def _gather(scope: Scope) -> Symbol:
    """Constant indices of rank 0 or 1."""
    shape = scope.need(0).shape
    axis = scope.integer("axis", 0) % len(shape)
    wanted = scope.array(1)
    if wanted is None or wanted.ndim > 1 or wanted.dtype.kind not in "iu":
        raise scope.fail(f"needs a list of constant indices as {scope.named(1)}")
    index = wanted.reshape(-1).astype(np.int64)
    if index.size and (index.min() < -shape[axis] or index.max() >= shape[axis]):
        raise scope.fail(f"needs indices of {shape[axis]} elements, got {index.tolist()}")
    name = scope.output if wanted.ndim else scope.builder.unique(f"{scope.output}.wide")
    result = _picked(scope, {axis: index % shape[axis]}, name=name)
    if wanted.ndim:
        return result
    flat = (*shape[:axis], *shape[axis + 1 :])
    if isinstance(result, Real):
        tensor = scope.reshape(result.tensor, flat, scope.value_name(result))
        return replace(result, tensor=tensor)
    assert isinstance(result, Tensor)
    return scope.reshape(result, flat, scope.output)


def _resize(scope: Scope) -> Symbol:
    """Nearest neighbour; the source of every index is found in exact rationals."""
    old = scope.node.op == "Upsample" or scope.node.opset < 11
    mode = scope.text("mode", "nearest")
    coordinates = scope.text(
        "coordinate_transformation_mode", "asymmetric" if old else "half_pixel"
    )
    rounding = scope.text("nearest_mode", "floor" if old else "round_prefer_floor")
    if mode != "nearest" or coordinates not in _COORDINATES or rounding not in _NEAREST:
        raise scope.fail(
            f"needs mode nearest with asymmetric or half_pixel coordinates, got {mode!r},"
            f" {coordinates!r}, {rounding!r}"
        )
    shape = scope.need(0).shape
    indices: Indices = {}
    for axis, ratio in enumerate(_ratios(scope, shape, 1 if old else 2)):
        source, nearest = _COORDINATES[coordinates], _NEAREST[rounding]
        places = [nearest(source(i, ratio)) for i in range(int(shape[axis] * ratio))]
        indices[axis] = np.array(places, np.int64).clip(0, shape[axis] - 1)
    return _picked(scope, indices)


def _ratios(scope: Scope, shape: Sequence[int], at: int) -> list[Fraction]:
    """Output over input size of each axis, from sizes or scales."""
    if scope.integer_list("axes") is not None:
        raise scope.fail("needs sizes or scales of all axes, got attribute 'axes'")
    sizes = scope.integers(3)
    if sizes and len(sizes) == len(shape):
        return [Fraction(n, m) for n, m in zip(sizes, shape, strict=True)]
    scales = scope.array(at)
    values = [] if scales is None else scales.reshape(-1).tolist()
    if len(values) != len(shape) or not all(np.isfinite(v) and v > 0 for v in values):
        raise scope.fail(f"needs {len(shape)} scales > 0 or as many sizes, got {values}")
    return [Fraction(value) for value in values]


def _axes(scope: Scope, index: int, rank: int) -> list[int] | None:
    axes = scope.integers(index)
    if axes is None:
        return None
    if any(not -rank <= axis < rank for axis in axes):
        raise scope.fail(f"needs axes of {rank} dimensions, got {axes}")
    return [axis % rank for axis in axes]


def _picked(
    scope: Scope, indices: Indices, fill: np.float32 | None = None, name: str | None = None
) -> Symbol:
    """Argument 0 with elements picked along axes; `fill` is the real value of index -1."""
    symbol, output = scope.need(0), name or scope.output
    if isinstance(symbol, Real):
        code = 0 if fill is None else _code(symbol, fill)
        if code is not None:
            codes = scope.builder.unique(f"{output}.codes")
            tensor = _pick(scope, symbol.tensor, indices, code, codes)
            return replace(symbol, tensor=tensor)
    tensor = scope.builder.tensor(symbol, scope.node.name)
    return _pick(scope, tensor, indices, 0.0 if fill is None else float(fill), output)


def _code(real: Real, fill: np.float32) -> int | None:
    """The code that means `fill` exactly, if there is one; the zero point for 0."""
    low = int(np.iinfo(real.tensor.type.dtype).min)
    if fill == 0 and real.quant is not None:
        return real.quant.tensor_zero
    found = np.flatnonzero(real.table == fill)
    return int(found[0]) + low if found.size else None


def _pick(scope: Scope, tensor: Tensor, indices: Indices, fill: float, output: str) -> Tensor:
    changed = {
        axis: index
        for axis, index in indices.items()
        if not np.array_equal(index, np.arange(tensor.shape[axis]))
    }
    if not changed:
        return scope.reshape(tensor, tensor.shape, output)
    empty = [axis for axis, index in changed.items() if not index.size]
    if empty:
        raise scope.fail(f"needs at least one element along axis {empty[0]}, got none")
    return scope.builder.emit(
        Pick(
            name=scope.node.name,
            inputs=(tensor.name,),
            output=output,
            axes=tuple(changed),
            indices=tuple(changed.values()),
            fill=fill,
        )
    )


OPERATORS = {
    ("", "Pad"): _pad,
    ("", "Slice"): _slice,
    ("", "Split"): _split,
    ("", "Gather"): _gather,
    ("", "Resize"): _resize,
    ("", "Upsample"): _resize,
}
