"""SOFTMAX over the last axis."""

import numpy as np

from vitral.compiler.frontends.tflite.builder import Value
from vitral.compiler.frontends.tflite.exponential import fixed_powers
from vitral.compiler.frontends.tflite.scope import Scope
from vitral.compiler.ir import TensorType
from vitral.compiler.ir.ops import CodeOp

__all__ = ["OPERATORS"]

_RESULT = (1 / 256, -128)
"""Scale and zero point that the schema fixes for int8."""


def _softmax(scope: Scope) -> Value:
    """The reference kernel works in fixed point, XNNPACK and others with a table in float32."""
    x, y = scope.quant(0), scope.y_quant
    if (y.tensor_scale, y.tensor_zero) != _RESULT:
        raise scope.fail(f"needs a result of int8(1/256, -128), got {y}")
    scale = float(x.scales * np.float32(scope.number("Beta")))
    if not 0 < scale < np.inf:
        raise scope.fail(f"needs beta > 0, got {scope.number('Beta'):g}")
    value = scope.plain(0)
    if scope.rounding == "xnnpack":
        function, powers = "softmax_table", _float_powers(scale)
    else:
        function, powers = "softmax_fixed", fixed_powers(scale)
    return scope.emit_plain(
        CodeOp(
            name=scope.name,
            inputs=(value.name,),
            output=scope.name,
            function=function,
            type=TensorType(value.shape, "int8"),
            arrays={"powers": powers},
        )
    )


def _float_powers(scale: float) -> np.ndarray:
    exponents = np.float32(scale) * np.arange(256, dtype=np.float32)
    return np.exp(-exponents.astype(np.float64)).astype(np.float32)


OPERATORS = {"SOFTMAX": _softmax}
