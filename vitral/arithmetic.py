"""The arithmetic of requantisation: its definition in exact integers, vectorised with numpy.

Every implementation (reference, functional simulator, RTL, CPU operators, the compiler's proofs)
agrees with `requantize` on every input.
"""

import numpy as np
import numpy.typing as npt

from vitral.isa import Rounding

__all__ = ["fl32_parameters", "requantize"]

Int64 = npt.NDArray[np.int64]

_FLOAT_BITS = 24
_DOUBLE_FIRST_SHIFT = 31
_VANISHING_SHIFT = 64  # |product| < 2**63, so a shift of 64 leaves less than one half


def requantize(
    acc: npt.ArrayLike,
    *,
    bias: npt.ArrayLike = 0,
    mult: npt.ArrayLike,
    shift: npt.ArrayLike,
    zero_point: npt.ArrayLike = 0,
    low: npt.ArrayLike = -128,
    high: npt.ArrayLike = 127,
    rounding: Rounding,
) -> Int64:
    """clamp(round((acc + bias) * mult / 2**shift) + zero_point, low, high).

    All arguments broadcast against each other. `acc` and `bias` are int32 values, `mult` is below
    2**31 (below 2**24 for FLOAT32), `shift` is 0..255. The sum (33 bits) and the product (64 bits)
    are exact. Clamping is ``min(max(y, low), high)``.
    """
    total = np.asarray(acc, np.int64) + np.asarray(bias, np.int64)
    total, multiplier, amount = np.broadcast_arrays(
        total, np.asarray(mult, np.int64), np.asarray(shift, np.int64)
    )
    if rounding is Rounding.FLOAT32:
        rounded = _round_float32(total, multiplier, amount)
    else:
        product = total * multiplier
        if rounding is Rounding.HALF_EVEN:
            rounded = _half_even(product, amount)
        elif rounding is Rounding.HALF_UP:
            rounded = _half_up(product, amount)
        else:
            rounded = _double(product, amount)
    result = rounded + np.asarray(zero_point, np.int64)
    return np.minimum(np.maximum(result, low), high)


def fl32_parameters(multiplier: npt.ArrayLike) -> tuple[npt.NDArray[np.uint32], Int64]:
    """`mult` (24 bits) and `shift` whose quotient is exactly the float32 `multiplier`.

    Multipliers are positive and finite. From 2**23 on, every accumulator but 0 saturates any 16-bit
    range, so they are replaced by 2**23; those too small for a shift of 255 by 0.
    """
    fraction, exponent = np.frexp(np.asarray(multiplier, np.float32))
    mult = (fraction.astype(np.float64) * (1 << _FLOAT_BITS)).astype(np.uint32)
    shift = _FLOAT_BITS - exponent.astype(np.int64)
    mult = np.where(shift < 0, np.uint32(1 << 23), np.where(shift > 255, np.uint32(0), mult))
    return mult.astype(np.uint32), np.clip(shift, 0, 255)


def _split(magnitude: Int64, shift: Int64) -> tuple[Int64, Int64, Int64]:
    """Integer part, remainder and one half (in units of the remainder); 0 from 2**64 on."""
    amount = np.minimum(shift, _VANISHING_SHIFT - 1)
    whole = np.where(shift >= _VANISHING_SHIFT, 0, magnitude >> amount)
    rest = magnitude & ~(np.int64(-1) << amount)
    half = np.where(amount > 0, np.int64(1) << np.maximum(amount - 1, 0), 1)
    rest = np.where(shift >= _VANISHING_SHIFT, 0, rest)
    return whole, rest, half


def _half_even(product: Int64, shift: Int64) -> Int64:
    whole, rest, half = _split(np.abs(product), shift)
    up = (rest > half) | ((rest == half) & (whole & 1 == 1))
    return np.sign(product) * (whole + up)


def _half_up(product: Int64, shift: Int64) -> Int64:
    whole, rest, half = _split(np.abs(product), shift)
    up = (rest > half) | ((rest == half) & (product > 0))
    return np.sign(product) * (whole + up)


def _half_away(value: Int64, shift: Int64) -> Int64:
    whole, rest, half = _split(np.abs(value), shift)
    return np.sign(value) * (whole + (rest >= half))


def _double(product: Int64, shift: Int64) -> Int64:
    first = np.minimum(shift, _DOUBLE_FIRST_SHIFT)
    return _half_away(_half_up(product, first), shift - first)


def _round_float32(total: Int64, mult: Int64, shift: Int64) -> Int64:
    magnitude = _round_to_significant(np.abs(total))
    whole, rest, half = _split(magnitude * mult, shift)
    log2 = np.where(whole > 0, np.frexp(whole.astype(np.float64))[1] - 1, -1)
    # |f - 1/2| <= 2**(k - 24), in units of the remainder: one half is 2**(shift - 1)
    distance = np.abs(rest - half)
    scale = np.minimum(shift, _VANISHING_SHIFT - 1) + log2 - _FLOAT_BITS
    tolerance = np.where(scale >= 0, np.int64(1) << np.clip(scale, 0, 62), 0)
    tie = (distance <= tolerance) & (shift > 0)
    up = np.where(tie, whole & 1 == 1, rest > half)
    return np.sign(total) * (whole + up)


def _round_to_significant(magnitude: Int64) -> Int64:
    """To 24 significant bits, ties to even, as the conversion of an integer to float32 does."""
    excess = np.maximum(np.frexp(magnitude.astype(np.float64))[1] - _FLOAT_BITS, 0).astype(np.int64)
    return _half_even(magnitude, excess) << excess
