"""Reads scales and zero points."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import (
    Const,
    ConstReal,
    Pending,
    Real,
    Symbol,
    Tensor,
)
from vitral.compiler.ir import QUANTIZED, Quant

__all__ = [
    "integer_input",
    "quantized_input",
    "quantized_output",
    "read_quant",
    "sums_of",
    "zero_point_dtype",
]


def read_quant(
    scope: Scope,
    scale_index: int,
    *,
    dtype: str,
    shape: tuple[int, ...],
    axis: int | None,
) -> Quant:
    """The quantization whose scale is input `scale_index` and zero point the next one.

    `shape` is that of the quantized tensor; `axis` the one that several scales belong to, None
    where there may be only one. Size 1 counts as one per tensor. A missing zero point is 0.
    """
    scales = _scales(scope, scale_index)
    if scales.size == 1:
        axis = None
    else:
        _check_axis(scope, scale_index, scales.size, shape, axis)
    zeros = _zeros(scope, scale_index + 1, dtype, scales.size)
    return Quant(
        dtype=dtype,
        scale=tuple(scales.reshape(-1).tolist()),
        zero_point=tuple(zeros.reshape(-1).tolist()),
        axis=axis,
    )


def _check_axis(
    scope: Scope, index: int, size: int, shape: tuple[int, ...], axis: int | None
) -> None:
    if axis is None:
        raise scope.fail(f"needs one scale per tensor as {scope.named(index)}, got {size}")
    if not 0 <= axis < len(shape) or shape[axis] != size:
        raise scope.fail(
            f"needs 1 scale or as many as axis {axis} of shape {list(shape)}"
            f" as {scope.named(index)}, got {size}"
        )


def _scales(scope: Scope, index: int) -> npt.NDArray[np.float32]:
    scales = scope.array(index)
    if scales is None:
        raise scope.fail(f"needs a scale at input {index}, got none")
    what = f"as {scope.named(index)}"
    if scales.dtype != np.float32:
        raise scope.fail(f"needs a float32 scale {what}, got {scales.dtype}")
    if scales.ndim > 1:
        raise scope.fail(
            f"needs one scale per tensor or per index of one axis {what},"
            f" got blocked scales of shape {list(scales.shape)}"
        )
    if scales.size == 0:
        raise scope.fail(f"needs at least one scale {what}, got an empty tensor")
    wrong = ~(np.isfinite(scales) & (scales > 0))
    if wrong.any():
        first = int(np.argmax(wrong.reshape(-1)))
        value = scales.reshape(-1)[first]
        raise scope.fail(f"needs finite scales > 0 {what}, got {value:g} at index {first}")
    return scales


def _zeros(scope: Scope, index: int, dtype: str, count: int) -> npt.NDArray[np.int64]:
    zeros = scope.array(index)
    if zeros is None:
        return np.zeros(count, np.int64)
    what = f"as {scope.named(index)}"
    if str(zeros.dtype) != dtype:
        raise scope.fail(f"needs a zero point of type {dtype} {what}, got {zeros.dtype}")
    if zeros.size == 1 and count > 1:
        zeros = np.full(count, zeros.reshape(-1)[0])
    if zeros.size != count:
        raise scope.fail(f"needs {count} zero points {what}, got {zeros.size}")
    return zeros.astype(np.int64)


def zero_point_dtype(scope: Scope, index: int, default: str) -> str:
    """Element type of the zero point at input `index`, `default` when it is left out."""
    zeros = scope.array(index)
    dtype = default if zeros is None else str(zeros.dtype)
    if dtype not in QUANTIZED:
        raise scope.fail(f"needs an int8 or uint8 output, got {dtype}")
    return dtype


def quantized_input(scope: Scope, index: int, *, axis: int | None = None) -> Symbol:
    """The (data, scale, zero point) triple at input `index` of a QLinear operator."""
    data = scope.need(index)
    dtype = _element_type(data)
    if dtype not in QUANTIZED:
        raise scope.fail(f"needs int8 or uint8 as {scope.named(index)}, got {dtype}")
    quant = read_quant(scope, index + 1, dtype=dtype, shape=data.shape, axis=axis)
    symbol = scope.builder.dequantized(data, quant, scope.node.name)
    assert isinstance(symbol, ConstReal | Real | Tensor)
    return symbol


def _element_type(data: Symbol) -> str:
    if isinstance(data, Const):
        return str(data.array.dtype)
    return data.type.dtype if isinstance(data, Tensor) else "float32"


def integer_input(scope: Scope, index: int, zero: int, *, axis: int | None = None) -> Symbol:
    """Input `index` of an integer operator with its zero point at input `zero`; the scale is 1."""
    data = scope.need(index)
    dtype = _element_type(data)
    if dtype not in QUANTIZED:
        raise scope.fail(f"needs int8 or uint8 as {scope.named(index)}, got {dtype}")
    given = scope.array(zero)
    count = 1 if given is None else given.size
    if count != 1:
        _check_axis(scope, zero, count, data.shape, axis)
    zeros = _zeros(scope, zero, dtype, count).reshape(-1).tolist()
    quant = Quant(
        dtype=dtype,
        scale=(1.0,) * count,
        zero_point=tuple(zeros),
        axis=None if count == 1 else axis,
    )
    return scope.builder.dequantized(data, quant, scope.node.name)


def sums_of(scope: Scope, pending: Pending) -> Tensor:
    """The int32 sums of a pending product."""
    exact = replace(pending, op=replace(pending.op, sums=True))
    return scope.builder.tensor(exact, scope.node.name, scope.output)


def quantized_output(scope: Scope, index: int, default: str) -> Quant:
    """The (scale, zero point) pair at input `index`; type `default` without a zero point."""
    dtype = zero_point_dtype(scope, index + 1, default)
    return read_quant(scope, index, dtype=dtype, shape=(), axis=None)
