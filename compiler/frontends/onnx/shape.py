"""Operators that only move elements: they keep codes as codes."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.params import quantized_input, quantized_output
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import (
    Const,
    ConstReal,
    Joined,
    Pending,
    Real,
    Symbol,
    Tensor,
)
from vitral.compiler.ir.ops import Concat, Pick

__all__ = ["OPERATORS", "moved"]

Shape = tuple[int, ...]


def _identity(scope: Scope) -> Symbol:
    return scope.need(0)


def _shape_of(scope: Scope) -> Symbol:
    """The shape is known, whatever the data."""
    shape = scope.need(0).shape
    part = shape[scope.integer("start", 0) : scope.integer("end", len(shape))]
    return Const(array=np.array(part, np.int64))


def _size_of(scope: Scope) -> Symbol:
    return Const(array=np.array(np.prod(scope.need(0).shape, dtype=np.int64)))


def _reshape(scope: Scope) -> Symbol:
    old, wanted = scope.need(0).shape, scope.integers(1)
    if wanted is None:
        raise scope.fail("needs a shape as input 1, got none")
    if not scope.integer("allowzero", 0):
        wanted = [old[i] if n == 0 and i < len(old) else n for i, n in enumerate(wanted)]
    total = int(np.prod(old, dtype=np.int64))
    known = int(np.prod([n for n in wanted if n != -1], dtype=np.int64))
    fits = wanted.count(-1) <= 1 and min(wanted, default=0) >= -1
    if fits and -1 in wanted:
        fits = known > 0 and total % known == 0
        wanted = [total // known if n == -1 else n for n in wanted] if fits else wanted
    elif known != total:
        fits = False
    if not fits:
        raise scope.fail(f"needs a shape of {total} elements as in {list(old)}, got {wanted}")
    return _viewed(scope, tuple(wanted))


def _flatten(scope: Scope) -> Symbol:
    shape = scope.need(0).shape
    axis = scope.integer("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    rows, columns = (int(np.prod(part, dtype=np.int64)) for part in (shape[:axis], shape[axis:]))
    return _viewed(scope, (rows, columns))


def _squeeze(scope: Scope) -> Symbol:
    shape, axes = scope.need(0).shape, _axes(scope)
    if axes is None:
        return _viewed(scope, tuple(n for n in shape if n != 1))
    gone = {a % len(shape) for a in axes}
    wrong = [a for a in gone if shape[a] != 1]
    if wrong:
        raise scope.fail(f"needs axes of size 1, got axis {wrong[0]} of {list(shape)}")
    return _viewed(scope, tuple(n for i, n in enumerate(shape) if i not in gone))


def _unsqueeze(scope: Scope) -> Symbol:
    axes = _axes(scope)
    if axes is None:
        raise scope.fail("needs axes, got none")
    shape = list(scope.need(0).shape)
    rank = len(shape) + len(axes)
    for axis in sorted(a % rank for a in axes):
        shape.insert(axis, 1)
    return _viewed(scope, tuple(shape))


def _axes(scope: Scope) -> list[int] | None:
    return scope.integers(1) if scope.given(1) is not None else scope.integer_list("axes")


def _viewed(scope: Scope, shape: Shape) -> Symbol:
    return moved(
        scope,
        lambda array: array.reshape(shape),
        lambda tensor, name: scope.reshape(tensor, shape, name),
    )


def _transpose(scope: Scope) -> Symbol:
    rank = len(scope.need(0).shape)
    perm = tuple(scope.integer_list("perm") or range(rank - 1, -1, -1))
    if sorted(perm) != list(range(rank)):
        raise scope.fail(f"needs a permutation of {rank} axes, got {list(perm)}")
    symbol = scope.need(0)
    if isinstance(symbol, ConstReal) and symbol.quant.axis is not None:
        quant = replace(symbol.quant, axis=perm.index(symbol.quant.axis))
        return ConstReal(codes=symbol.codes.transpose(perm), quant=quant)
    return moved(
        scope,
        lambda array: array.transpose(perm),
        lambda tensor, name: scope.transpose(tensor, perm, name),
    )


def _depth_to_space(scope: Scope) -> Symbol:
    n, c, h, w = _image(scope)
    block, mode = scope.integer("blocksize", 0), scope.text("mode", "DCR")
    if block < 1 or c % (block * block) or mode not in ("DCR", "CRD"):
        raise scope.fail(f"needs blocksize² that divides {c} channels, got {block} and {mode!r}")
    depth = c // (block * block)
    if mode == "DCR":
        split, perm = (n, block, block, depth, h, w), (0, 3, 4, 1, 5, 2)
    else:
        split, perm = (n, depth, block, block, h, w), (0, 1, 4, 2, 5, 3)
    return _rearranged(scope, split, perm, (n, depth, h * block, w * block))


def _space_to_depth(scope: Scope) -> Symbol:
    n, c, h, w = _image(scope)
    block, mode = scope.integer("blocksize", 0), scope.text("mode", "DCR")
    if block < 1 or h % block or w % block or mode not in ("DCR", "CRD"):
        raise scope.fail(f"needs a blocksize that divides {h} and {w}, got {block} and {mode!r}")
    split = (n, c, h // block, block, w // block, block)
    whole = (n, c * block * block, h // block, w // block)
    perm = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return _rearranged(scope, split, perm, whole)


def _image(scope: Scope) -> tuple[int, int, int, int]:
    shape = scope.need(0).shape
    if len(shape) != 4:
        raise scope.fail(f"needs an input of rank 4, got shape {list(shape)}")
    return shape[0], shape[1], shape[2], shape[3]


def _rearranged(scope: Scope, split: Shape, perm: Shape, whole: Shape) -> Symbol:
    def tensor(source: Tensor, name: str) -> Tensor:
        turned = scope.transpose(scope.reshape(source, split), perm)
        return scope.reshape(turned, whole, name)

    return moved(scope, lambda a: a.reshape(split).transpose(perm).reshape(whole), tensor)


def _expand(scope: Scope) -> Symbol:
    """Broadcast to a constant shape: repeated elements of axes of size 1."""
    shape, wanted = scope.need(0).shape, scope.integers(1)
    try:
        whole = np.broadcast_shapes(shape, tuple(wanted or ()))
    except ValueError:
        raise scope.fail(f"needs a shape that {list(shape)} broadcasts to, got {wanted}") from None
    wide = (1,) * (len(whole) - len(shape)) + shape
    axes = tuple(i for i, (n, m) in enumerate(zip(wide, whole, strict=True)) if n != m)

    def tensor(source: Tensor, name: str) -> Tensor:
        view = scope.reshape(source, wide, name if not axes else None)
        if not axes:
            return view
        indices = tuple(np.zeros(whole[axis], np.int64) for axis in axes)
        inputs = (view.name,)
        return scope.builder.emit(
            Pick(name=scope.node.name, inputs=inputs, output=name, axes=axes, indices=indices)
        )

    return moved(scope, lambda array: np.broadcast_to(array, whole), tensor)


def moved(
    scope: Scope,
    move_array: Callable[[npt.NDArray], npt.NDArray],
    move_tensor: Callable[[Tensor, str], Tensor],
) -> Symbol:
    """The symbol of argument 0 with its elements moved, as constants or by `move_tensor`.

    A pending result is computed first; a per-axis constant becomes plain float32.
    """
    symbol = scope.need(0)
    if isinstance(symbol, Const):
        return Const(array=move_array(symbol.array))
    if isinstance(symbol, ConstReal):
        if symbol.quant.axis is None:
            return replace(symbol, codes=move_array(symbol.codes))
        return Const(array=move_array(symbol.real()))
    if isinstance(symbol, Real):
        return replace(symbol, tensor=move_tensor(symbol.tensor, scope.value_name(symbol)))
    assert isinstance(symbol, Tensor | Pending | Joined)
    return move_tensor(scope.tensor(0), scope.output)


def _concat(scope: Scope) -> Symbol:
    parts = tuple(scope.need(i) for i in range(len(scope.args)))
    axis = _concat_axis(scope, parts)
    reals = tuple(part for part in parts if isinstance(part, Real))
    if len(reals) < len(parts):
        return _joined_tensors(scope, parts, axis)
    first = reals[0]
    same = all(
        r.tensor.type.dtype == first.tensor.type.dtype and np.array_equal(r.table, first.table)
        for r in reals
    )
    if not same:
        return Joined(parts=reals, axis=axis, shape=_joined_shape(parts, axis))
    tensors = tuple(r.tensor for r in reals)
    name = scope.value_name(first)
    return replace(first, tensor=_emit_concat(scope, tensors, axis, name))


def _qlinear_concat(scope: Scope) -> Symbol:
    """com.microsoft: output scale and zero point first, then one triple per input."""
    parts = tuple(quantized_input(scope, i) for i in range(2, len(scope.args), 3))
    reals = tuple(part for part in parts if isinstance(part, Real))
    if not parts or len(reals) < len(parts):
        raise scope.fail("needs inputs computed at run time, got none or constants")
    quant = quantized_output(scope, 0, reals[0].tensor.type.dtype)
    axis = _concat_axis(scope, parts)
    joined = Joined(parts=reals, axis=axis, shape=_joined_shape(parts, axis))
    return scope.builder.quantized(joined, quant, scope.node.name, scope.output)


def _concat_axis(scope: Scope, parts: tuple[Symbol, ...]) -> int:
    shapes = [part.shape for part in parts]
    rank, axis = len(shapes[0]), scope.integer("axis", 1)
    axis = axis + rank if axis < 0 else axis
    rest = {(len(s), s[:axis], s[axis + 1 :]) for s in shapes}
    if not 0 <= axis < rank or len(rest) != 1:
        shown = ", ".join(str(list(s)) for s in shapes)
        raise scope.fail(f"needs shapes that differ in axis {axis} only, got {shown}")
    return axis


def _joined_shape(parts: tuple[Symbol, ...], axis: int) -> Shape:
    shape = parts[0].shape
    return (*shape[:axis], sum(p.shape[axis] for p in parts), *shape[axis + 1 :])


def _joined_tensors(scope: Scope, parts: tuple[Symbol, ...], axis: int) -> Tensor:
    tensors = tuple(scope.builder.tensor(part, scope.node.name) for part in parts)
    return _emit_concat(scope, tensors, axis, scope.output)


def _emit_concat(scope: Scope, tensors: tuple[Tensor, ...], axis: int, output: str) -> Tensor:
    return scope.builder.emit(
        Concat(
            name=scope.node.name,
            inputs=tuple(t.name for t in tensors),
            output=output,
            axis=axis,
        )
    )


OPERATORS = {
    ("", "Identity"): _identity,
    ("", "Dropout"): _identity,
    ("", "Shape"): _shape_of,
    ("", "Size"): _size_of,
    ("", "Reshape"): _reshape,
    ("", "Flatten"): _flatten,
    ("", "Transpose"): _transpose,
    ("", "Squeeze"): _squeeze,
    ("", "Unsqueeze"): _unsqueeze,
    ("", "DepthToSpace"): _depth_to_space,
    ("", "SpaceToDepth"): _space_to_depth,
    ("", "Expand"): _expand,
    ("", "Concat"): _concat,
    ("com.microsoft", "QLinearConcat"): _qlinear_concat,
}
