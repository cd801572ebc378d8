"""Type of an operator's result from the types of its arguments."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vitral.compiler.ir.call import Call
from vitral.compiler.ir.operators import Misfit, operator
from vitral.compiler.ir.operators.operator import need
from vitral.compiler.ir.ops import (
    AccelAdd,
    AccelConv2d,
    AccelMaxPool2d,
    AveragePool,
    Binary,
    ChannelTable,
    CodeOp,
    Concat,
    Conv2d,
    Dequantize,
    FlipSign,
    FloatOp,
    Interpolate,
    MatMul,
    MaxPool,
    Op,
    Patches,
    Pick,
    Quantize,
    Requantizing,
    Reshape,
    Table,
    Transpose,
)
from vitral.compiler.ir.types import QUANTIZED, TensorType
from vitral.compiler.ir.vta import VtaOp
from vitral.errors import CompileError

__all__ = ["infer"]

Types = Sequence[TensorType]


def infer(op: Op, args: Types) -> TensorType:
    """The result's type; CompileError naming the node when the arguments do not fit."""
    try:
        return _RULES[type(op)](op, args)
    except Misfit as error:
        raise CompileError(f"node {op.name!r} ({op.kind}): {error}") from None


def _call(op: Call, args: Types) -> TensorType:
    return operator(op.op).result(op.attrs, args)


def _quantize(op: Quantize, args: Types) -> TensorType:
    need(args[0].dtype == "float32", f"needs float32, got {args[0].dtype}")
    return replace(args[0], dtype=op.quant.dtype)


def _dequantize(op: Dequantize, args: Types) -> TensorType:
    need(args[0].dtype == op.quant.dtype, f"needs {op.quant.dtype}, got {args[0].dtype}")
    return replace(args[0], dtype="float32")


def _flip_sign(op: FlipSign, args: Types) -> TensorType:
    _codes(args[0])
    return replace(args[0], dtype="uint8" if args[0].dtype == "int8" else "int8")


def _table(op: Table, args: Types) -> TensorType:
    _codes(args[0])
    need(op.table.shape == (256,), f"needs 256 table entries, got {op.table.shape}")
    return replace(args[0], dtype=str(op.table.dtype))


def _channel_table(op: ChannelTable, args: Types) -> TensorType:
    _codes(args[0])
    shape = args[0].shape
    fits = 0 <= op.axis < len(shape) and op.table.shape == (shape[op.axis], 256)
    need(fits, f"needs 256 entries for each index of axis {op.axis}, got {op.table.shape}")
    return replace(args[0], dtype=str(op.table.dtype))


def _codes(type_: TensorType) -> None:
    need(type_.dtype in QUANTIZED, f"needs int8 or uint8, got {type_.dtype}")


def _rounded(op: Requantizing, shape: Sequence[int]) -> TensorType:
    if op.sums:
        return TensorType(tuple(shape), "int32")
    return TensorType(tuple(shape), "float32" if op.y_quant is None else op.y_quant.dtype)


def _windows(
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> tuple[int, int]:
    result: list[int] = []
    for i in range(2):
        extent = (kernel[i] - 1) * dilations[i] + 1
        room = size[i] + pads[i] + pads[2 + i] - extent
        need(room >= 0, f"needs a padded input of at least {extent}, got {room + extent}")
        result.append(room // strides[i] + 1)
    return result[0], result[1]


def _conv_shape(op: Conv2d | AccelConv2d, x: TensorType) -> tuple[int, ...]:
    need(len(x.shape) == 4, f"needs a rank 4 input, got shape {list(x.shape)}")
    outputs, inputs, *kernel = op.weight.shape
    need(
        op.group > 0 and x.shape[1] == inputs * op.group and outputs % op.group == 0,
        f"needs channels that fit group {op.group}, got input channels {x.shape[1]}"
        f" and weights {list(op.weight.shape)}",
    )
    spatial = _windows(x.shape[2:], kernel, op.strides, op.pads, op.dilations)
    return (x.shape[0], outputs, *spatial)


def _conv2d(op: Conv2d, args: Types) -> TensorType:
    need(args[0].dtype == op.x_quant.dtype, f"needs {op.x_quant.dtype}, got {args[0].dtype}")
    return _rounded(op, _conv_shape(op, args[0]))


def _accel_conv2d(op: AccelConv2d, args: Types) -> TensorType:
    _int8(args)
    return TensorType(_conv_shape(op, args[0]), "int8")


def _accel_add(op: AccelAdd, args: Types) -> TensorType:
    _int8(args)
    a, b = (list(t.shape) for t in args)
    need(a == b and len(a) == 4, f"needs two inputs of one shape of rank 4, got {a} and {b}")
    return args[0]


def _int8(args: Types) -> None:
    wrong = [t.dtype for t in args if t.dtype != "int8"]
    need(not wrong, f"needs int8, got {', '.join(wrong)}")


def _matmul(op: MatMul, args: Types) -> TensorType:
    a, b = args
    need(min(len(a.shape), len(b.shape)) >= 2, f"needs matrices, got {a.shape} and {b.shape}")
    inner = a.shape[-1] == b.shape[-2]
    need(inner, f"needs equal inner sizes, got {list(a.shape)} and {list(b.shape)}")
    batch = _broadcast(a.shape[:-2], b.shape[:-2])
    return _rounded(op, (*batch, a.shape[-2], b.shape[-1]))


def _binary(op: Binary, args: Types) -> TensorType:
    return _rounded(op, _broadcast(args[0].shape, args[1].shape))


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise Misfit(f"needs shapes that broadcast, got {list(a)} and {list(b)}") from None


def _average_pool(op: AveragePool, args: Types) -> TensorType:
    x = args[0]
    need(len(x.shape) == 4, f"needs a rank 4 input, got shape {list(x.shape)}")
    top, left, bottom, right = op.pads
    pads = (top, left, bottom + op.excess[0], right + op.excess[1])
    spatial = _windows(x.shape[2:], op.kernel, op.strides, pads, op.dilations)
    return _rounded(op, (*x.shape[:2], *spatial))


def _accel_max_pool(op: AccelMaxPool2d, args: Types) -> TensorType:
    _int8(args)
    return _max_pool(op, args)


def _max_pool(op: MaxPool | AccelMaxPool2d | Patches, args: Types) -> TensorType:
    x = args[0]
    need(len(x.shape) == 4, f"needs a rank 4 input, got shape {list(x.shape)}")
    spatial = _windows(x.shape[2:], op.kernel, op.strides, op.pads, op.dilations)
    return replace(x, shape=(*x.shape[:2], *spatial))


def _concat(op: Concat, args: Types) -> TensorType:
    first = args[0]
    need(0 <= op.axis < len(first.shape), f"needs an axis of {list(first.shape)}, got {op.axis}")
    rest = {(t.dtype, len(t.shape), t.shape[: op.axis], t.shape[op.axis + 1 :]) for t in args}
    shown = ", ".join(str(t) for t in args)
    need(len(rest) == 1, f"needs inputs that differ in axis {op.axis} only, got {shown}")
    joined = sum(t.shape[op.axis] for t in args)
    return replace(first, shape=(*first.shape[: op.axis], joined, *first.shape[op.axis + 1 :]))


def _reshape(op: Reshape, args: Types) -> TensorType:
    result = replace(args[0], shape=op.shape)
    need(
        result.size == args[0].size,
        f"needs {args[0].size} elements as in {list(args[0].shape)}, got shape {list(op.shape)}",
    )
    return result


def _transpose(op: Transpose, args: Types) -> TensorType:
    shape = args[0].shape
    fits = sorted(op.perm) == list(range(len(shape)))
    need(fits, f"needs a permutation of {len(shape)} axes, got {list(op.perm)}")
    return replace(args[0], shape=tuple(shape[i] for i in op.perm))


def _pick(op: Pick, args: Types) -> TensorType:
    shape = list(args[0].shape)
    for axis, index in zip(op.axes, op.indices, strict=True):
        need(0 <= axis < len(shape), f"needs an axis of {list(args[0].shape)}, got {axis}")
        good = index.size and index.min() >= -1 and index.max() < shape[axis]
        need(bool(good), f"needs indices below {shape[axis]} along axis {axis}, got {index}")
        shape[axis] = index.size
    return replace(args[0], shape=tuple(shape))


def _patches(op: Patches, args: Types) -> TensorType:
    _int8(args)
    n, channels, *spatial = _max_pool(op, args).shape
    return TensorType((n, channels * op.kernel[0] * op.kernel[1], *spatial), "int8")


def _float(op: FloatOp, args: Types) -> TensorType:
    """Codes are no numbers: what they mean has to be told before a float operator reads them."""
    wrong = [t.dtype for t in args if t.dtype in QUANTIZED]
    need(not wrong, f"needs float32 or wide integers, got {', '.join(wrong)}")
    return TensorType(op.shape, op.dtype)


def _interpolate(op: Interpolate, args: Types) -> TensorType:
    need(args[0].dtype == op.x_quant.dtype, f"needs {op.x_quant.dtype}, got {args[0].dtype}")
    shape = list(args[0].shape)
    for axis, index in zip(op.axes, op.indices, strict=True):
        good = index.min() >= 0 and index.max() < shape[axis]
        need(bool(good), f"needs indices below {shape[axis]} along axis {axis}, got others")
        shape[axis] = len(index)
    return _rounded(op, shape)


def _code_op(op: CodeOp, args: Types) -> TensorType:
    for arg in args:
        _codes(arg)
    return op.type


def _vta(op: VtaOp, args: Types) -> TensorType:
    need(all(arg.dtype == "int8" for arg in args), "needs int8 arguments, got others")
    shapes = [arg.shape for arg in args]
    wanted = list(op.layer.source_shapes)
    need(shapes == wanted, f"needs arguments of shapes {wanted}, got {shapes}")
    return TensorType(op.layer.out_shape, "int8")


_RULES: dict[type[Op], Callable[[Any, Types], TensorType]] = {
    Quantize: _quantize,
    Dequantize: _dequantize,
    FlipSign: _flip_sign,
    Table: _table,
    ChannelTable: _channel_table,
    Conv2d: _conv2d,
    AccelConv2d: _accel_conv2d,
    AccelMaxPool2d: _accel_max_pool,
    AccelAdd: _accel_add,
    MatMul: _matmul,
    Binary: _binary,
    AveragePool: _average_pool,
    MaxPool: _max_pool,
    Concat: _concat,
    Reshape: _reshape,
    Transpose: _transpose,
    Patches: _patches,
    Pick: _pick,
    FloatOp: _float,
    Interpolate: _interpolate,
    CodeOp: _code_op,
    Call: _call,
    VtaOp: _vta,
}
