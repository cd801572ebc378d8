"""Operators that pick, repeat or pad elements."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.tflite.builder import TO_IMAGE, Value
from vitral.compiler.frontends.tflite.scope import Scope
from vitral.compiler.ir.ops import Pick, Reshape

__all__ = ["OPERATORS"]

Int64 = npt.NDArray[np.int64]
Indices = dict[int, Int64]
"""For axes of the model's order, the index of every element kept; -1 for padding."""


def _pad(scope: Scope) -> Value:
    """PAD with real 0, PADV2 with a constant code.

    An image is padded as (N, C, H, W), so that the convolution behind it can take the padding over.
    """
    x = scope.value(0)
    widths = scope.array(1)
    rank = len(x.shape)
    if widths.shape != (rank, 2) or widths.dtype.kind != "i" or widths.min() < 0:
        raise scope.fail(f"needs {rank} pairs of pads >= 0, got shape {list(widths.shape)}")
    indices = {
        axis: np.pad(np.arange(size), tuple(int(w) for w in widths[axis]), constant_values=-1)
        for axis, size in enumerate(x.shape)
    }
    value = scope.image(0) if rank == 4 else x
    return _picked(scope, indices, _fill(scope), value=value)


def _fill(scope: Scope) -> int:
    if not scope.has(2):
        return scope.quant(0).tensor_zero
    values = scope.integers(2)
    if scope.quant(2) != scope.quant(0) or len(values) != 1:
        raise scope.fail(f"needs one fill code with the scale of the input, got {len(values)}")
    return values[0]


def _slice(scope: Scope) -> Value:
    """Begins and sizes; a size of -1 is all that is left."""
    x = scope.value(0)
    begins, sizes = scope.integers(1), scope.integers(2)
    if len(begins) != len(x.shape) or len(sizes) != len(x.shape):
        raise scope.fail(f"needs {len(x.shape)} begins and sizes, got {begins} and {sizes}")
    indices: Indices = {}
    for axis, (begin, size, whole) in enumerate(zip(begins, sizes, x.shape, strict=True)):
        end = whole if size == -1 else begin + size
        if not 0 <= begin < end <= whole:
            raise scope.fail(f"needs a slice within {list(x.shape)}, got {begins} and {sizes}")
        indices[axis] = np.arange(begin, end)
    return _picked(scope, indices)


def _strided_slice(scope: Scope) -> Value:
    """As Python's slices; axes of the shrink mask are dropped."""
    x = scope.value(0)
    begins, ends, strides = (scope.integers(i) for i in (1, 2, 3))
    count = len(begins)
    if not count == len(ends) == len(strides) <= len(x.shape) or 0 in strides:
        raise scope.fail(f"needs a begin, end and stride for each axis, got {begins}, {ends}")
    if scope.integer("EllipsisMask") or scope.integer("NewAxisMask") or scope.integer("Offset"):
        raise scope.fail("needs no ellipsis, new axis or offset, got one")
    shrunk = {axis for axis in range(count) if scope.integer("ShrinkAxisMask") >> axis & 1}
    indices: Indices = {}
    for axis, (begin, end, stride) in enumerate(zip(begins, ends, strides, strict=True)):
        if axis in shrunk:
            part = slice(begin, begin + 1 or None)
        else:
            first = None if scope.integer("BeginMask") >> axis & 1 else begin
            last = None if scope.integer("EndMask") >> axis & 1 else end
            part = slice(first, last, stride)
        indices[axis] = np.arange(x.shape[axis])[part]
    return _picked(scope, indices, drop=shrunk)


def _split(scope: Scope) -> tuple[Value, ...]:
    """Equal parts along an axis, the first input."""
    x, parts = scope.value(1), len(scope.node.outputs)
    (axis, *_) = scope.integers(0)
    if not -len(x.shape) <= axis < len(x.shape) or x.shape[axis] % parts:
        raise scope.fail(f"needs {parts} equal parts of {list(x.shape)}, got axis {axis}")
    size, axis = x.shape[axis] // parts, axis % len(x.shape)
    return tuple(
        _picked(scope, {axis: np.arange(i * size, (i + 1) * size)}, value=x, result=i)
        for i in range(parts)
    )


def _split_v(scope: Scope) -> tuple[Value, ...]:
    """Parts of constant sizes along an axis, the last input; one size may be -1."""
    x, sizes = scope.value(0), scope.integers(1)
    (axis, *_) = scope.integers(2)
    rank = len(x.shape)
    if not -rank <= axis < rank or len(sizes) != len(scope.node.outputs):
        raise scope.fail(f"needs a size for each result and an axis, got {sizes} and {axis}")
    axis %= rank
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = x.shape[axis] - sum(sizes) - 1
    if sum(sizes) != x.shape[axis] or min(sizes) < 1:
        raise scope.fail(f"needs sizes > 0 of {x.shape[axis]} together, got {sizes}")
    ends = np.cumsum(sizes).tolist()
    return tuple(
        _picked(scope, {axis: np.arange(end - size, end)}, value=x, result=i)
        for i, (end, size) in enumerate(zip(ends, sizes, strict=True))
    )


def _gather(scope: Scope) -> Value:
    """Constant indices of rank 1."""
    x = scope.value(0)
    axis, wanted = scope.integer("Axis"), scope.integers(1)
    if scope.integer("BatchDims") or scope.array(1).ndim != 1:
        raise scope.fail("needs a list of indices and no batch dimensions")
    if not -len(x.shape) <= axis < len(x.shape):
        raise scope.fail(f"needs an axis of {len(x.shape)} dimensions, got {axis}")
    axis %= len(x.shape)
    if min(wanted, default=0) < 0 or max(wanted, default=0) >= x.shape[axis]:
        raise scope.fail(f"needs indices of {x.shape[axis]} elements, got {wanted}")
    return _picked(scope, {axis: np.array(wanted, np.int64)})


def _resize_nearest(scope: Scope) -> Value:
    """The source of each row and column, in float32 as the kernel computes it."""
    x, sizes = scope.value(0), scope.integers(1)
    if len(x.shape) != 4 or len(sizes) != 2 or min(sizes) < 1:
        raise scope.fail(f"needs an image and two sizes > 0, got {list(x.shape)} and {sizes}")
    align, centers = scope.integer("AlignCorners"), scope.integer("HalfPixelCenters")
    indices = {
        axis: _nearest(x.shape[axis], size, bool(align), bool(centers))
        for axis, size in zip((1, 2), sizes, strict=True)
    }
    return _picked(scope, indices)


def _nearest(size: int, wanted: int, align: bool, centers: bool) -> Int64:
    ends = align and wanted > 1
    scale = np.float32(size - 1 if ends else size) / np.float32(wanted - 1 if ends else wanted)
    places = (np.arange(wanted, dtype=np.float32) + np.float32(0.5 if centers else 0)) * scale
    rounded = np.floor(places + np.float32(0.5)) if align else np.floor(places)
    return np.clip(rounded.astype(np.int64), 0, size - 1)


def _picked(
    scope: Scope,
    indices: Indices,
    fill: int = 0,
    *,
    drop: set[int] | None = None,
    value: Value | None = None,
    result: int = 0,
) -> Value:
    """Elements of a value, else of input 0, along axes of the model's order; `drop` goes."""
    value = value or (scope.plain(0) if drop else scope.value(0))
    tensor = scope.model.tensors[scope.node.outputs[result]]
    changed = {
        axis: index
        for axis, index in indices.items()
        if not np.array_equal(index, np.arange(value.shape[axis]))
    }
    if any(not index.size for index in indices.values()):
        raise scope.fail(f"needs at least one element along each axis, got none in {tensor.name!r}")
    if not changed and not drop:
        return value
    name = f"{tensor.name}.nchw" if value.image else tensor.name
    output = scope.builder.unique(name) if value.image or drop else tensor.name
    op = Pick(
        name=tensor.name,
        inputs=(value.name,),
        output=output,
        axes=_placed(tuple(changed), value.image),
        indices=tuple(changed.values()),
        fill=fill,
    )
    if not drop:
        return scope.emit_like(value, op)
    sizes = scope.builder.emit(op).shape
    shape = tuple(size for axis, size in enumerate(sizes) if axis not in drop)
    view = Reshape(name=tensor.name, inputs=(output,), output=tensor.name, shape=shape)
    return scope.emit_plain(view)


def _placed(axes: Sequence[int], image: bool) -> tuple[int, ...]:
    return tuple(TO_IMAGE.index(axis) for axis in axes) if image else tuple(axes)


OPERATORS = {
    "PAD": _pad,
    "PADV2": _pad,
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "GATHER": _gather,
    "RESIZE_NEAREST_NEIGHBOR": _resize_nearest,
}
