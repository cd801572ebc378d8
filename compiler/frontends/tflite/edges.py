"""QUANTIZE and DEQUANTIZE."""

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.tflite.builder import Value
from vitral.compiler.frontends.tflite.fixed_point import multiply, multiply_q8
from vitral.compiler.frontends.tflite.model import TensorRecord
from vitral.compiler.frontends.tflite.scope import Scope, hint
from vitral.compiler.ir import QUANTIZED, Quant
from vitral.compiler.ir.ops import Dequantize, Quantize, Table

__all__ = ["OPERATORS"]


def _quantize(scope: Scope) -> Value:
    """float32 to codes, or codes to codes of another scale.

    The reference kernel rounds ties away from 0, XNNPACK multiplies with the inverse scale.
    """
    x, y = scope.tensor(0), _quant(scope, scope.output)
    value = scope.value(0)
    if x.dtype == "float32":
        law = "inverse" if scope.rounding == "xnnpack" else "away"
        return scope.emit_like(
            value,
            Quantize(
                name=scope.name,
                inputs=(value.name,),
                output=scope.like(value),
                quant=y,
                tflite=law,
            ),
        )
    source = _quant(scope, x)
    centred = source.codes().astype(np.int64) - source.tensor_zero
    codes = np.clip(_rescaled(scope, source, y, centred) + y.tensor_zero, y.low, y.high)
    op = Table(
        name=scope.name,
        inputs=(value.name,),
        output=scope.like(value),
        table=codes.astype(y.dtype),
        steps=(centred * (source.tensor_scale / y.tensor_scale)).astype(np.float64),
    )
    return scope.emit_like(value, op)


def _rescaled(
    scope: Scope, source: Quant, y: Quant, centred: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    if scope.rounding == "xnnpack":
        return multiply_q8(centred, float(source.scales / y.scales))
    try:
        return multiply(centred, source.tensor_scale / y.tensor_scale, scope.mode)
    except ValueError as error:
        raise scope.fail(f"needs {error}") from None


def _dequantize(scope: Scope) -> Value:
    value, quant = scope.value(0), _quant(scope, scope.tensor(0))
    op = Dequantize(name=scope.name, inputs=(value.name,), output=scope.like(value), quant=quant)
    return scope.emit_like(value, op)


def _quant(scope: Scope, tensor: TensorRecord) -> Quant:
    """int8 or uint8, as stand at the edges of a network."""
    if tensor.dtype not in QUANTIZED or tensor.quant is None or tensor.quant.axis is not None:
        raise scope.fail(
            f"needs int8 or uint8 with one scale as tensor {tensor.name!r}, got {tensor.dtype}"
            f"{hint(tensor)}"
        )
    return tensor.quant


OPERATORS = {"QUANTIZE": _quantize, "DEQUANTIZE": _dequantize}
