"""Operators that move elements: views, concatenation, slices, padding."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.operators.operator import Arrays, Attribute, Attrs, Operator, Types, need
from vitral.compiler.ir.operators.shapes import axis_of
from vitral.compiler.ir.types import TensorType

__all__ = ["OPERATORS", "part_of"]

Array = npt.NDArray[Any]


def _view(
    name: str, relation: Any, arity: range = range(1, 2), **attributes: Attribute
) -> Operator:
    """An operator whose result has the elements of its argument in C order."""
    return Operator(
        name=name,
        arity=arity,
        attributes=attributes,
        relation=relation,
        compute=lambda attrs, args: args[0].reshape(relation(attrs, [_type(args[0])]).shape),
    )


def _type(array: Array) -> TensorType:
    return TensorType(array.shape, str(array.dtype))


def _reshape(attrs: Attrs, args: Types) -> TensorType:
    """0 keeps a size, -1 takes what is left."""
    x, wanted = args[0], attrs["newshape"]
    kept = [x.shape[i] if s == 0 and i < len(x.shape) else s for i, s in enumerate(wanted)]
    open_ = [i for i, size in enumerate(kept) if size == -1]
    rest = math.prod(size for size in kept if size != -1)
    if len(open_) == 1 and rest > 0:
        kept[open_[0]] = x.size // rest
    fits = min(kept, default=0) >= 0 and math.prod(kept) == x.size
    need(fits, f"needs {x.size} elements as in {x}, got newshape={list(wanted)}")
    return replace(x, shape=tuple(kept))


def _flat(attrs: Attrs, args: Types) -> TensorType:
    x = args[0]
    need(len(x.shape) >= 1, f"needs a batch axis, got {x}")
    return replace(x, shape=(x.shape[0], math.prod(x.shape[1:])))


def _squeeze(attrs: Attrs, args: Types) -> TensorType:
    x, axes = args[0], attrs["axis"]
    ones = [i for i, size in enumerate(x.shape) if size == 1]
    gone = ones if axes is None else [axis_of(axis, len(x.shape)) for axis in axes]
    need(set(gone) <= set(ones), f"needs axes of size 1, got axis={gone} of {x}")
    return replace(x, shape=tuple(s for i, s in enumerate(x.shape) if i not in gone))


def _expand(attrs: Attrs, args: Types) -> TensorType:
    shape = list(args[0].shape)
    axis = axis_of(attrs["axis"], len(shape) + 1)
    need(attrs["num_newaxis"] >= 0, f"needs num_newaxis from 0, got {attrs['num_newaxis']}")
    shape[axis:axis] = [1] * attrs["num_newaxis"]
    return replace(args[0], shape=tuple(shape))


def _axes(attrs: Attrs, rank: int) -> tuple[int, ...]:
    axes = attrs["axes"]
    order = tuple(reversed(range(rank))) if axes is None else tuple(a % max(rank, 1) for a in axes)
    need(sorted(order) == list(range(rank)), f"needs a permutation of {rank} axes, got {axes}")
    return order


def _transposed(attrs: Attrs, args: Types) -> TensorType:
    shape = args[0].shape
    return replace(args[0], shape=tuple(shape[i] for i in _axes(attrs, len(shape))))


def _joined(attrs: Attrs, args: Types) -> TensorType:
    first = args[0]
    axis = axis_of(attrs["axis"], len(first.shape))
    rest = {(t.dtype, len(t.shape), t.shape[:axis], t.shape[axis + 1 :]) for t in args}
    shown = ", ".join(str(t) for t in args)
    need(len(rest) == 1, f"needs arguments that differ in axis {axis} only, got {shown}")
    length = sum(t.shape[axis] for t in args)
    return replace(first, shape=(*first.shape[:axis], length, *first.shape[axis + 1 :]))


def _cut(attrs: Attrs, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The slices of `strided_slice`; ends beyond a size mean the size, as in numpy."""
    begin, end, steps = attrs["begin"], attrs["end"], attrs["strides"]
    axes = tuple(range(len(begin))) if attrs["axes"] is None else attrs["axes"]
    steps = (1,) * len(begin) if steps is None else steps
    equal = len(begin) == len(end) == len(steps) == len(axes) <= len(shape)
    need(equal, f"needs begin, end, strides and axes of one length up to {len(shape)}")
    need(0 not in steps, "needs strides other than 0, got 0")
    slices = [slice(None)] * len(shape)
    for axis, first, last, step in zip(axes, begin, end, steps, strict=True):
        size = shape[axis_of(axis, len(shape))]
        open_ = step < 0 and last < -size  # down to the first element
        slices[axis_of(axis, len(shape))] = slice(first, None if open_ else last, step)
    return tuple(slices)


def _sliced(attrs: Attrs, args: Types) -> TensorType:
    shape = args[0].shape
    cuts = _cut(attrs, shape)
    sizes = (len(range(*cut.indices(size))) for cut, size in zip(cuts, shape, strict=True))
    return replace(args[0], shape=tuple(sizes))


def part_of(attrs: Attrs, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Axis, first and last index of the part that `split` gives."""
    axis = axis_of(attrs["axis"], len(shape))
    size, sections = shape[axis], attrs["indices_or_sections"]
    if isinstance(sections, int):
        good = sections > 0 and size % sections == 0
        need(good, f"needs a number of equal parts of {size}, got {sections}")
        bounds = [size // sections * i for i in range(sections + 1)]
    else:
        bounds = [0, *sections, size]
        ascending = sorted(bounds) == bounds
        need(ascending, f"needs ascending indices up to {size}, got {list(sections)}")
    index = attrs["index"]
    need(0 <= index < len(bounds) - 1, f"needs a part below {len(bounds) - 1}, got {index}")
    return axis, bounds[index], bounds[index + 1]


def _split(attrs: Attrs, args: Types) -> TensorType:
    axis, first, last = part_of(attrs, args[0].shape)
    shape = (*args[0].shape[:axis], last - first, *args[0].shape[axis + 1 :])
    return replace(args[0], shape=shape)


def _take_part(attrs: Attrs, args: Arrays) -> Array:
    axis, first, last = part_of(attrs, args[0].shape)
    return args[0][(*[slice(None)] * axis, slice(first, last))]


def _borders(attrs: Attrs, rank: int) -> list[tuple[int, int]]:
    width = attrs["pad_width"]
    good = len(width) == 2 * rank and min(width, default=0) >= 0
    need(good, f"needs pad_width of {2 * rank} numbers from 0, before and behind each axis,"
         f" got {list(width)}")  # fmt: skip
    return [(width[2 * i], width[2 * i + 1]) for i in range(rank)]


def _padded(attrs: Attrs, args: Types) -> TensorType:
    x = args[0]
    known = attrs["pad_mode"] in ("constant", "edge", "reflect")
    need(known, f"needs pad_mode 'constant', 'edge' or 'reflect', got {attrs['pad_mode']!r}")
    borders = _borders(attrs, len(x.shape))
    shape = tuple(s + sum(border) for s, border in zip(x.shape, borders, strict=True))
    return replace(x, shape=shape)


def _pad(attrs: Attrs, args: Arrays) -> Array:
    x, mode = args[0], attrs["pad_mode"]
    borders = _borders(attrs, x.ndim)
    if mode != "constant":
        return np.pad(x, borders, mode=mode)
    return np.pad(x, borders, constant_values=x.dtype.type(attrs["pad_value"]))


OPERATORS = (
    _view("reshape", _reshape, newshape=Attribute("ints")),
    _view("nn.batch_flatten", _flat),
    _view("squeeze", _squeeze, axis=Attribute("ints", None)),
    _view("expand_dims", _expand, axis=Attribute("int"), num_newaxis=Attribute("int", 1)),
    Operator(
        name="transpose",
        arity=range(1, 2),
        attributes={"axes": Attribute("ints", None)},
        relation=_transposed,
        compute=lambda attrs, args: args[0].transpose(_axes(attrs, args[0].ndim)),
    ),
    Operator(
        name="concatenate",
        arity=range(1, 1 << 16),
        attributes={"axis": Attribute("int", 0)},
        relation=_joined,
        compute=lambda attrs, args: np.concatenate(list(args), axis=attrs["axis"]),
    ),
    Operator(
        name="strided_slice",
        arity=range(1, 2),
        attributes={
            "begin": Attribute("ints"),
            "end": Attribute("ints"),
            "strides": Attribute("ints", None),
            "axes": Attribute("ints", None),
        },
        relation=_sliced,
        compute=lambda attrs, args: args[0][_cut(attrs, args[0].shape)],
    ),
    Operator(
        name="split",
        arity=range(1, 2),
        attributes={
            "indices_or_sections": Attribute("sections"),
            "axis": Attribute("int", 0),
            "index": Attribute("int", 0),
        },
        relation=_split,
        compute=_take_part,
    ),
    Operator(
        name="nn.pad",
        arity=range(1, 2),
        attributes={
            "pad_width": Attribute("ints"),
            "pad_value": Attribute("float", 0.0),
            "pad_mode": Attribute("string", "constant"),
        },
        relation=_padded,
        compute=_pad,
    ),
)
