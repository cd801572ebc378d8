"""Element-wise operators, op by op in IEEE float32, and their QLinear forms.

Relu and Clip of a pending sum stay pending: they become clamps of the one rounding that follows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oracle.graph import Node
from oracle.qdq import quantized_input, quantized_output
from oracle.tables import times_argument
from oracle.values import Array, Pending, Value, materialise, quantize

__all__ = ["OPERATORS"]

_INFINITY = np.float32(np.inf)
_Ufunc = Callable[[Array, Array], Any]


def _binary(ufunc: _Ufunc) -> Callable[[Node, Sequence[Value | None]], Value]:
    def operator(node: Node, args: Sequence[Value | None]) -> Value:
        return np.asarray(ufunc(_operand(node, args, 0), _operand(node, args, 1)))

    return operator


def _multiply(node: Node, args: Sequence[Value | None]) -> Value:
    """x * f(x) with an f that float32 cannot compute step by step is one function."""
    a, b = args[0], args[1]
    product = times_argument(a, b) or times_argument(b, a)
    return _binary(np.multiply)(node, args) if product is None else product


def _many(ufunc: _Ufunc) -> Callable[[Node, Sequence[Value | None]], Value]:
    def operator(node: Node, args: Sequence[Value | None]) -> Value:
        if len(args) == 1 and args[0] is not None:
            return args[0]
        total = _operand(node, args, 0)
        for index in range(1, len(args)):
            total = np.asarray(ufunc(total, _operand(node, args, index)))
        return total

    return operator


def _stepwise(function: Callable[[Array], Any]) -> Callable[[Node, Sequence[Value | None]], Value]:
    def operator(node: Node, args: Sequence[Value | None]) -> Value:
        with np.errstate(all="ignore"):
            return np.asarray(function(_operand(node, args, 0)), np.float32)

    return operator


def _qlinear_leaky_relu(node: Node, args: Sequence[Value | None]) -> Value:
    x = quantized_input(node, args, 0)
    params = quantized_output(node, args, 3, x.data.dtype)
    return quantize(_leaky_relu(node, [x]), params, node.unrounded)


def _qlinear_binary(ufunc: _Ufunc) -> Callable[[Node, Sequence[Value | None]], Value]:
    def operator(node: Node, args: Sequence[Value | None]) -> Value:
        a, b = quantized_input(node, args, 0), quantized_input(node, args, 3)
        params = quantized_output(node, args, 6, a.data.dtype)
        return quantize(np.asarray(ufunc(a.real(), b.real())), params, node.unrounded)

    return operator


def _relu(node: Node, args: Sequence[Value | None]) -> Value:
    return _clamp(node, args, np.float32(0), _INFINITY)


def _clip(node: Node, args: Sequence[Value | None]) -> Value:
    low = _bound(node, args, 1, "min", -_INFINITY)
    high = _bound(node, args, 2, "max", _INFINITY)
    return _clamp(node, args, low, high)


def _bound(
    node: Node, args: Sequence[Value | None], index: int, attribute: str, default: np.float32
) -> np.float32:
    """A bound from its input (opset 11 on), else from its attribute (opset 6), else `default`."""
    given = args[index] if index < len(args) else None
    if given is None:
        return np.float32(node.get(attribute, default))
    value = materialise(given)
    if value.size != 1:
        raise node.fail(f"needs a scalar {attribute}, got shape {value.shape}")
    return np.float32(value.reshape(()))


def _clamp(node: Node, args: Sequence[Value | None], low: np.float32, high: np.float32) -> Value:
    value = args[0]
    if isinstance(value, Pending):
        return value.clamped(low, high)
    array = _operand(node, args, 0)
    if array.dtype.kind == "f":
        return np.minimum(np.maximum(array, low), high)
    limits = np.iinfo(array.dtype)
    bottom, top = max(float(low), limits.min), min(float(high), limits.max)
    return np.clip(array, int(bottom), int(top))


def _leaky_relu(node: Node, args: Sequence[Value | None]) -> Value:
    x = _operand(node, args, 0)
    return np.where(x >= 0, x, x * np.float32(node.get("alpha", 0.01)))


def _thresholded_relu(node: Node, args: Sequence[Value | None]) -> Value:
    x = _operand(node, args, 0)
    return np.where(x > np.float32(node.get("alpha", 1.0)), x, np.float32(0))


def _prelu(node: Node, args: Sequence[Value | None]) -> Value:
    x, slope = _operand(node, args, 0), _operand(node, args, 1)
    return np.where(x >= 0, x, x * slope)


def _hard_sigmoid(node: Node, args: Sequence[Value | None]) -> Value:
    """max(0, min(1, alpha x + beta)), each step in float32."""
    alpha, beta = np.float32(node.get("alpha", 0.2)), np.float32(node.get("beta", 0.5))
    return _hard(_operand(node, args, 0), alpha, beta)


def _hard_swish(node: Node, args: Sequence[Value | None]) -> Value:
    x = _operand(node, args, 0)
    return x * _hard(x, np.float32(1 / 6), np.float32(0.5))


def _hard(x: Array, alpha: np.float32, beta: np.float32) -> Array:
    return np.maximum(np.float32(0), np.minimum(np.float32(1), x * alpha + beta))


def _operand(node: Node, args: Sequence[Value | None], index: int) -> Array:
    value = args[index]
    if value is None:
        raise node.fail(f"needs input {index}, got an empty name")
    return materialise(value)


OPERATORS = {
    ("", "Add"): _binary(np.add),
    ("", "Sub"): _binary(np.subtract),
    ("", "Mul"): _multiply,
    ("", "Div"): _binary(np.divide),
    ("", "Sum"): _many(np.add),
    ("", "Max"): _many(np.maximum),
    ("", "Min"): _many(np.minimum),
    ("", "Abs"): _stepwise(np.abs),
    ("", "Neg"): _stepwise(np.negative),
    ("", "Sqrt"): _stepwise(np.sqrt),
    ("", "Reciprocal"): _stepwise(lambda x: np.float32(1) / x),
    ("", "Softsign"): _stepwise(lambda x: x / (np.float32(1) + np.abs(x))),
    ("", "Floor"): _stepwise(np.floor),
    ("", "Ceil"): _stepwise(np.ceil),
    ("", "Round"): _stepwise(np.rint),
    ("", "Sign"): _stepwise(np.sign),
    ("", "ThresholdedRelu"): _thresholded_relu,
    ("", "Relu"): _relu,
    ("", "Clip"): _clip,
    ("", "LeakyRelu"): _leaky_relu,
    ("", "PRelu"): _prelu,
    ("", "HardSigmoid"): _hard_sigmoid,
    ("", "HardSwish"): _hard_swish,
    ("com.microsoft", "QLinearAdd"): _qlinear_binary(np.add),
    ("com.microsoft", "QLinearLeakyRelu"): _qlinear_leaky_relu,
    ("com.microsoft", "QLinearMul"): _qlinear_binary(np.multiply),
}
