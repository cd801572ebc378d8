"""Operators that only move elements."""

from dataclasses import replace

import numpy as np

from vitral.compiler.frontends.tflite.builder import TO_IMAGE, Value
from vitral.compiler.frontends.tflite.scope import Scope
from vitral.compiler.ir.ops import Concat, Reshape, Transpose

__all__ = ["OPERATORS"]


def _reshape(scope: Scope) -> Value:
    """The shape is a constant tensor or an option; -1 is what is left."""
    x = scope.value(0)
    count = int(np.prod(x.shape, dtype=np.int64))
    wanted = (
        scope.integers(1) if scope.has(1) else list(scope.node.options.get("NewShapeAsNumpy", ()))
    )
    known = int(np.prod([size for size in wanted if size != -1], dtype=np.int64))
    if wanted.count(-1) == 1 and known > 0:
        wanted[wanted.index(-1)] = count // known
    if int(np.prod(wanted, dtype=np.int64)) != count or min(wanted, default=0) < 0:
        raise scope.fail(f"needs a shape of {count} elements, got {wanted}")
    return _viewed(scope, x, tuple(wanted))


def _squeeze(scope: Scope) -> Value:
    x = scope.value(0)
    rank = len(x.shape)
    given = scope.node.options.get("SqueezeDimsAsNumpy", ())
    if any(not -rank <= axis < rank or x.shape[axis] != 1 for axis in given):
        raise scope.fail(f"needs axes of size 1 in {list(x.shape)}, got {list(given)}")
    axes = {axis % rank for axis in given} or {i for i, size in enumerate(x.shape) if size == 1}
    return _viewed(scope, x, tuple(size for i, size in enumerate(x.shape) if i not in axes))


def _expand_dims(scope: Scope) -> Value:
    x, (axis, *_) = scope.value(0), scope.integers(1)
    rank = len(x.shape) + 1
    if not -rank <= axis < rank:
        raise scope.fail(f"needs an axis of {rank} dimensions, got {axis}")
    shape = list(x.shape)
    shape.insert(axis % rank, 1)
    return _viewed(scope, x, tuple(shape))


def _viewed(scope: Scope, x: Value, shape: tuple[int, ...]) -> Value:
    """A view in the model's order; a dense layer behind a flattened image reads the image."""
    plain = scope.plain(0)
    op = Reshape(name=scope.name, inputs=(plain.name,), output=scope.name, shape=shape)
    view = scope.emit_plain(op)
    image = x if x.image else x.flattens
    flat = image is not None and shape[:1] == image.shape[:1]
    return replace(view, flattens=image if flat else None)


def _transpose(scope: Scope) -> Value:
    perm = scope.integers(1)
    x = scope.plain(0)
    if sorted(perm) != list(range(len(x.shape))):
        raise scope.fail(f"needs a permutation of {len(x.shape)} axes, got {perm}")
    op = Transpose(name=scope.name, inputs=(x.name,), output=scope.name, perm=tuple(perm))
    return scope.emit_plain(op)


def _concatenation(scope: Scope) -> Value:
    """Codes as they are: the schema wants equal scales on all sides of int8."""
    count = len(scope.node.inputs)
    y = scope.y_quant
    for index in range(count):
        if scope.quant(index) != y:
            raise scope.fail(f"needs equal scales on both sides, got {scope.quant(index)} and {y}")
    if scope.integer("FusedActivationFunction"):
        raise scope.fail("needs no fused activation, got one")
    rank = len(scope.value(0).shape)
    axis = scope.integer("Axis")
    if not -rank <= axis < rank:
        raise scope.fail(f"needs an axis of {rank} dimensions, got {axis}")
    axis %= rank
    image = rank == 4 and any(scope.value(i).image for i in range(count))
    parts = tuple((scope.image(i) if image else scope.plain(i)).name for i in range(count))
    op = Concat(
        name=scope.name,
        inputs=parts,
        output=scope.image_name() if image else scope.name,
        axis=TO_IMAGE.index(axis) if image else axis,
    )
    return scope.emit_image(op) if image else scope.emit_plain(op)


OPERATORS = {
    "RESHAPE": _reshape,
    "SQUEEZE": _squeeze,
    "EXPAND_DIMS": _expand_dims,
    "TRANSPOSE": _transpose,
    "CONCATENATION": _concatenation,
}
