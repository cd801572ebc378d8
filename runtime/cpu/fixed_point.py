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


OPERATORS = {"requantize_fixed": _requantize_fixed}
"""requantize_fixed(total, mult, shift)."""
