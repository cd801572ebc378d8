"""QUANTIZE and DEQUANTIZE."""

import numpy as np

from vitral.compiler.frontends.tflite.builder import Value
from vitral.compiler.frontends.tflite.fixed_point import multiply
from vitral.compiler.frontends.tflite.model import TensorRecord
from vitral.compiler.frontends.tflite.scope import Scope
from vitral.compiler.ir import QUANTIZED, Quant
from vitral.compiler.ir.ops import Dequantize, Quantize, Table

__all__ = ["OPERATORS"]


def _quantize(scope: Scope) -> Value:
    """float32 to codes, or codes to codes of another scale."""
    x, y = scope.tensor(0), _quant(scope, scope.output)
    value = scope.value(0)
    if x.dtype == "float32":
        op = Quantize(name=scope.name, inputs=(value.name,), output=scope.like(value), quant=y)
        return scope.emit_like(value, op)
    source = _quant(scope, x)
    centred = source.codes().astype(np.int64) - source.tensor_zero
    ratio = float(np.float64(source.tensor_scale) / np.float64(y.tensor_scale))
    codes = np.clip(multiply(centred, ratio, scope.mode) + y.tensor_zero, y.low, y.high)
    op = Table(
        name=scope.name,
        inputs=(value.name,),
        output=scope.like(value),
        table=codes.astype(y.dtype),
        steps=(centred * ratio).astype(np.float64),
    )
    return scope.emit_like(value, op)


def _dequantize(scope: Scope) -> Value:
    value, quant = scope.value(0), _quant(scope, scope.tensor(0))
    op = Dequantize(name=scope.name, inputs=(value.name,), output=scope.like(value), quant=quant)
    return scope.emit_like(value, op)


def _quant(scope: Scope, tensor: TensorRecord) -> Quant:
    """int8 or uint8, as stand at the edges of a network."""
    if tensor.dtype not in QUANTIZED or tensor.quant is None or tensor.quant.axis is not None:
        raise scope.fail(
            f"needs int8 or uint8 with one scale as tensor {tensor.name!r}, got {tensor.dtype}"
        )
    return tensor.quant


OPERATORS = {"QUANTIZE": _quantize, "DEQUANTIZE": _dequantize}
