"""Element-wise operators of two or more arguments, op by op in IEEE float32.

A constant that is one number, or one for each channel, maps the table of the other argument's 256
codes; two functions of one quantized tensor are one function of it.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.params import quantized_input, quantized_output
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import (
    Channeled,
    Const,
    ConstReal,
    Pending,
    Real,
    Symbol,
    Tensor,
)
from vitral.compiler.ir.ops import Binary
from vitral.runtime.cpu import OPERATORS as CPU_OPERATORS

__all__ = ["OPERATORS", "combined", "float_binary"]

Float32 = npt.NDArray[np.float32]
Function = Callable[..., Float32]


def _binary(function: str) -> Callable[[Scope], Symbol]:
    return lambda scope: combined(scope, function, scope.need(0), scope.need(1))


def combined(
    scope: Scope, function: str, a: Symbol, b: Symbol, output: str | None = None
) -> Symbol:
    """`function` of two symbols in the cheapest form that is exact; `output` names a tensor."""
    compute = CPU_OPERATORS[f"float.{function}"]
    mapped = _with_constant(a, b, compute)
    if mapped is None and isinstance(a, Real) and isinstance(b, Real):
        mapped = _of_one_tensor(function, a, b, compute)
    if mapped is not None:
        return mapped
    if _is_codes(a) and _is_codes(b):
        return _pending(scope, function, a, b)
    return float_binary(scope, function, scope.real(a), scope.real(b), output)


def _many(function: str) -> Callable[[Scope], Symbol]:
    """One argument is itself; more are combined from left to right, in float32."""

    def operator(scope: Scope) -> Symbol:
        result = scope.need(0)
        for index in range(1, len(scope.args)):
            last = index + 1 == len(scope.args)
            output = scope.output if last else scope.builder.unique(f"{scope.output}.part")
            result = combined(scope, function, result, scope.need(index), output)
        return result

    return operator


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


def _with_constant(a: Symbol, b: Symbol, compute: Function) -> Symbol | None:
    """The result when one side is a constant of one number, or of one for each channel."""
    for symbol, constant, of in (
        (a, b, lambda table, values: compute(table, values)),
        (b, a, lambda table, values: compute(values, table)),
    ):
        if isinstance(symbol, Real | Channeled) and isinstance(constant, Const | ConstReal):
            return _mapped(symbol, constant, of)
    return None


def _mapped(symbol: Real | Channeled, constant: Const | ConstReal, of: Function) -> Symbol | None:
    array = constant.array if isinstance(constant, Const) else constant.real()
    if array.dtype != np.float32 or array.ndim > len(symbol.shape):
        return None
    if array.size == 1:
        value = array.reshape(-1)[0]
        return symbol.mapped(lambda table: of(table, value))
    axis = _only_axis(array.shape, symbol.shape)
    if axis is None or (isinstance(symbol, Channeled) and symbol.axis != axis):
        return None
    values = array.reshape(-1, 1)
    if isinstance(symbol, Channeled):
        return symbol.mapped(lambda tables: of(tables, values))
    tables = np.asarray(of(symbol.table[None], values), np.float32)
    return Channeled(tensor=symbol.tensor, tables=tables, axis=axis)


def _only_axis(constant: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """The axis of `shape` along which the constant alone has more than one element."""
    wide = (1,) * (len(shape) - len(constant)) + constant
    axes = [i for i, n in enumerate(wide) if n != 1]
    return axes[0] if len(axes) == 1 and wide[axes[0]] == shape[axes[0]] else None


def _of_one_tensor(function: str, a: Real, b: Real, compute: Function) -> Real | None:
    """Two functions of the same codes; x · sigmoid(x) stays the product of real numbers."""
    if a.tensor != b.tensor:
        return None
    exact: tuple[Fraction, ...] | None = None
    argument, result = (a, b) if a.exact is None else (b, a)
    if function == "mul" and argument.quant is not None and result.exact is not None:
        numbers = argument.fractions() or ()
        exact = tuple(x * y for x, y in zip(numbers, result.exact, strict=True))
    return Real(tensor=a.tensor, table=compute(a.table, b.table), quant=None, exact=exact)


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
    ("", "Sub"): _binary("sub"),
    ("", "Mul"): _binary("mul"),
    ("", "Div"): _binary("div"),
    ("", "PRelu"): _binary("prelu"),
    ("", "Sum"): _many("add"),
    ("", "Max"): _many("max"),
    ("", "Min"): _many("min"),
    ("com.microsoft", "QLinearAdd"): _qlinear_binary("add"),
    ("com.microsoft", "QLinearMul"): _qlinear_binary("mul"),
}
