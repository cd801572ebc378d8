"""Gemm, MatMul and their quantized forms."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from oracle.accumulate import accumulated, bias_steps, exact_matmul
from oracle.graph import Node
from oracle.qdq import quantized_input, quantized_output
from oracle.values import Dequantized, Params, Pending, Value, materialise, quantize

__all__ = ["OPERATORS"]


def _gemm(node: Node, args: Sequence[Value | None]) -> Value:
    a, b = args[0], args[1]
    c = args[2] if len(args) > 2 else None
    beta = float(node.get("beta", 1.0))
    if not (isinstance(a, Dequantized) and isinstance(b, Dequantized)):
        return _float_gemm(node, args, beta)
    return _integer_gemm(node, a, b, None if beta == 0.0 else c, beta)


def _qgemm(node: Node, args: Sequence[Value | None]) -> Value:
    a = quantized_input(node, args, 0)
    b = quantized_input(node, args, 3, axis=0 if node.get("transB", 0) else 1)
    c = args[6] if len(args) > 6 else None
    product = _integer_gemm(node, a, b, c, 1.0)
    if len(args) < 8 or args[7] is None:
        return product
    return quantize(product, quantized_output(node, args, 7, a.data.dtype), node.unrounded)


def _integer_gemm(
    node: Node, a: Dequantized, b: Dequantized, c: Value | None, beta: float
) -> Pending:
    alpha = np.float32(node.get("alpha", 1.0))
    trans_b = bool(node.get("transB", 0))
    if a.data.ndim != 2 or b.data.ndim != 2:
        raise node.fail(f"needs matrices, got shapes {a.data.shape} and {b.data.shape}")
    left = a.centred().T if node.get("transA", 0) else a.centred()
    right = b.centred().T if trans_b else b.centred()
    if left.shape[1] != right.shape[0]:
        raise node.fail(f"needs equal inner sizes, got {left.shape} and {right.shape}")
    if alpha <= 0:
        raise node.fail(f"needs alpha > 0, got {alpha}")
    _check_axis(node, b.params, 0 if trans_b else 1)
    scale = np.asarray(alpha * a.tensor_scale(node.where) * b.params.scale, dtype=np.float32)
    total = exact_matmul(left, right)
    if c is not None:
        total = total + bias_steps(node, c, scale, gain=beta)
    return accumulated(node, total, scale)


def _float_gemm(node: Node, args: Sequence[Value | None], beta: float) -> Value:
    """A float island: float64 sums rounded to float32 once; not part of the byte promise."""
    a, b = (_float64(node, v) for v in args[:2])
    left, right = (a.T if node.get("transA", 0) else a), (b.T if node.get("transB", 0) else b)
    total = float(node.get("alpha", 1.0)) * (left @ right)
    if beta != 0.0 and len(args) > 2 and args[2] is not None:
        total = total + beta * _float64(node, args[2])
    return total.astype(np.float32)


def _matmul(node: Node, args: Sequence[Value | None]) -> Value:
    a, b = args[0], args[1]
    if isinstance(a, Dequantized) and isinstance(b, Dequantized):
        return _integer_matmul(node, a, b)
    return (_float64(node, a) @ _float64(node, b)).astype(np.float32)


def _qlinear_matmul(node: Node, args: Sequence[Value | None]) -> Value:
    a = quantized_input(node, args, 0)
    right = args[3]
    rank = right.ndim if isinstance(right, np.ndarray) else 2
    b = quantized_input(node, args, 3, axis=rank - 1)
    params = quantized_output(node, args, 6, a.data.dtype)
    return quantize(_integer_matmul(node, a, b), params, node.unrounded)


def _integer_matmul(node: Node, a: Dequantized, b: Dequantized) -> Pending:
    _check_axis(node, b.params, b.data.ndim - 1)
    if b.data.ndim == 1 and b.params.axis is not None:
        raise node.fail("needs one scale for a vector, got one per element")
    scale = np.asarray(a.tensor_scale(node.where) * b.params.scale, dtype=np.float32)
    return accumulated(node, exact_matmul(a.centred(), b.centred()), scale)


def _matmul_integer(node: Node, args: Sequence[Value | None]) -> Value:
    """int32 sums of codes minus their zero points, of b also one for each column."""
    sides: list[npt.NDArray[np.int64]] = []
    for index in (0, 1):
        data, zero = args[index], args[index + 2] if len(args) > index + 2 else None
        if data is None:
            raise node.fail("needs two operands, got an empty name")
        zeros = np.int64(0) if zero is None else materialise(zero).astype(np.int64)
        if index == 0 and np.ndim(zeros) == 1 and np.size(zeros) > 1:
            zeros = np.reshape(zeros, (-1, 1))
        sides.append(materialise(data).astype(np.int64) - zeros)
    total = exact_matmul(*sides)
    return accumulated(node, total, np.ones((), np.float32)).total.astype(np.int32)


def _check_axis(node: Node, params: Params, axis: int) -> None:
    if params.axis not in (None, axis):
        raise node.fail(f"needs weight scales along axis {axis}, got axis {params.axis}")


def _float64(node: Node, value: Value | None) -> npt.NDArray[np.float64]:
    if value is None:
        raise node.fail("needs two operands, got an empty name")
    return materialise(value).astype(np.float64)


OPERATORS = {
    ("", "Gemm"): _gemm,
    ("com.microsoft", "QGemm"): _qgemm,
    ("", "MatMul"): _matmul,
    ("", "MatMulInteger"): _matmul_integer,
    ("", "QLinearMatMul"): _qlinear_matmul,
    ("com.microsoft", "QLinearMatMul"): _qlinear_matmul,
}
