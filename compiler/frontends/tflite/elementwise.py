"""ADD, SUB and MUL: functions of two codes, as tables of all pairs."""

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.tflite.builder import Value
from vitral.compiler.frontends.tflite.fixed_point import multiply
from vitral.compiler.frontends.tflite.scope import Scope
from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import Binary
from vitral.isa import Rounding

__all__ = ["OPERATORS"]

Int64 = npt.NDArray[np.int64]

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


def _xnnpack_sum(sign: int, a: Quant, b: Quant, y: Quant) -> Int64:
    """Both codes times integers of 20 bits or so, shifted once, ties up."""
    ratios = (a.scales / y.scales, b.scales / y.scales)
    shift = _LEFT_SHIFT + 1 - int(np.frexp(max(ratios))[1])
    if not 0 < shift < 32:
        raise ValueError(f"scales whose quotients lie in 2**-10..2**8, got {max(ratios):g}")
    left, right = (int(np.rint(np.ldexp(np.float64(ratio), shift))) for ratio in ratios)
    total = _centred(a)[:, None] * left + sign * _centred(b)[None] * right
    return (total + (1 << (shift - 1))) >> shift


def _product(a: Quant, b: Quant, y: Quant, rounding: Rounding) -> Int64:
    """The product of the centred codes; the quotient of scales is taken in float32."""
    product = _centred(a)[:, None] * _centred(b)[None]
    return multiply(product, float(a.scales * b.scales / y.scales), rounding)


def _xnnpack_product(a: Quant, b: Quant, y: Quant) -> Int64:
    """The product of the centred codes times one float32, ties to even."""
    product = (_centred(a)[:, None] * _centred(b)[None]).astype(np.float32)
    return np.rint(product * (a.scales * b.scales / y.scales)).astype(np.int64)


def _xnnpack_square(x: Quant, y: Quant) -> Int64:
    """The delegate squares a tensor that is multiplied with itself: in float32, real by real."""
    real = x.real_table()
    scaled = real * real * (np.float32(1) / y.scales) + np.float32(y.tensor_zero)
    return np.rint(scaled).astype(np.int64) - y.tensor_zero


def _centred(quant: Quant) -> Int64:
    return quant.codes().astype(np.int64) - quant.tensor_zero


def _codes(function: str, quants: tuple[Quant, Quant, Quant], scope: Scope) -> Int64:
    """Results of all pairs of codes, less the zero point."""
    sign = -1 if function == "sub" else 1
    if scope.rounding == "xnnpack" and function == "mul":
        products = _xnnpack_product(*quants)
        if scope.node.inputs[0] == scope.node.inputs[1]:
            np.fill_diagonal(products, _xnnpack_square(quants[0], quants[2]))
        return products
    if scope.rounding == "xnnpack":
        return _xnnpack_sum(sign, *quants)
    if function == "mul":
        return _product(*quants, scope.mode)
    return _sum(sign, *quants, scope.mode)


def _binary(scope: Scope, function: str) -> Value:
    a, b, y = scope.quant(0), scope.quant(1), scope.y_quant
    try:
        codes = _codes(function, (a, b, y), scope) + y.tensor_zero
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
        table=np.clip(codes, *scope.clamp()).astype(np.int8),
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
    return _binary(scope, "add")


def _sub(scope: Scope) -> Value:
    return _binary(scope, "sub")


def _mul(scope: Scope) -> Value:
    return _binary(scope, "mul")


OPERATORS = {"ADD": _add, "SUB": _sub, "MUL": _mul}
