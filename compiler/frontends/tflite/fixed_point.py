"""The integer arithmetic of TFLite's reference kernels.

A real multiplier is a 31-bit fraction and a power of two. Double rounding multiplies with rounding
to the high half (ties up) and shifts with rounding (ties away from zero); single rounding shifts
the whole product once (ties up). Both are modes of the requantiser.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import requantize
from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import Bounds
from vitral.compiler.ir.rounding import Thresholds
from vitral.isa import Rounding

__all__ = [
    "activation_bounds",
    "activation_codes",
    "activation_range",
    "find_thresholds",
    "multiply",
    "multiply_q8",
    "quantize_multiplier",
    "round_half_away",
]

Int64 = npt.NDArray[np.int64]

_FRACTION_BITS = 31
_SMALLEST_EXPONENT = -31
_LARGEST_EXPONENT = 30
_INT32 = np.iinfo(np.int32)
_ACTIVATIONS = {0: (None, None), 1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""NONE, RELU, RELU_N1_TO_1 and RELU6 of the schema: real bounds."""


def quantize_multiplier(
    multiplier: npt.ArrayLike,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """(mult, shift) with multiplier = mult / 2**shift, mult rounded to 31 bits, ties away.

    Multipliers are float64 >= 0; those below 2**-32 become 0. ValueError from 2**30 on.
    """
    fraction, exponent = np.frexp(np.asarray(multiplier, np.float64))
    whole = np.floor(fraction * (1 << _FRACTION_BITS) + 0.5).astype(np.int64)
    full = whole == 1 << _FRACTION_BITS
    whole, exponent = np.where(full, whole >> 1, whole), exponent + full
    whole = np.where(exponent < _SMALLEST_EXPONENT, 0, whole)
    exponent = np.where(exponent < _SMALLEST_EXPONENT, 0, exponent)
    if (exponent > _LARGEST_EXPONENT).any():
        raise ValueError(f"scales whose quotient is below 2**30, got {np.max(multiplier):g}")
    return whole.astype(np.uint32), (_FRACTION_BITS - exponent).astype(np.uint8)


def multiply(x: npt.ArrayLike, multiplier: float, rounding: Rounding) -> Int64:
    """x * multiplier by TFLite's rule, for int32 values x."""
    mult, shift = quantize_multiplier(multiplier)
    return requantize(x, mult=mult, shift=shift, low=_INT32.min, high=_INT32.max, rounding=rounding)


def multiply_q8(x: Int64, multiplier: float) -> Int64:
    """x * multiplier as XNNPACK's kernels do it: the multiplier in units of 1/256, ties up."""
    mult = int(np.rint(np.float32(256) * np.float32(multiplier)))
    return (x * mult + (1 << 7)) >> 8


def round_half_away(value: float) -> int:
    """The nearest integer, ties away from zero."""
    return int(np.sign(value) * np.floor(np.abs(value) + 0.5))


def activation_range(activation: int) -> tuple[float | None, float | None]:
    """Real bounds of a fused activation; ValueError for those that clamp nothing."""
    if activation not in _ACTIVATIONS:
        raise ValueError(f"a fused activation RELU, RELU6 or RELU_N1_TO_1, got {activation}")
    return _ACTIVATIONS[activation]


def activation_bounds(activation: int) -> Bounds:
    """The same as bounds of an operator."""
    low, high = activation_range(activation)
    if low is None and high is None:
        return ()
    return ((-np.inf if low is None else low, np.inf if high is None else high),)


def activation_codes(quant: Quant, activation: int) -> tuple[int, int]:
    """Lowest and highest code of a result behind a fused activation, ties away from 0."""
    bounds = activation_range(activation)
    low, high = (None if b is None else _code(quant, b) for b in bounds)
    lowest = quant.low if low is None else max(quant.low, low)
    return lowest, quant.high if high is None else min(quant.high, high)


def _code(quant: Quant, real: float) -> int:
    return quant.tensor_zero + round_half_away(float(np.float32(real) / quant.scales))


def find_thresholds(
    law: Callable[[Int64, int], Int64], counts: npt.ArrayLike, x_zero: int, clamp: tuple[int, int]
) -> Thresholds:
    """Where a law of window sums, which never falls, takes its steps.

    `law(sums, count)` gives codes for sums of `count` int8 codes less `x_zero`.
    """
    low, high = clamp
    targets = np.arange(low + 1, high + 1, dtype=np.int64)
    rows: list[Int64] = []
    for count in np.asarray(counts, np.int64).tolist():
        below = np.full(targets.shape, (-128 - x_zero) * count - 1, np.int64)
        above = np.full(targets.shape, (127 - x_zero) * count + 1, np.int64)
        while (above - below > 1).any():
            middle = (below + above) >> 1
            good = law(middle, count) >= targets
            above, below = np.where(good, middle, above), np.where(good, below, middle)
        rows.append(above)
    counts = np.asarray(counts, np.int64)
    return Thresholds(counts=counts, rows=np.array(rows).reshape(len(counts), -1), low=low)
