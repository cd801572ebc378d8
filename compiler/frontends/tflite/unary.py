"""Element-wise operators of one argument: tables of 256 codes."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.tflite.builder import Value
from vitral.compiler.frontends.tflite.fixed_point import (
    activation_codes,
    activation_range,
    multiply,
    multiply_q8,
)
from vitral.compiler.frontends.tflite.hard_swish import hard_swish_codes
from vitral.compiler.frontends.tflite.scope import Scope
from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import Table

__all__ = ["OPERATORS"]

Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]
Real = Callable[[Float32], Float32]


def _table(scope: Scope, codes: Int64, steps: npt.NDArray | None = None) -> Value:
    """`codes` of all 256 codes, clamped to int8; `steps` are the real results in units of y."""
    value = scope.value(0)
    op = Table(
        name=scope.name,
        inputs=(value.name,),
        output=scope.like(value),
        table=np.clip(codes, -128, 127).astype(np.int8),
        steps=None if steps is None else steps.astype(np.float64),
    )
    return scope.emit_like(value, op)


def _centred(quant: Quant) -> Int64:
    return quant.codes().astype(np.int64) - quant.tensor_zero


def _clamp(activation: int) -> Callable[[Scope], Value]:
    """Another scale in fixed point, then the bounds of an activation."""
    bounds = activation_range(activation)

    def clamped(scope: Scope) -> Value:
        x, y = scope.quant(0), scope.y_quant
        ratio = float(x.scales / y.scales)
        codes = _multiplied(scope, _centred(x), ratio) + y.tensor_zero
        low, high = (None if bound is None else bound / y.tensor_scale for bound in bounds)
        steps = np.clip(_centred(x) * ratio, low, high)
        return _table(scope, np.clip(codes, *activation_codes(y, activation)), steps)

    return clamped


def _leaky_relu(scope: Scope) -> Value:
    """One multiplier for codes above the zero point, another for those below."""
    x, y = scope.quant(0), scope.y_quant
    centred = _centred(x)
    above = float(x.scales / y.scales)
    below = float(x.scales * np.float32(scope.number("Alpha")) / y.scales)
    if not 0 <= below < np.inf:
        raise scope.fail(f"needs alpha >= 0, got {scope.number('Alpha'):g}")
    codes = np.where(
        centred >= 0, _multiplied(scope, centred, above), _multiplied(scope, centred, below)
    )
    steps = centred * np.where(centred >= 0, above, below)
    return _table(scope, codes + y.tensor_zero, steps)


def _multiplied(scope: Scope, values: Int64, ratio: float) -> Int64:
    if scope.rounding == "xnnpack" and scope.node.op == "LEAKY_RELU":
        return multiply_q8(values, ratio)
    try:
        return multiply(values, ratio, scope.mode)
    except ValueError as error:
        raise scope.fail(f"needs {error}") from None


def _hard_swish(scope: Scope) -> Value:
    try:
        return _table(scope, hard_swish_codes(scope.quant(0), scope.y_quant))
    except ValueError as error:
        raise scope.fail(f"needs {error}") from None


def _by_float(function: Real) -> Callable[[Scope], Value]:
    """A function of the real value in float32, ties away from 0."""

    def computed(scope: Scope) -> Value:
        x, y = scope.quant(0), scope.y_quant
        scaled = function(_centred(x).astype(np.float32) * x.scales) * (np.float32(1) / y.scales)
        rounded = np.sign(scaled) * np.floor(np.abs(scaled.astype(np.float64)) + 0.5)
        return _table(scope, rounded.astype(np.int64) + y.tensor_zero)

    return computed


def _logistic(x: Float32) -> Float32:
    """1 / (1 + exp(-x)), every step rounded to float32."""
    with np.errstate(over="ignore", under="ignore"):
        powers = np.exp(-x.astype(np.float64)).astype(np.float32)
    return np.float32(1) / (np.float32(1) + powers)


def _tanh(x: Float32) -> Float32:
    return np.tanh(x.astype(np.float64)).astype(np.float32)


OPERATORS = {
    "RELU": _clamp(1),
    "RELU6": _clamp(3),
    "RELU_N1_TO_1": _clamp(2),
    "LEAKY_RELU": _leaky_relu,
    "HARD_SWISH": _hard_swish,
    "LOGISTIC": _by_float(_logistic),
    "TANH": _by_float(_tanh),
}
