"""ADD, SUB and MUL: functions of two codes, as tables of all pairs."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.tflite.builder import Value
from vitral.compiler.frontends.tflite.fixed_point import activation_codes, multiply
from vitral.compiler.frontends.tflite.scope import Scope
from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import Binary
from vitral.isa import Rounding

__all__ = ["OPERATORS"]

Int64 = npt.NDArray[np.int64]
Law = Callable[[Quant, Quant, Quant, Rounding], Int64]

_LEFT_SHIFT = 20
"""Bits by which sums are carried beyond the codes."""


def _sum(sign: int, a: Quant, b: Quant, y: Quant, rounding: Rounding) -> Int64:
    """Both codes in units of twice the larger scale, with 20 bits more, then in units of y."""
    units = 2.0 * max(a.tensor_scale, b.tensor_scale)
    left, right = (
        multiply(_centred(quant) << _LEFT_SHIFT, quant.tensor_scale / units, rounding)
        for quant in (a, b)
    )
    total = left[:, None] + sign * right[None]
    return multiply(total, units / ((1 << _LEFT_SHIFT) * y.tensor_scale), rounding)


def _add_law(a: Quant, b: Quant, y: Quant, rounding: Rounding) -> Int64:
    return _sum(1, a, b, y, rounding)


def _sub_law(a: Quant, b: Quant, y: Quant, rounding: Rounding) -> Int64:
    return _sum(-1, a, b, y, rounding)


def _mul_law(a: Quant, b: Quant, y: Quant, rounding: Rounding) -> Int64:
    """The product of the centred codes; the quotient of scales is taken in float32."""
    product = _centred(a)[:, None] * _centred(b)[None]
    return multiply(product, float(a.scales * b.scales / y.scales), rounding)


def _centred(quant: Quant) -> Int64:
    return quant.codes().astype(np.int64) - quant.tensor_zero


def _binary(scope: Scope, function: str, law: Law) -> Value:
    a, b, y = scope.quant(0), scope.quant(1), scope.y_quant
    try:
        low, high = activation_codes(y, scope.integer("FusedActivationFunction"))
        codes = law(a, b, y, scope.mode) + y.tensor_zero
    except ValueError as error:
        raise scope.fail(f"needs {error}") from None
    left, right, image = _operands(scope)
    op = Binary(
        name=scope.name,
        inputs=(left, right),
        output=scope.image_name() if image else scope.name,
        y_quant=y,
        function=function,
        a_quant=a,
        b_quant=b,
        table=np.clip(codes, low, high).astype(np.int8),
    )
    return scope.emit_image(op) if image else scope.emit_plain(op)


def _operands(scope: Scope) -> tuple[str, str, bool]:
    """Both arguments in one order, and whether that is (N, C, H, W)."""
    a, b = scope.value(0), scope.value(1)
    if not (a.image or b.image) or max(len(a.shape), len(b.shape)) != 4:
        return scope.plain(0).name, scope.plain(1).name, False
    return _image(scope, 0), _image(scope, 1), True


def _image(scope: Scope, index: int) -> str:
    """An argument of rank up to 4 as (N, C, H, W), for broadcasting."""
    value = scope.value(index)
    if len(value.shape) == 4:
        return scope.builder.image(value, scope.name).name
    wide = (1,) * (4 - len(value.shape)) + value.shape
    name = scope.builder.unique(f"{value.name}.wide")
    name = scope.builder.reshape(value.name, wide, scope.name, name)
    widened = Value(name=name, shape=wide, dtype=value.dtype)
    return scope.builder.image(widened, scope.name).name


def _add(scope: Scope) -> Value:
    return _binary(scope, "add", _add_law)


def _sub(scope: Scope) -> Value:
    return _binary(scope, "sub", _sub_law)


def _mul(scope: Scope) -> Value:
    return _binary(scope, "mul", _mul_law)


OPERATORS = {"ADD": _add, "SUB": _sub, "MUL": _mul}
