"""QuantizeLinear and DequantizeLinear, and the reading of quantization parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oracle.graph import Node
from oracle.values import Array, Dequantized, Params, Value, materialise, quantize

__all__ = ["OPERATORS", "quantized_input", "quantized_output", "read_params"]

_QUANTIZED = (np.dtype(np.int8), np.dtype(np.uint8))
_DEQUANTIZED = (*_QUANTIZED, np.dtype(np.int32))
_OUTPUT_DTYPES = {2: np.dtype(np.uint8), 3: np.dtype(np.int8)}


def read_params(
    node: Node,
    scale: Value | None,
    zero_point: Value | None,
    *,
    dtype: np.dtype[Any],
    axis: int | None = None,
) -> Params:
    """Check and pack a scale and an optional zero point; size 1 counts as one per tensor."""
    if scale is None:
        raise node.fail("needs a scale, got none")
    scales = materialise(scale)
    if scales.dtype != np.float32:
        raise node.fail(f"needs a float32 scale, got {scales.dtype}")
    if scales.size == 0 or scales.ndim > 1:
        raise node.fail(f"needs a scale of shape () or (C,), got shape {scales.shape}")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise node.fail(f"needs finite scales > 0, got {scales.min()}..{scales.max()}")
    zeros = np.zeros_like(scales, dtype=dtype) if zero_point is None else materialise(zero_point)
    if zeros.dtype != dtype:
        raise node.fail(f"needs a zero point of type {dtype}, got {zeros.dtype}")
    if zeros.size != scales.size:
        raise node.fail(f"needs one zero point per scale, got {zeros.size} for {scales.size}")
    if scales.size == 1:
        axis, scales, zeros = None, scales.reshape(()), zeros.reshape(())
    elif axis is None:
        raise node.fail(f"needs one scale per tensor, got {scales.size}")
    return Params(scale=scales, zero_point=zeros.astype(np.int64), dtype=dtype, axis=axis)


def quantized_input(
    node: Node, args: Sequence[Value | None], first: int, *, axis: int | None = None
) -> Dequantized:
    """The (data, scale, zero point) triple that starts at input `first` of a QLinear operator."""
    data, scale, zero_point = (args[i] if i < len(args) else None for i in range(first, first + 3))
    if not isinstance(data, np.ndarray) or data.dtype not in _QUANTIZED:
        raise node.fail(f"needs int8 or uint8 at input {first}, got {_kind(data)}")
    params = read_params(node, scale, zero_point, dtype=data.dtype, axis=axis)
    return _dequantized(node, data, params)


def quantized_output(
    node: Node, args: Sequence[Value | None], first: int, default: np.dtype[Any]
) -> Params:
    """The (scale, zero point) pair at input `first`; `default` type without a zero point."""
    scale, zero_point = (args[i] if i < len(args) else None for i in (first, first + 1))
    dtype = default if zero_point is None else materialise(zero_point).dtype
    if dtype not in _QUANTIZED:
        raise node.fail(f"needs an int8 or uint8 output, got {dtype}")
    return read_params(node, scale, zero_point, dtype=dtype)


def _dequantize_linear(node: Node, args: Sequence[Value | None]) -> Value:
    _refuse_blocks(node)
    data = args[0]
    if not isinstance(data, np.ndarray) or data.dtype not in _DEQUANTIZED:
        raise node.fail(f"needs int8, uint8 or int32, got {_kind(data)}")
    zero_point = args[2] if len(args) > 2 else None
    axis = _axis(node, data.ndim)
    params = read_params(node, args[1], zero_point, dtype=data.dtype, axis=axis)
    return _dequantized(node, data, params)


def _quantize_linear(node: Node, args: Sequence[Value | None]) -> Value:
    _refuse_blocks(node)
    value = args[0]
    if value is None:
        raise node.fail("needs an input, got none")
    zero_point = args[2] if len(args) > 2 else None
    default = _OUTPUT_DTYPES.get(node.get("output_dtype", 0) or 2)
    dtype = default if zero_point is None else materialise(zero_point).dtype
    if dtype is None or dtype not in _QUANTIZED:
        raise node.fail(
            f"needs an int8 or uint8 output, got {dtype or node.get('output_dtype', 0)}"
        )
    axis = _axis(node, _rank(value))
    params = read_params(node, args[1], zero_point, dtype=dtype, axis=axis)
    if params.axis is not None:
        _check_length(node, params, _shape(value))
    return quantize(value, params, node.unrounded)


def _dequantized(node: Node, data: Array, params: Params) -> Dequantized:
    if params.axis is not None:
        _check_length(node, params, data.shape)
    return Dequantized(data=data, params=params)


def _check_length(node: Node, params: Params, shape: tuple[int, ...]) -> None:
    axis = params.axis
    if axis is None or axis >= len(shape) or shape[axis] != params.scale.size:
        raise node.fail(
            f"needs as many scales as axis {axis} of shape {shape}, got {params.scale.size}"
        )


def _axis(node: Node, ndim: int) -> int | None:
    """Axis of per-channel parameters; None where the tensor is too small to have it."""
    axis = node.get("axis", 1)
    axis = axis + ndim if axis < 0 else axis
    return axis if 0 <= axis < ndim else None


def _refuse_blocks(node: Node) -> None:
    if node.get("block_size", 0):
        raise node.fail(
            f"needs scales per tensor or axis, got block_size {node.get('block_size', 0)}"
        )


def _shape(value: Value) -> tuple[int, ...]:
    if isinstance(value, np.ndarray):
        return value.shape
    return value.data.shape if isinstance(value, Dequantized) else value.total.shape


def _rank(value: Value) -> int:
    return len(_shape(value))


def _kind(value: Value | None) -> str:
    return str(value.dtype) if isinstance(value, np.ndarray) else type(value).__name__


OPERATORS = {
    ("", "QuantizeLinear"): _quantize_linear,
    ("", "DequantizeLinear"): _dequantize_linear,
    ("com.microsoft", "QuantizeLinear"): _quantize_linear,
    ("com.microsoft", "DequantizeLinear"): _dequantize_linear,
}
