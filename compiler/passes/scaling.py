"""Finds a multiplier for the requantiser with which known sums give known codes.

A sum t and its code fix t * m between two limits, so all of them together leave an interval of
multipliers m. With ties to even the limits are halves of odd integers. The float32 mode takes what
lies within half a unit of a float32 around such a half for a tie, so its limits lie that much
further out where the code is even, and further in where it is odd.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import requantize
from vitral.isa import Rounding

__all__ = [
    "Limits",
    "Scaling",
    "find_scaling",
    "find_weighted",
    "multiplier_range",
    "multipliers_within",
]

Float64 = npt.NDArray[np.floating]
"""float64."""
Int64 = npt.NDArray[np.int64]

_MULT_BITS = {Rounding.HALF_EVEN: 31, Rounding.FLOAT32: 24}
_LARGEST_SHIFT = 255
_FLOAT_BITS = 24
_LARGEST_WEIGHT = 127
_LARGEST_SUM = (1 << _FLOAT_BITS) - 1
"""Larger sums are rounded by the float32 mode before it scales them."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """How the requantiser scales a sum: round(sum * mult / 2**shift)."""

    mult: int
    shift: int
    rounding: Rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Limits:
    """What quotients must lie between to give `codes` (P,) after rounding, zero point and clamp.

    `rounding` is HALF_EVEN or FLOAT32; for the latter sums stay below 2**24 in magnitude.
    """

    codes: Int64
    zero_point: int
    low: int
    high: int
    rounding: Rounding = Rounding.HALF_EVEN

    @cached_property
    def lower(self) -> Float64:
        """Minus infinity where the clamp takes over."""
        whole = self.codes - self.zero_point
        limit = whole - 0.5 - self._reach(whole, whole - 0.5)
        return np.where(self.codes <= self.low, -np.inf, limit)

    @cached_property
    def upper(self) -> Float64:
        """Infinity where the clamp takes over."""
        whole = self.codes - self.zero_point
        limit = whole + 0.5 + self._reach(whole, whole + 0.5)
        return np.where(self.codes >= self.high, np.inf, limit)

    def _reach(self, whole: Int64, half: Float64) -> Float64 | float:
        """How far beyond `half` quotients still round to `whole`."""
        if self.rounding is Rounding.HALF_EVEN:
            return 0.0
        exponent = np.frexp(np.floor(np.abs(half)))[1] - 1  # -1 for 0, as the mode has it
        return np.where(whole % 2 == 0, 1, -1) * np.ldexp(1.0, exponent - _FLOAT_BITS)

    def part(self, index: npt.NDArray[np.intp]) -> "Limits":
        """The same for some of the sums."""
        return replace(self, codes=self.codes[index])

    def met(self, sums: Int64, scaling: Scaling) -> bool:
        """Whether the requantiser gives `codes` for `sums` (P,): the proof."""
        codes = requantize(
            sums,
            mult=scaling.mult,
            shift=scaling.shift,
            zero_point=self.zero_point,
            low=self.low,
            high=self.high,
            rounding=scaling.rounding,
        )
        return np.array_equal(codes, self.codes)


def find_scaling(sums: Int64, limits: Limits) -> Scaling | None:
    """A scaling that gives the codes for all `sums`, which is checked; None when none was found."""
    least, most = multiplier_range(sums.astype(np.float64), limits.lower, limits.upper)
    mult, shift = (int(v) for v in multipliers_within(least, most, limits.rounding))
    if mult < 0:
        return None
    while shift > 0 and mult and mult % 2 == 0:
        mult, shift = mult >> 1, shift - 1
    scaling = Scaling(mult=mult, shift=shift, rounding=limits.rounding)
    return scaling if limits.met(sums, scaling) else None


def find_weighted(sums: Int64, limits: Limits) -> tuple[int, Scaling] | None:
    """A weight 1..127 and a scaling that give the codes for weight * `sums`; None without one.

    Of a quotient such as 1/7, whose ties only the float32 mode finds, a float32 may be too coarse
    where one of 1/(7 · 73) = 1/511 is not.
    """
    scaling = find_scaling(sums, limits)
    if scaling is not None:
        return 1, scaling
    float32 = replace(limits, rounding=Rounding.FLOAT32)
    room = _LARGEST_SUM // max(1, int(np.abs(sums).max()))
    for weight in range(1, max(1, min(_LARGEST_WEIGHT, room)) + 1):
        scaling = find_scaling(weight * sums, float32)
        if scaling is not None:
            return weight, scaling
    return None


def multiplier_range(sums: Float64, lower: Float64, upper: Float64) -> tuple[Float64, Float64]:
    """The multipliers m >= 0 with lower <= sums * m <= upper.

    `sums` is (..., P), the limits (P,); returns (least, most), each (...), and least > most where
    there is no such multiplier.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        toward, away = lower / sums, upper / sums
    zero, minus = sums == 0, sums < 0
    least = np.where(zero, -np.inf, np.where(minus, away, toward)).max(axis=-1)
    most = np.where(zero, np.inf, np.where(minus, toward, away)).min(axis=-1)
    never = (zero & ((lower > 0) | (upper < 0))).any(axis=-1)
    return np.where(never, np.inf, np.maximum(least, 0)), np.where(never, -np.inf, most)


def multipliers_within(
    least: Float64, most: Float64, rounding: Rounding
) -> tuple[Int64, npt.NDArray[np.int32]]:
    """(mult, shift) with least <= mult / 2**shift <= most, near the middle; mult -1 without one."""
    bits = _MULT_BITS[rounding]
    open_ended = np.isposinf(most) & np.isfinite(least)
    most = np.where(open_ended, np.maximum(2 * least, 1.0), most)
    good = (least <= most) & (most > 0)
    shift = np.clip(bits - np.frexp(np.where(good, most, 1.0))[1], 0, _LARGEST_SHIFT)
    first = np.ceil(np.ldexp(np.where(good, least, 0.0), shift))
    last = np.floor(np.ldexp(np.where(good, most, 0.0), shift))
    good &= (first <= last) & (last < float(1 << bits))
    middle = np.floor((first + last) / 2)
    return np.where(good, middle, -1).astype(np.int64), shift
