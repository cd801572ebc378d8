"""exp(-x) as gemmlowp's fixed-point arithmetic gives it, for TFLite's softmax."""

import numpy as np
import numpy.typing as npt

from vitral.runtime.cpu.softmax import high_product, shift_left, shift_right

__all__ = ["fixed_powers"]

Int64 = npt.NDArray[np.int64]

_INTEGER_BITS = 5
_FRACTION_BITS = 31 - _INTEGER_BITS
_ONE = (1 << 31) - 1
_QUARTER = 1 << (_FRACTION_BITS - 2)
_EXP_EIGHTH = 1895147668
"""exp(-1/8) in units of 2**-31."""
_THIRD = 715827883
_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-2**k) for k = -2..4, in units of 2**-31."""


def fixed_powers(scale: float) -> Int64:
    """exp(-scale · d) in units of 2**-31 for differences d = 0..255 of codes; int64 (256,).

    `scale` is input scale times beta. Differences beyond 31 / scale give 0.
    """
    largest = float((1 << 31) - 1)
    mult, shift = (
        int(v) for v in _multiplier_above_one(min(scale * (1 << _FRACTION_BITS), largest))
    )
    differences = -np.arange(256, dtype=np.int64)
    reach = ((1 << _INTEGER_BITS) - 1) * (1 << _FRACTION_BITS) // (1 << shift)
    near = differences >= -reach
    scaled = high_product(np.where(near, differences, 0) << shift, mult)
    return np.where(near, _negative_exp(scaled), 0)


def _multiplier_above_one(real: float) -> tuple[int, int]:
    """(mult, left shift) with real = mult · 2**left / 2**31."""
    fraction, exponent = np.frexp(real)
    mult = int(np.floor(fraction * (1 << 31) + 0.5))
    return (mult, int(exponent)) if mult < 1 << 31 else (mult >> 1, int(exponent) + 1)


def _negative_exp(a: Int64) -> Int64:
    """exp(a) of a <= 0 in units of 2**-26: a quarter's series times powers for the bits above."""
    inside = (a & (_QUARTER - 1)) - _QUARTER
    result = _exp_quarter(shift_left(inside, _INTEGER_BITS))
    remainder = inside - a
    for bit, power in enumerate(_POWERS, _FRACTION_BITS - 2):
        result = np.where(remainder & (1 << bit), high_product(result, power), result)
    return np.where(a == 0, _ONE, result)


def _exp_quarter(a: Int64) -> Int64:
    """exp(a) of -1/4 <= a < 0 in units of 2**-31, by a series of four terms around -1/8."""
    x = a + (1 << 28)
    square = high_product(x, x)
    cube, fourth = high_product(square, x), high_product(square, square)
    tail = high_product(shift_right(fourth, 2) + cube, _THIRD) + square
    return _EXP_EIGHTH + high_product(x + shift_right(tail, 1), _EXP_EIGHTH)
