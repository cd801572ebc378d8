"""Element-wise operators, op by op in IEEE float32, and their QLinear forms.

Relu and Clip of a pending result become clamps of its rounding; every other function of one
quantized tensor maps the table of its 256 codes.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.params import quantized_input, quantized_output
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import (
    Const,
    ConstReal,
    Joined,
    Pending,
    Real,
    Symbol,
    Tensor,
)
from vitral.compiler.ir.ops import Binary
from vitral.runtime.cpu import OPERATORS as CPU_OPERATORS

__all__ = ["OPERATORS", "float_binary"]

Float32 = npt.NDArray[np.float32]
_INFINITY = float("inf")


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
    if isinstance(x, Pending):
        return x.clamped(low, high)
    limits = {
        "low": None if low == -_INFINITY else low,
        "high": None if high == _INFINITY else high,
    }
    return _unary(scope, x, "clip", **limits)


def _leaky_relu(scope: Scope) -> Symbol:
    return _unary(scope, scope.need(0), "leaky_relu", alpha=float(scope.number("alpha", 0.01)))


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


def _unary(scope: Scope, x: Symbol, function: str, **attributes: float | None) -> Symbol:
    compute = CPU_OPERATORS[f"float.{function}"]

    def mapped(values: Float32) -> Float32:
        return compute(values, **attributes)

    if isinstance(x, Const | ConstReal):
        return Const(array=mapped(x.array if isinstance(x, Const) else x.real()))
    if isinstance(x, Real | Joined):
        return x.mapped(mapped)
    tensor = scope.real(x)
    return scope.float_op(function, (tensor,), tensor.shape, attributes=dict(attributes))


def _binary(function: str) -> Callable[[Scope], Symbol]:
    compute = CPU_OPERATORS[f"float.{function}"]

    def operator(scope: Scope) -> Symbol:
        a, b = scope.need(0), scope.need(1)
        mapped = _with_scalar(a, b, compute)
        if mapped is not None:
            return mapped
        if _is_codes(a) and _is_codes(b):
            return _pending(scope, function, a, b)
        return float_binary(scope, function, scope.real(a), scope.real(b))

    return operator


def _sum(scope: Scope) -> Symbol:
    """One argument is itself, two are Add; more are added in float32 from left to right."""
    if len(scope.args) < 2:
        return scope.need(0)
    if len(scope.args) == 2:
        return _binary("add")(scope)
    total = scope.real(scope.need(0))
    for index in range(1, len(scope.args)):
        last = index + 1 == len(scope.args)
        output = scope.output if last else scope.builder.unique(f"{scope.output}.part")
        total = float_binary(scope, "add", total, scope.real(scope.need(index)), output)
    return total


def float_binary(
    scope: Scope, function: str, left: Tensor, right: Tensor, output: str | None = None
) -> Tensor:
    """A float32 operator of two values that broadcast; the node's result by default."""
    try:
        shape = np.broadcast_shapes(left.shape, right.shape)
    except ValueError:
        raise scope.fail(
            f"needs shapes that broadcast, got {list(left.shape)} and {list(right.shape)}"
        ) from None
    return scope.float_op(function, (left, right), shape, output=output)


def _qlinear_binary(function: str) -> Callable[[Scope], Symbol]:
    def operator(scope: Scope) -> Symbol:
        a, b = quantized_input(scope, 0), quantized_input(scope, 3)
        first = a.tensor.type.dtype if isinstance(a, Real) else "int8"
        quant = quantized_output(scope, 6, first)
        result = _pending(scope, function, a, b)
        return scope.builder.quantized(result, quant, scope.node.name, scope.output)

    return operator


def _with_scalar(a: Symbol, b: Symbol, compute: Callable[..., Float32]) -> Symbol | None:
    """The result when one side is a single constant that does not widen the other's shape."""
    left, right = _scalar(a, b), _scalar(b, a)
    if isinstance(a, Real) and right is not None:
        return a.mapped(lambda values: compute(values, right))
    if isinstance(b, Real) and left is not None:
        return b.mapped(lambda values: compute(left, values))
    return None


def _scalar(constant: Symbol, other: Symbol) -> np.float32 | None:
    if not isinstance(constant, Const | ConstReal) or len(constant.shape) > len(other.shape):
        return None
    array = constant.array if isinstance(constant, Const) else constant.real()
    return array.reshape(-1)[0] if array.size == 1 and array.dtype == np.float32 else None


def _is_codes(symbol: Symbol) -> bool:
    if isinstance(symbol, ConstReal):
        return symbol.quant.axis is None and symbol.codes.dtype.name in ("int8", "uint8")
    return isinstance(symbol, Real) and symbol.quant is not None


def _pending(scope: Scope, function: str, a: Symbol, b: Symbol) -> Pending:
    names: list[str] = []
    quants = []
    for symbol in (a, b):
        if isinstance(symbol, ConstReal):
            hint = f"{scope.node.name}.constant"
            names.append(scope.builder.constant(hint, symbol.codes).name)
        else:
            assert isinstance(symbol, Real)
            names.append(symbol.tensor.name)
        quants.append(symbol.quant)
    return scope.pending(
        Binary(
            name=scope.node.name,
            inputs=tuple(names),
            output="",
            y_quant=None,
            function=function,
            a_quant=quants[0],
            b_quant=quants[1],
        )
    )


OPERATORS = {
    ("", "Add"): _binary("add"),
    ("", "Sum"): _sum,
    ("", "Sub"): _binary("sub"),
    ("", "Mul"): _binary("mul"),
    ("", "Relu"): _relu,
    ("", "Clip"): _clip,
    ("", "LeakyRelu"): _leaky_relu,
    ("", "Softmax"): _softmax,
    ("com.microsoft", "QLinearAdd"): _qlinear_binary("add"),
    ("com.microsoft", "QLinearMul"): _qlinear_binary("mul"),
}
