"""Sums and means over axes, `argmax`, `nn.softmax`, `nn.batch_norm`."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.operators.operator import Arrays, Attribute, Attrs, Operator, Types, need
from vitral.compiler.ir.operators.shapes import axis_of, need_float
from vitral.compiler.ir.types import TensorType

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]

_AXES = {
    "axis": Attribute("ints", None),
    "keepdims": Attribute("bool", False),
}


def _axes(attrs: Attrs, rank: int) -> tuple[int, ...]:
    axes = attrs["axis"]
    return tuple(range(rank)) if axes is None else tuple(axis_of(a, rank) for a in axes)


def _reduced(attrs: Attrs, args: Types) -> TensorType:
    x = args[0]
    gone = _axes(attrs, len(x.shape))
    if attrs["keepdims"]:
        return replace(x, shape=tuple(1 if i in gone else s for i, s in enumerate(x.shape)))
    return replace(x, shape=tuple(s for i, s in enumerate(x.shape) if i not in gone))


def _reduce(name: str, function: Any) -> Operator:
    def compute(attrs: Attrs, args: Arrays) -> Array:
        x = args[0]
        return np.asarray(function(x, _axes(attrs, x.ndim), attrs["keepdims"]), x.dtype)

    return Operator(
        name=name, arity=range(1, 2), attributes=_AXES, relation=_reduced, compute=compute
    )


def _sum(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    wide = np.float64 if x.dtype.kind == "f" else x.dtype
    return x.sum(axis=axes, keepdims=keep, dtype=wide)


def _mean(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    need(x.dtype.kind == "f", f"needs floats, got {x.dtype}")
    return x.mean(axis=axes, keepdims=keep, dtype=np.float64)


def _argmax_type(attrs: Attrs, args: Types) -> TensorType:
    need(attrs["axis"] is None or len(attrs["axis"]) == 1, f"needs one axis, got {attrs['axis']}")
    return replace(_reduced(attrs, args), dtype="int32")


def _argmax(attrs: Attrs, args: Arrays) -> Array:
    x = args[0]
    if attrs["axis"] is None:
        found = np.argmax(x).reshape((1,) * x.ndim if attrs["keepdims"] else ())
        return np.asarray(found, np.int32)
    (axis,) = attrs["axis"]
    found = np.argmax(x, axis=axis)
    return np.asarray(np.expand_dims(found, axis) if attrs["keepdims"] else found, np.int32)


def _softmax_type(attrs: Attrs, args: Types) -> TensorType:
    need_float(args[0])
    axis_of(attrs["axis"], len(args[0].shape))
    return args[0]


def _softmax(attrs: Attrs, args: Arrays) -> Array:
    x = args[0].astype(np.float64)
    powers = np.exp(x - x.max(axis=attrs["axis"], keepdims=True))
    return (powers / powers.sum(axis=attrs["axis"], keepdims=True)).astype(args[0].dtype)


def _norm_type(attrs: Attrs, args: Types) -> TensorType:
    x = args[0]
    need_float(*args)
    axis = axis_of(attrs["axis"], len(x.shape))
    fits = all(arg.shape == (x.shape[axis],) for arg in args[1:])
    shown = ", ".join(str(arg) for arg in args[1:])
    need(fits, f"needs gamma, beta, mean and variance of ({x.shape[axis]},), got {shown}")
    return x


def _norm(attrs: Attrs, args: Arrays) -> Array:
    """x * (gamma / sqrt(variance + epsilon)) + (beta - mean * factor), op by op."""
    x, gamma, beta, mean, variance = args
    shape = [1] * x.ndim
    shape[attrs["axis"]] = -1
    with np.errstate(all="ignore"):
        factor = 1 / np.sqrt(variance + x.dtype.type(attrs["epsilon"]))
        factor = factor * gamma if attrs["scale"] else factor
        offset = -mean * factor
        offset = offset + beta if attrs["center"] else offset
        return (x * factor.reshape(shape) + offset.reshape(shape)).astype(x.dtype)


OPERATORS = (
    _reduce("sum", _sum),
    _reduce("mean", _mean),
    _reduce("max", lambda x, axes, keep: x.max(axis=axes, keepdims=keep)),
    _reduce("min", lambda x, axes, keep: x.min(axis=axes, keepdims=keep)),
    Operator(
        name="argmax",
        arity=range(1, 2),
        attributes=_AXES,
        relation=_argmax_type,
        compute=_argmax,
    ),
    Operator(
        name="nn.softmax",
        arity=range(1, 2),
        attributes={"axis": Attribute("int", -1)},
        relation=_softmax_type,
        compute=_softmax,
    ),
    Operator(
        name="nn.batch_norm",
        arity=range(5, 6),
        attributes={
            "axis": Attribute("int", 1),
            "epsilon": Attribute("float", 1e-5),
            "center": Attribute("bool", True),
            "scale": Attribute("bool", True),
        },
        relation=_norm_type,
        compute=_norm,
    ),
)
