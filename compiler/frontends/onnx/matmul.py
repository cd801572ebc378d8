"""Gemm, MatMul and their quantized forms; a product with constant weights is a 1x1 convolution."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.bias import bias_steps
from vitral.compiler.frontends.onnx.conv import check_weights, product_scales
from vitral.compiler.frontends.onnx.elementwise import combined
from vitral.compiler.frontends.onnx.params import (
    integer_input,
    quantized_input,
    quantized_output,
    sums_of,
)
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Const, ConstReal, Pending, Real, Symbol, Tensor
from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import Conv2d, MatMul

__all__ = ["OPERATORS"]


def _gemm(scope: Scope) -> Symbol:
    a, b = scope.need(0), scope.need(1)
    if isinstance(a, Real) and a.quant is not None and isinstance(b, ConstReal):
        return _integer_gemm(scope, a, b, weight_index=1, bias_index=2)
    return _float_gemm(scope)


def _qgemm(scope: Scope) -> Symbol:
    a = quantized_input(scope, 0)
    b = quantized_input(scope, 3, axis=0 if scope.integer("transB", 0) else 1)
    if not (isinstance(a, Real) and isinstance(b, ConstReal)):
        raise scope.fail(f"needs constant weights as {scope.named(3)} and an input computed")
    pending = _integer_gemm(scope, a, b, weight_index=3, bias_index=6)
    if scope.given(7) is None:
        return pending
    quant = quantized_output(scope, 7, a.tensor.type.dtype)
    return scope.builder.quantized(pending, quant, scope.node.name, scope.output)


def _integer_gemm(
    scope: Scope, a: Real, b: ConstReal, *, weight_index: int, bias_index: int
) -> Pending:
    alpha, beta = scope.number("alpha", 1.0), scope.number("beta", 1.0)
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise scope.fail(f"needs matrices, got shapes {list(a.shape)} and {list(b.shape)}")
    if not (np.isfinite(alpha) and alpha > 0):
        raise scope.fail(f"needs alpha > 0, got {alpha:g}; change the sign of the weights instead")
    columns = 0 if scope.integer("transB", 0) else 1
    source = scope.transpose(a.tensor, (1, 0)) if scope.integer("transA", 0) else a.tensor
    pending = _dense(scope, a, source, b, weight_index, columns=columns, alpha=alpha)
    if beta == 0.0 or scope.given(bias_index) is None:
        return pending
    assert isinstance(pending.op, Conv2d)
    scales = pending.op.product_scale
    bias = bias_steps(scope, bias_index, scales, gain=beta)
    return replace(pending, op=replace(pending.op, bias=bias))


def _dense(
    scope: Scope,
    a: Real,
    source: Tensor,
    b: ConstReal,
    weight_index: int,
    *,
    columns: int,
    alpha: float = 1.0,
) -> Pending:
    """Product of `source` (..., K) and a matrix whose axis `columns` is that of the results."""
    assert a.quant is not None
    if b.quant.axis not in (None, columns):
        raise scope.fail(
            f"needs weight scales per tensor or along axis {columns} as"
            f" {scope.named(weight_index)}, got axis {b.quant.axis}"
        )
    check_weights(scope, weight_index, b)
    matrix = b.codes if columns == 0 else b.codes.T
    outputs, inner = matrix.shape
    *leading, size = source.shape
    if size != inner:
        raise scope.fail(f"needs equal inner sizes, got {list(source.shape)} and {list(b.shape)}")
    rows = int(np.prod(leading, dtype=np.int64))
    view = scope.reshape(source, (rows, inner, 1, 1))
    op = Conv2d(
        name=scope.node.name,
        inputs=(view.name,),
        output="",
        y_quant=None,
        x_quant=a.quant,
        weight=np.ascontiguousarray(matrix)[:, :, None, None],
        weight_zero=np.array(np.broadcast_to(b.quant.zeros, outputs), np.int64),
        product_scale=product_scales(a.quant.tensor_scale, b, outputs, alpha=alpha),
        bias=np.zeros(outputs, np.int64),
    )
    return replace(scope.pending(op), shape=(*leading, outputs))


def _matmul(scope: Scope) -> Symbol:
    a, b = scope.need(0), scope.need(1)
    if _is_codes(a) and _is_codes(b):
        return _integer_matmul(scope, a, b, 1)
    return _float_matmul(scope, scope.real(a), scope.real(b))


def _qlinear_matmul(scope: Scope) -> Symbol:
    a = quantized_input(scope, 0)
    b = quantized_input(scope, 3, axis=len(scope.need(3).shape) - 1)
    quant = quantized_output(scope, 6, _operand(scope, a)[1].dtype)
    pending = _integer_matmul(scope, a, b, 3)
    return scope.builder.quantized(pending, quant, scope.node.name, scope.output)


def _matmul_integer(scope: Scope) -> Symbol:
    """The int32 sums of codes minus their zero points."""
    a = integer_input(scope, 0, 2)
    b = integer_input(scope, 1, 3, axis=len(scope.need(1).shape) - 1)
    if not (_is_codes(a) and _is_codes(b)):
        raise scope.fail("needs one zero point for an input computed at run time, got several")
    return sums_of(scope, _integer_matmul(scope, a, b, 1))


def _is_codes(symbol: Symbol) -> bool:
    return isinstance(symbol, ConstReal) or (isinstance(symbol, Real) and symbol.quant is not None)


def _integer_matmul(scope: Scope, a: Symbol, b: Symbol, weight_index: int) -> Pending:
    if isinstance(a, Real) and isinstance(b, ConstReal) and len(b.shape) == 2:
        return _dense(scope, a, a.tensor, b, weight_index, columns=1)
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise scope.fail(f"needs matrices, got shapes {list(a.shape)} and {list(b.shape)}")
    (left, a_quant), (right, b_quant) = (_operand(scope, s) for s in (a, b))
    if a_quant.axis is not None or b_quant.axis not in (None, len(b.shape) - 1):
        raise scope.fail("needs one scale per tensor, or per column of the second matrix")
    if b_quant.axis is not None and any(b_quant.zero_point):
        raise scope.fail("needs zero points 0 with one scale per column, got others")
    scale = np.float32(a_quant.tensor_scale) * b_quant.scales
    return scope.pending(
        MatMul(
            name=scope.node.name,
            inputs=(left.name, right.name),
            output="",
            y_quant=None,
            a_quant=a_quant,
            b_quant=b_quant,
            product_scale=np.asarray(scale, np.float32),
        )
    )


def _operand(scope: Scope, symbol: Symbol) -> tuple[Tensor, Quant]:
    if isinstance(symbol, ConstReal):
        name = f"{scope.node.name}.constant"
        return scope.builder.constant(name, symbol.codes), symbol.quant
    assert isinstance(symbol, Real)
    assert symbol.quant is not None
    return symbol.tensor, symbol.quant


def _float_matmul(scope: Scope, a: Tensor, b: Tensor, output: str | None = None) -> Tensor:
    try:
        shape = np.matmul(_nothing(a.shape), _nothing(b.shape)).shape
    except ValueError:
        raise scope.fail(
            f"needs equal inner sizes, got {list(a.shape)} and {list(b.shape)}"
        ) from None
    macs = int(np.prod(shape, dtype=np.int64)) * a.shape[-1]
    return scope.float_op("matmul", (a, b), shape, macs=macs, output=output)


def _nothing(shape: tuple[int, ...]) -> npt.NDArray:
    """An array of a shape that takes no memory."""
    return np.broadcast_to(np.int8(0), shape)


def _float_gemm(scope: Scope) -> Symbol:
    """alpha · A · B + beta · C, each factor of 1 left out."""
    alpha, beta = (np.float32(scope.number(name, 1.0)) for name in ("alpha", "beta"))
    a, b = (_turned(scope, i, flag) for i, flag in ((0, "transA"), (1, "transB")))
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise scope.fail(f"needs matrices, got shapes {list(a.shape)} and {list(b.shape)}")
    bias = scope.given(2) if beta else None
    output = scope.output if alpha == 1 and bias is None else _part(scope, "product")
    result: Symbol = _float_matmul(scope, a, b, output)
    if alpha != 1:
        output = scope.output if bias is None else _part(scope, "scaled")
        result = combined(scope, "mul", result, Const(array=np.array(alpha)), output)
    if bias is None:
        return result
    if beta != 1:
        bias = combined(scope, "mul", bias, Const(array=np.array(beta)), _part(scope, "bias"))
    return combined(scope, "add", result, bias, scope.output)


def _turned(scope: Scope, index: int, flag: str) -> Tensor:
    """A real matrix, transposed if the attribute says so; constants at compile time."""
    symbol = scope.need(index)
    if not scope.integer(flag, 0):
        return scope.real(symbol)
    if isinstance(symbol, Const | ConstReal):
        array = symbol.array if isinstance(symbol, Const) else symbol.real()
        return scope.real(Const(array=np.ascontiguousarray(array.T)))
    tensor = scope.real(symbol)
    return scope.transpose(tensor, tuple(range(len(tensor.shape)))[::-1])


def _part(scope: Scope, what: str) -> str:
    return scope.builder.unique(f"{scope.output}.{what}")


OPERATORS = {
    ("", "Gemm"): _gemm,
    ("com.microsoft", "QGemm"): _qgemm,
    ("", "MatMul"): _matmul,
    ("", "MatMulInteger"): _matmul_integer,
    ("", "QLinearMatMul"): _qlinear_matmul,
    ("com.microsoft", "QLinearMatMul"): _qlinear_matmul,
}
