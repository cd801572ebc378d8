"""Operators whose law is the arithmetic of TFLite's integer kernels."""

from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import requantize
from vitral.isa import Rounding

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]


def _requantize_fixed(
    total: Array,
    mult: Array,
    shift: Array,
    *,
    axis: int,
    rounding: str,
    zero_point: int,
    low: int,
    high: int,
) -> npt.NDArray[np.int8]:
    """clamp(round(total * mult / 2**shift) + zero_point, low, high) as int8.

    `mult` and `shift` are as long as `axis`; `rounding` names a mode of the requantiser.
    """
    along = [-1 if i == axis % total.ndim else 1 for i in range(total.ndim)]
    result = requantize(
        total,
        mult=mult.reshape(along),
        shift=shift.reshape(along),
        zero_point=zero_point,
        low=low,
        high=high,
        rounding=Rounding[rounding],
    )
    return result.astype(np.int8)


def _quantize_tflite(
    reals: Array, scale: Array, zero_point: Array, *, law: str
) -> npt.NDArray[np.int8]:
    """float32 to int8 codes of one scale.

    `law` is "away": the float32 quotient, ties away from 0; or "inverse": the float32 product with
    1 / scale, ties to even. ValueError on NaN, for which no code exists.
    """
    with np.errstate(over="ignore", under="ignore"):
        if law == "away":
            steps = (reals / scale).astype(np.float64)
            rounded = np.sign(steps) * np.floor(np.abs(steps) + 0.5)
        else:
            rounded = np.rint(reals * (np.float32(1) / scale)).astype(np.float64)
    if np.isnan(rounded).any():
        raise ValueError("quantize needs numbers, got NaN in its input; check the data fed")
    return np.clip(rounded + zero_point, -128, 127).astype(np.int8)


OPERATORS = {"requantize_fixed": _requantize_fixed, "quantize_tflite": _quantize_tflite}
"""requantize_fixed(total, mult, shift) and quantize_tflite(real, scale, zero_point)."""
