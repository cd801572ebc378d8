"""Finds a multiplier for the requantiser with which known sums give known codes.

A sum t and its code fix t * m between two halves of odd integers, so all of them together leave an
interval of multipliers m. Any m inside it is right, whatever the rounding, for then no sum is a
tie. Where the law has ties the interval is a single point, and ties to even or the float32 mode may
agree with the law there; only a check tells.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import frexp, isfinite

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import fl32_parameters, requantize
from vitral.isa import Rounding

__all__ = ["Limits", "Scaling", "find_scaling", "multiplier_range"]

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

_MULT_BITS = 31
_LARGEST_SHIFT = 255
_NEIGHBOURS = (0, 1, -1, 2, -2)


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """How the requantiser scales a sum: round(sum * mult / 2**shift)."""

    mult: int
    shift: int
    rounding: Rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Limits:
    """What quotients must lie between to round to `codes` (P,) after zero point and clamp.

    `lower` and `upper` are halves of odd integers, infinite where the clamp takes over.
    """

    codes: Int64
    zero_point: int
    low: int
    high: int

    @cached_property
    def lower(self) -> Float64:
        return np.where(self.codes <= self.low, -np.inf, self.codes - self.zero_point - 0.5)

    @cached_property
    def upper(self) -> Float64:
        return np.where(self.codes >= self.high, np.inf, self.codes - self.zero_point + 0.5)

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


def find_scaling(
    sums: Int64, limits: Limits, nominal: float, critical: npt.NDArray[np.intp]
) -> Scaling | None:
    """A scaling that gives the codes for all `sums`, None when none was found.

    `nominal` is the multiplier of real arithmetic; float32 numbers around it are tried last. Sums
    of index `critical` are checked first.
    """
    least, most = multiplier_range(sums.astype(np.float64), limits.lower, limits.upper)
    few, theirs = sums[critical], limits.part(critical)
    for scaling in _candidates(float(least), float(most), nominal):
        if theirs.met(few, scaling) and limits.met(sums, scaling):
            return scaling
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


def _candidates(least: float, most: float, nominal: float) -> list[Scaling]:
    """The likely ones first; none when the interval is empty but for what rounding hides."""
    found: list[Scaling] = []
    if least <= most:
        middle = (least + most) / 2 if isfinite(most) else max(2 * least, 1.0)
        for value in (middle, least, most):
            pair = _fraction(value) if isfinite(value) else None
            if pair is not None:
                found.append(Scaling(mult=pair[0], shift=pair[1], rounding=Rounding.HALF_EVEN))
    return [*dict.fromkeys(found), *_float32_candidates(nominal)]


def _float32_candidates(nominal: float) -> list[Scaling]:
    with np.errstate(over="ignore", under="ignore"):
        centre = np.float32(nominal)
    if not (np.isfinite(centre) and centre > 0):
        return []
    bits = int(centre.view(np.int32))
    near = np.array([max(bits + step, 1) for step in _NEIGHBOURS], np.int32).view(np.float32)
    mults, shifts = fl32_parameters(near[np.isfinite(near)])
    return [
        Scaling(mult=int(mult), shift=int(shift), rounding=Rounding.FLOAT32)
        for mult, shift in zip(mults, shifts, strict=True)
    ]


def _fraction(value: float) -> tuple[int, int] | None:
    """(mult, shift), reduced, whose quotient is `value` to 31 significant bits, if it has one."""
    fraction, exponent = frexp(value)
    mult, shift = round(fraction * (1 << _MULT_BITS)), _MULT_BITS - exponent
    while shift > 0 and mult and (mult % 2 == 0 or shift > _LARGEST_SHIFT):
        mult, shift = mult >> 1, shift - 1
    return (mult, shift) if 0 <= shift <= _LARGEST_SHIFT and not mult >> _MULT_BITS else None
