"""`annotation.simulated_quantize`: what quantization does to a value, in float32."""

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.operators.arithmetic import round_away
from vitral.compiler.ir.operators.operator import Arrays, Attribute, Attrs, Operator, Types, need
from vitral.compiler.ir.types import TensorType

__all__ = ["OPERATORS"]

_KINDS = ("input", "weight", "activation")


def _type(attrs: Attrs, args: Types) -> TensorType:
    need(attrs["kind"] in _KINDS, f"needs kind among {', '.join(_KINDS)}, got {attrs['kind']!r}")
    need(attrs["rounding"] == "round", f"needs rounding 'round', got {attrs['rounding']!r}")
    floats = all(arg.dtype == "float32" for arg in args)
    scalars = all(arg.shape == () for arg in args[1:])
    shown = ", ".join(map(str, args))
    need(floats and scalars, f"needs a float32 value and float32 scalars, got {shown}")
    return args[0]


def _compute(attrs: Attrs, args: Arrays) -> npt.NDArray[np.float32]:
    need(len(args) == 4, "needs a scale and limits: calibrate the graph first")
    x, scale, low, high = args
    codes = round_away(np.clip(x / scale, low, high))
    return (codes * scale).astype(np.float32)


OPERATORS = (
    Operator(
        name="annotation.simulated_quantize",
        arity=range(1, 5, 3),
        attributes={
            "kind": Attribute("string"),
            "sign": Attribute("bool", True),
            "rounding": Attribute("string", "round"),
        },
        relation=_type,
        compute=_compute,
    ),
)
"""Arguments: the value, and once it is calibrated dom_scale, clip_min and clip_max."""
