"""Element-wise operators of one and two arguments, and `cast`.

Integers wrap around in their own width. float32 is computed op by op in IEEE float32;
transcendental functions are those of float64 rounded once.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.operators.operator import (
    INTEGERS,
    Arrays,
    Attribute,
    Attrs,
    Operator,
    Types,
    need,
)
from vitral.compiler.ir.operators.shapes import broadcast, need_float, same
from vitral.compiler.ir.types import TensorType

__all__ = ["OPERATORS", "cast_array", "round_away"]

Array = npt.NDArray[Any]


def round_away(x: Array) -> Array:
    """The nearest integer, halves away from zero."""
    whole = np.trunc(x)
    away = np.copysign(np.ones_like(x), x)
    return np.where(np.abs(x - whole) >= 0.5, whole + away, whole).astype(x.dtype)


def cast_array(x: Array, dtype: str) -> Array:
    """Floats to integers drop the fraction and saturate, nan gives 0; integers wrap around."""
    to = np.dtype(dtype)
    if x.dtype.kind != "f" or to.kind not in "iu":
        return x.astype(to)
    limits = np.iinfo(to)
    whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0))
    inside = np.clip(whole, float(limits.min), float(limits.max))
    high = inside >= float(limits.max)  # 2**63 - 1 is no float64
    return np.where(high, limits.max, np.where(high, 0, inside).astype(to)).astype(to)


def _binary(name: str, function: Callable[[Array, Array], Array]) -> Operator:
    def compute(attrs: Attrs, args: Arrays) -> Array:
        with np.errstate(all="ignore"):
            return function(args[0], args[1]).astype(args[0].dtype)

    return Operator(
        name=name,
        arity=range(2, 3),
        relation=lambda attrs, args: broadcast(args),
        compute=compute,
    )


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    need(bool(np.all(b)), "needs divisors other than 0, got 0")
    quotient = np.floor_divide(a, b)
    return quotient + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def _shift(name: str, function: Callable[[Array, Array], Array]) -> Operator:
    def relation(attrs: Attrs, args: Types) -> TensorType:
        need(args[0].dtype in INTEGERS, f"needs integers, got {args[0].dtype}")
        return broadcast(args)

    def compute(attrs: Attrs, args: Arrays) -> Array:
        x, amount = args
        least = amount.min(initial=0)
        need(bool(least >= 0), f"needs shifts from 0, got {least}")
        return function(x, amount).astype(x.dtype)

    return Operator(name=name, arity=range(2, 3), relation=relation, compute=compute)


def _right(x: Array, amount: Array) -> Array:
    return np.right_shift(x, np.minimum(amount, 8 * x.dtype.itemsize - 1).astype(x.dtype))


def _left(x: Array, amount: Array) -> Array:
    inside = amount < 8 * x.dtype.itemsize
    return np.where(inside, np.left_shift(x, np.where(inside, amount, 0).astype(x.dtype)), 0)


def _unary(
    name: str,
    function: Callable[[Attrs, Array], Array],
    floats: bool = False,
    **attributes: Attribute,
) -> Operator:
    def relation(attrs: Attrs, args: Types) -> TensorType:
        if floats:
            need_float(args[0])
        return args[0]

    def compute(attrs: Attrs, args: Arrays) -> Array:
        with np.errstate(all="ignore"):
            return function(attrs, args[0]).astype(args[0].dtype)

    return Operator(
        name=name, arity=range(1, 2), attributes=attributes, relation=relation, compute=compute
    )


def _wide(function: Callable[[Array], Array]) -> Callable[[Attrs, Array], Array]:
    return lambda attrs, x: function(x.astype(np.float64))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _erf(x: Array) -> Array:
    from math import erf

    return np.vectorize(erf, otypes=[np.float64])(x)


def _clip(attrs: Attrs, x: Array) -> Array:
    low, high = attrs["a_min"], attrs["a_max"]
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        low = max(np.ceil(low), float(limits.min))
        high = min(np.floor(high), float(limits.max))
        low, high = (int(max(limits.min, min(limits.max, int(v)))) for v in (low, high))
    return np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high))


def _leaky(attrs: Attrs, x: Array) -> Array:
    return np.where(x < 0, x * x.dtype.type(attrs["alpha"]), x)


def _prelu_type(attrs: Attrs, args: Types) -> TensorType:
    x, slope = args
    need_float(x, slope)
    axis = attrs["axis"]
    fits = 0 <= axis < len(x.shape) and slope.shape == (x.shape[axis],)
    need(fits, f"needs a slope for each index of axis {axis}, got {x} and {slope}")
    return x


def _prelu(attrs: Attrs, args: Arrays) -> Array:
    x, slope = args
    shape = [1] * x.ndim
    shape[attrs["axis"]] = -1
    return np.where(x < 0, x * slope.reshape(shape), x)


def _cast_type(attrs: Attrs, args: Types) -> TensorType:
    need(attrs["dtype"] != "", "needs a dtype, got none")
    return replace(args[0], dtype=attrs["dtype"])


OPERATORS = (
    _binary("add", np.add),
    _binary("subtract", np.subtract),
    _binary("multiply", np.multiply),
    _binary("divide", _divide),
    _binary("maximum", np.maximum),
    _binary("minimum", np.minimum),
    _binary("power", np.power),
    _shift("right_shift", _right),
    _shift("left_shift", _left),
    _unary("round", lambda attrs, x: round_away(x) if x.dtype.kind == "f" else x),
    _unary("floor", lambda attrs, x: np.floor(x)),
    _unary("ceil", lambda attrs, x: np.ceil(x)),
    _unary("negative", lambda attrs, x: np.negative(x)),
    _unary("abs", lambda attrs, x: np.abs(x)),
    _unary("exp", _wide(np.exp), floats=True),
    _unary("log", _wide(np.log), floats=True),
    _unary("sqrt", lambda attrs, x: np.sqrt(x), floats=True),
    _unary("erf", _wide(_erf), floats=True),
    _unary("tanh", _wide(np.tanh), floats=True),
    _unary("sigmoid", _wide(_sigmoid), floats=True),
    _unary("nn.relu", lambda attrs, x: np.maximum(x, x.dtype.type(0))),
    _unary("nn.leaky_relu", _leaky, floats=True, alpha=Attribute("float", 0.01)),
    Operator(
        name="nn.prelu",
        arity=range(2, 3),
        attributes={"axis": Attribute("int", 1)},
        relation=_prelu_type,
        compute=_prelu,
    ),
    _unary("clip", _clip, a_min=Attribute("float"), a_max=Attribute("float")),
    Operator(
        name="cast",
        arity=range(1, 2),
        attributes={"dtype": Attribute("dtype")},
        relation=_cast_type,
        compute=lambda attrs, args: cast_array(args[0], attrs["dtype"]),
    ),
    _unary("copy", lambda attrs, x: x),
    _unary("nn.dropout", lambda attrs, x: x, rate=Attribute("float", 0.5)),
    Operator(
        name="device_copy",
        arity=range(1, 2),
        attributes={"source": Attribute("string"), "target": Attribute("string")},
        relation=same,
        compute=lambda attrs, args: args[0],
        record="relay.attrs.DeviceCopyAttrs",
    ),
)
