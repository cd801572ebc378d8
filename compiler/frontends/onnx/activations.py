"""Element-wise operators of one argument.

Relu and Clip of a pending result become clamps of its rounding. What IEEE arithmetic defines maps
the table of a tensor's 256 codes op by op in float32; other functions are evaluated as real numbers
with about 200 bits, and the quantizer behind them rounds once. On float tensors they are float
islands.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx import functions
from vitral.compiler.frontends.onnx.functions import RealFunction
from vitral.compiler.frontends.onnx.params import quantized_input, quantized_output
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import (
    Channeled,
    Const,
    ConstReal,
    Joined,
    Pending,
    Real,
    Symbol,
)
from vitral.runtime.cpu import OPERATORS as CPU_OPERATORS

__all__ = ["OPERATORS"]

Float32 = npt.NDArray[np.float32]
Numbers = dict[str, float]
_INFINITY = float("inf")
_FLOAT32_MAX = float(np.finfo(np.float32).max)


def _relu(scope: Scope) -> Symbol:
    return _clamped(scope, 0.0, _INFINITY)


def _clip(scope: Scope) -> Symbol:
    low = _bound(scope, 1, "min", -_INFINITY)
    return _clamped(scope, low, _bound(scope, 2, "max", _INFINITY))


def _bound(scope: Scope, index: int, attribute: str, default: float) -> float:
    """A bound from its input (opset 11 on), else from its attribute (opset 6), else `default`."""
    array = scope.array(index)
    if array is None:
        return float(np.float32(scope.number(attribute, default)))
    if array.size != 1 or array.dtype.kind not in "fiu":
        raise scope.fail(
            f"needs one number as {attribute}, got {array.dtype} of shape {list(array.shape)}"
        )
    value = float(np.float32(array.reshape(-1)[0]))
    if np.isnan(value):
        raise scope.fail(f"needs a number as {attribute}, got NaN")
    return value


def _clamped(scope: Scope, low: float, high: float) -> Symbol:
    x = scope.need(0)
    if isinstance(x, Pending | Real):
        return x.clamped(low, high)
    limits = {
        "low": None if low == -_INFINITY else low,
        "high": None if high == _INFINITY else high,
    }
    return _mapped(scope, x, "clip", limits)


def _mapped(scope: Scope, x: Symbol, function: str, attributes: dict[str, Any]) -> Symbol:
    """A function that is defined op by op in float32, by its numpy form."""
    compute = CPU_OPERATORS[f"float.{function}"]

    def mapped(values: Float32) -> Float32:
        with np.errstate(all="ignore"):
            return compute(values, **attributes)

    if isinstance(x, Const | ConstReal):
        return Const(array=mapped(x.array if isinstance(x, Const) else x.real()))
    if isinstance(x, Real | Channeled | Joined):
        return x.mapped(mapped)
    tensor = scope.real(x)
    return scope.float_op(function, (tensor,), tensor.shape, attributes=attributes)


def _stepwise(function: str, **defaults: float) -> Callable[[Scope], Symbol]:
    """An operator of IEEE steps, with the number attributes that it may have."""

    def operator(scope: Scope) -> Symbol:
        return _mapped(scope, scope.need(0), function, _numbers(scope, defaults))

    return operator


def _real(function: str, **defaults: float) -> Callable[[Scope], Symbol]:
    """An operator that is one function of a real number."""

    def operator(scope: Scope) -> Symbol:
        return _evaluated(scope, scope.need(0), function, _numbers(scope, defaults))

    return operator


def _numbers(scope: Scope, defaults: Numbers) -> Numbers:
    return {name: float(np.float32(scope.number(name, v))) for name, v in defaults.items()}


def _evaluated(scope: Scope, x: Symbol, function: str, attributes: Numbers) -> Symbol:
    """`functions.<function>` of a symbol: exactly where it is a function of codes themselves."""
    exactly: RealFunction = getattr(functions, function)
    numbers = {name: Fraction(value) for name, value in attributes.items()}

    def by_steps(table: Float32) -> Float32:
        return CPU_OPERATORS[f"float.{function}"](table, **attributes)

    def of(real: Real) -> Real:
        if real.quant is None:
            return real.mapped(by_steps)
        arguments = real.fractions() or ()
        exact = tuple(exactly(argument, **numbers) for argument in arguments)
        return Real(tensor=real.tensor, table=_nearest(exact), quant=None, exact=exact)

    if isinstance(x, Real):
        return of(x)
    if isinstance(x, Joined):
        return Joined(parts=tuple(of(part) for part in x.parts), axis=x.axis, shape=x.shape)
    return _mapped(scope, x, function, attributes)


def _nearest(exact: tuple[Fraction, ...]) -> Float32:
    values = [float(min(max(x, -Fraction(_FLOAT32_MAX)), Fraction(_FLOAT32_MAX))) for x in exact]
    return np.array(values, np.float64).astype(np.float32)


def _gelu(scope: Scope) -> Symbol:
    approximate = scope.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise scope.fail(f"needs approximate 'none' or 'tanh', got {approximate!r}")
    function = "gelu" if approximate == "none" else "gelu_tanh"
    return _evaluated(scope, scope.need(0), function, {})


def _qlinear_sigmoid(scope: Scope) -> Symbol:
    x = quantized_input(scope, 0)
    return _requantized(scope, x, _evaluated(scope, x, "sigmoid", {}))


def _qlinear_leaky_relu(scope: Scope) -> Symbol:
    x = quantized_input(scope, 0)
    alpha = _numbers(scope, {"alpha": 0.01})
    return _requantized(scope, x, _mapped(scope, x, "leaky_relu", alpha))


def _requantized(scope: Scope, x: Symbol, result: Symbol) -> Symbol:
    """The codes of `result` in the scale and zero point at inputs 3 and 4, of the type of `x`."""
    dtype = x.tensor.type.dtype if isinstance(x, Real) else "int8"
    quant = quantized_output(scope, 3, dtype)
    return scope.builder.quantized(result, quant, scope.node.name, scope.output)


def _softmax(scope: Scope) -> Symbol:
    """A float island. Before opset 13 it runs over all axes from `axis` on."""
    tensor = scope.real(scope.need(0))
    rank, flat = len(tensor.shape), scope.node.opset < 13
    axis = scope.integer("axis", 1 if flat else -1)
    if not -rank <= axis < rank:
        raise scope.fail(f"needs an axis of {list(tensor.shape)}, got {axis}")
    first = axis % rank
    axes = list(range(first, rank)) if flat else [first]
    return scope.float_op("softmax", (tensor,), tensor.shape, attributes={"axes": axes})


OPERATORS = {
    ("", "Relu"): _relu,
    ("", "Clip"): _clip,
    ("", "LeakyRelu"): _stepwise("leaky_relu", alpha=0.01),
    ("", "ThresholdedRelu"): _stepwise("thresholded_relu", alpha=1.0),
    ("", "HardSigmoid"): _stepwise("hard_sigmoid", alpha=0.2, beta=0.5),
    ("", "HardSwish"): _stepwise("hard_swish"),
    ("", "Softsign"): _stepwise("softsign"),
    ("", "Abs"): _stepwise("abs"),
    ("", "Neg"): _stepwise("neg"),
    ("", "Sqrt"): _stepwise("sqrt"),
    ("", "Reciprocal"): _stepwise("reciprocal"),
    ("", "Floor"): _stepwise("floor"),
    ("", "Ceil"): _stepwise("ceil"),
    ("", "Round"): _stepwise("round"),
    ("", "Sign"): _stepwise("sign"),
    ("", "Sigmoid"): _real("sigmoid"),
    ("", "Tanh"): _real("tanh"),
    ("", "Exp"): _real("exp"),
    ("", "Erf"): _real("erf"),
    ("", "Softplus"): _real("softplus"),
    ("", "Mish"): _real("mish"),
    ("", "Swish"): _real("swish", alpha=1.0),
    ("", "Elu"): _real("elu", alpha=1.0),
    ("", "Celu"): _real("celu", alpha=1.0),
    ("", "Selu"): _real("selu", alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    ("", "Gelu"): _gelu,
    ("", "Softmax"): _softmax,
    ("com.microsoft", "Gelu"): _gelu,
    ("com.microsoft", "QuickGelu"): _real("swish", alpha=1.702),
    ("com.microsoft", "QLinearSigmoid"): _qlinear_sigmoid,
    ("com.microsoft", "QLinearLeakyRelu"): _qlinear_leaky_relu,
}
