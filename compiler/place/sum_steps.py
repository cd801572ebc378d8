"""Steps of sums: convolutions, matrix products, and operators of two quantized values."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.macs import macs
from vitral.compiler.ir.ops import (
    AccelAdd,
    AccelConv2d,
    AveragePool,
    Binary,
    Conv2d,
    MatMul,
    Op,
    Requantizing,
    Table,
)
from vitral.compiler.ir.rounding import FixedPoint
from vitral.compiler.passes.law import binary_codes, centred_weight, code_bounds, law_multiplier
from vitral.compiler.place.step_writer import StepWriter
from vitral.compiler.place.value_steps import affine
from vitral.compiler.place.window_steps import integer_average
from vitral.errors import CompileError

__all__ = ["WRITERS"]

Array = npt.NDArray[Any]
_LARGEST_MATMUL = (1 << 31) // (255 * 255)


def _conv2d(writer: StepWriter, op: Conv2d) -> None:
    total = _conv2d_sum(writer, op, op)
    multiplier = op.product_scale if op.y_quant is None else law_multiplier(op)
    _round_sum(writer, op, total, multiplier, axis=1)


def _conv2d_sum(writer: StepWriter, op: Conv2d | AccelConv2d, law: Conv2d) -> str:
    return writer.step(
        op,
        "conv2d_sum",
        op.inputs,
        output=_sum_name(op),
        arrays={"weight": centred_weight(law), "bias": law.bias},
        cost=macs(op, writer.graph),
        strides=op.strides,
        pads=op.pads,
        dilations=op.dilations,
        group=op.group,
        x_zero=law.x_quant.tensor_zero,
    )


def _sum_name(op: Op) -> str:
    return op.output if isinstance(op, Requantizing) and op.sums else f"{op.output}.sum"


def _accel_conv2d(writer: StepWriter, op: AccelConv2d) -> None:
    """The law itself, with the clamps that later passes have narrowed."""
    law, clamp = op.origin, _clamp(op)
    if isinstance(law, AveragePool):
        integer_average(writer, replace(law, inputs=op.inputs, output=op.output), clamp)
        return
    if isinstance(law, Table):
        _clamped_table(writer, op, law)
        return
    total = _conv2d_sum(writer, op, law)
    assert law.y_quant is not None
    if law.fixed is not None:
        _round_fixed(writer, op, total, law.fixed, law.y_quant.tensor_zero, clamp)
        return
    writer.step(
        op,
        "requantize",
        (total,),
        arrays={"multiplier": law_multiplier(law)},
        axis=1,
        zero_point=law.y_quant.tensor_zero,
        low=clamp[0],
        high=clamp[1],
    )


def _round_fixed(
    writer: StepWriter, op: Op, total: str, law: FixedPoint, zero: int, clamp: tuple[int, int]
) -> None:
    writer.step(
        op,
        "requantize_fixed",
        (total,),
        arrays={"mult": law.mult, "shift": law.shift},
        axis=1,
        rounding=law.rounding.name,
        zero_point=zero,
        low=clamp[0],
        high=clamp[1],
    )


def _accel_add(writer: StepWriter, op: AccelAdd) -> None:
    """The law itself, with the clamps that later passes have narrowed."""
    if isinstance(op.origin, Table):
        _clamped_table(writer, op, op.origin)
        return
    table = np.clip(_binary_table(op.origin), *_clamp(op)).astype(np.int8)
    writer.step(op, "binary_table", op.inputs, arrays={"table": table})


def _clamped_table(writer: StepWriter, op: AccelConv2d | AccelAdd, law: Table) -> None:
    table = np.clip(law.table, *_clamp(op)).astype(np.int8)
    writer.step(op, "table", op.inputs[:1], arrays={"table": table})


def _clamp(op: AccelConv2d | AccelAdd) -> tuple[int, int]:
    return int(op.params.low[0]), int(op.params.high[0])


def _matmul(writer: StepWriter, op: MatMul) -> None:
    inner = writer.graph.types[op.inputs[0]].shape[-1]
    if inner > _LARGEST_MATMUL:
        raise CompileError(
            f"node {op.name!r}: needs at most {_LARGEST_MATMUL} products in a sum that fits int32,"
            f" got {inner}; split the product"
        )
    total = writer.step(
        op,
        "matmul_sum",
        op.inputs,
        output=_sum_name(op),
        cost=macs(op, writer.graph),
        a_zero=op.a_quant.tensor_zero,
        b_zero=op.b_quant.zero_point[0],
    )
    scale = op.product_scale.reshape(-1)
    if op.y_quant is not None:
        with np.errstate(over="ignore", under="ignore"):
            scale = scale / np.float32(op.y_quant.tensor_scale)
    _round_sum(writer, op, total, scale, axis=-1)


def _round_sum(
    writer: StepWriter, op: Requantizing, total: str, multiplier: Array, *, axis: int
) -> None:
    """Codes of `y_quant` by the law, or float32, from exact sums, unless these are the result."""
    if op.sums:
        return
    if not np.isfinite(multiplier).all():
        raise CompileError(f"node {op.name!r}: needs scales whose quotient is a float32, got inf")
    arrays = {"multiplier": multiplier}
    if op.y_quant is None:
        writer.clamped(op, "scale", (total,), arrays=arrays, axis=axis)
        return
    low, high = code_bounds(op.y_quant, op.bounds)
    writer.step(
        op,
        "requantize",
        (total,),
        arrays=arrays,
        axis=axis,
        zero_point=op.y_quant.tensor_zero,
        low=low,
        high=high,
    )


def _binary(writer: StepWriter, op: Binary) -> None:
    quants = (op.a_quant, op.b_quant)
    if op.y_quant is not None:
        writer.step(op, "binary_table", op.inputs, arrays={"table": _binary_table(op)})
        return
    reals = tuple(
        writer.step(
            op,
            "dequantize",
            (source,),
            output=f"{op.output}.{side}",
            arrays=affine(quant),
            exact=False,
        )
        for side, source, quant in zip("ab", op.inputs, quants, strict=True)
    )
    writer.clamped(op, f"float.{op.function}", reals)


def _binary_table(op: Binary) -> npt.NDArray[np.int8]:
    """The result for all 65,536 pairs of codes, int8 (256, 256)."""
    assert op.y_quant is not None
    if op.table is not None:
        return op.table
    try:
        return binary_codes(op.function, op.a_quant, op.b_quant, op.y_quant, op.bounds)
    except ValueError:
        raise CompileError(
            f"node {op.name!r}: needs scales for which float32 holds both operands, got"
            f" {op.a_quant.tensor_scale:g} and {op.b_quant.tensor_scale:g}"
        ) from None


WRITERS: Mapping[type[Op], Callable[[StepWriter, Any], None]] = {
    Conv2d: _conv2d,
    AccelConv2d: _accel_conv2d,
    AccelAdd: _accel_add,
    MatMul: _matmul,
    Binary: _binary,
}
