"""Steps that change one value's codes, or move its elements."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import (
    ChannelTable,
    CodeOp,
    Concat,
    Dequantize,
    FlipSign,
    FloatOp,
    Op,
    Pick,
    Quantize,
    Reshape,
    Table,
    Transpose,
)
from vitral.compiler.place.step_writer import StepWriter

__all__ = ["WRITERS", "affine"]

Array = npt.NDArray[Any]


def _quantize(writer: StepWriter, op: Quantize) -> None:
    arrays = affine(op.quant)
    if op.tflite is not None:
        writer.step(op, "quantize_tflite", op.inputs, arrays=arrays, law=op.tflite)
        return
    writer.step(op, "quantize", op.inputs, arrays=arrays, axis=op.quant.axis)


def _dequantize(writer: StepWriter, op: Dequantize) -> None:
    arrays = affine(op.quant)
    writer.step(op, "dequantize", op.inputs, arrays=arrays, axis=op.quant.axis)


def affine(quant: Quant) -> dict[str, Array]:
    return {"scale": quant.scales, "zero_point": quant.zeros}


def _flip_sign(writer: StepWriter, op: FlipSign) -> None:
    writer.step(op, "flip_sign", op.inputs)


def _table(writer: StepWriter, op: Table) -> None:
    exact = op.table.dtype == np.int8
    writer.step(op, "table", op.inputs, arrays={"table": op.table}, exact=exact)


def _channel_table(writer: StepWriter, op: ChannelTable) -> None:
    exact = op.table.dtype == np.int8
    arrays = {"table": op.table}
    writer.step(op, "channel_table", op.inputs, arrays=arrays, exact=exact, axis=op.axis)


def _concat(writer: StepWriter, op: Concat) -> None:
    writer.step(op, "concat", op.inputs, axis=op.axis)


def _reshape(writer: StepWriter, op: Reshape) -> None:
    writer.step(op, "reshape", op.inputs, shape=op.shape)


def _transpose(writer: StepWriter, op: Transpose) -> None:
    writer.step(op, "transpose", op.inputs, perm=op.perm)


def _pick(writer: StepWriter, op: Pick) -> None:
    type_ = writer.graph.types[op.output]
    fill = float(op.fill) if type_.dtype == "float32" else int(op.fill)
    arrays = {f"indices{axis}": index for axis, index in zip(op.axes, op.indices, strict=True)}
    exact = type_.dtype != "float32"
    writer.step(op, "pick", op.inputs, arrays=dict(arrays), exact=exact, axes=op.axes, fill=fill)


def _float(writer: StepWriter, op: FloatOp) -> None:
    name = f"float.{op.function}"
    writer.step(op, name, op.inputs, exact=False, cost=op.macs, **op.attributes)


def _code_op(writer: StepWriter, op: CodeOp) -> None:
    writer.step(op, op.function, op.inputs, arrays=op.arrays, **op.attributes)


WRITERS: Mapping[type[Op], Callable[[StepWriter, Any], None]] = {
    Quantize: _quantize,
    Dequantize: _dequantize,
    FlipSign: _flip_sign,
    Table: _table,
    ChannelTable: _channel_table,
    Concat: _concat,
    Reshape: _reshape,
    Transpose: _transpose,
    Pick: _pick,
    FloatOp: _float,
    CodeOp: _code_op,
}
