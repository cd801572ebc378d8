"""Operators that pick, repeat or pad elements: on codes, they only move them."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Real, Symbol, Tensor
from vitral.compiler.ir.ops import Pick

__all__ = ["OPERATORS", "picked"]

Int64 = npt.NDArray[np.int64]
Indices = dict[int, Int64]
"""For each axis that changes, the index of every element kept; -1 for padding."""

_MOST = 1 << 24
"""Widest padding; beyond, nothing could hold the result."""


def _pad(scope: Scope) -> Symbol:
    """With a constant that a code means, or with elements of the tensor."""
    shape = scope.need(0).shape
    rank = len(shape)
    pads = scope.integers(1) or scope.integer_list("pads")
    axes = _axes(scope, 3, rank) or list(range(rank))
    if pads is None or min(pads) < 0 or len(pads) != 2 * len(axes):
        raise scope.fail(f"needs {2 * len(axes)} pads >= 0, got {pads}")
    if max(pads) > _MOST:
        raise scope.fail(f"needs pads of at most {_MOST}, got {max(pads)}")
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
    return picked(scope, indices, _fill(scope) if mode == "constant" else None)


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
    """Inputs starts, ends, axes, steps (opset 10 on) or the attributes of older models."""
    shape = scope.need(0).shape
    starts = scope.integers(1) or scope.integer_list("starts")
    ends = scope.integers(2) or scope.integer_list("ends")
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
    return picked(scope, indices)


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
        picked(scope, {axis: np.arange(end - size, end)}, name=name)
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
    result = picked(scope, {axis: index % shape[axis]}, name=name)
    if wanted.ndim:
        return result
    flat = (*shape[:axis], *shape[axis + 1 :])
    if isinstance(result, Real):
        tensor = scope.reshape(result.tensor, flat, scope.value_name(result))
        return replace(result, tensor=tensor)
    assert isinstance(result, Tensor)
    return scope.reshape(result, flat, scope.output)


def _tile(scope: Scope) -> Symbol:
    shape, repeats = scope.need(0).shape, scope.integers(1)
    if repeats is None or len(repeats) != len(shape) or min(repeats, default=1) < 1:
        raise scope.fail(f"needs {len(shape)} repeats >= 1, got {repeats}")
    return picked(
        scope, {axis: np.tile(np.arange(shape[axis]), n) for axis, n in enumerate(repeats)}
    )


def _axes(scope: Scope, index: int, rank: int) -> list[int] | None:
    axes = scope.integers(index) or scope.integer_list("axes")
    if axes is None:
        return None
    if any(not -rank <= axis < rank for axis in axes):
        raise scope.fail(f"needs axes of {rank} dimensions, got {axes}")
    return [axis % rank for axis in axes]


def picked(
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
    ("", "Tile"): _tile,
}
