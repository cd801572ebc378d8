"""Finds integers that add two quantized tensors exactly as the arithmetic law does.

The law of y = a + b is op by op in float32. The core computes
requantize(ma * a + mb * b + bias) with small integers ma and mb. Where ma / mb is close enough to
the quotient of the scales, a multiplier exists for which all pairs of codes round the same; the few
pairs whose real sum is nearly a tie decide, so candidates meet those first, and only the best meet
all.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import Bounds
from vitral.compiler.passes.law import binary_codes, code_bounds
from vitral.compiler.passes.scaling import (
    Limits,
    Scaling,
    find_scaling,
    multiplier_range,
    multipliers_within,
)
from vitral.isa import Rounding

__all__ = ["Range", "SumParameters", "SumLaw", "find_sum"]

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Range = tuple[int, int]

_LARGEST = 32639
"""Largest multiplier: 127 * 256 + 127, two digits of int8."""
_NUDGES = (0, 1, -1, 2, -2)
_LARGEST_SCALE = 2.0**100
"""Beyond it float32 products may be infinite."""
_CLOSE_CALLS = 256
_FULL_CHECKS = 6


@dataclass(frozen=True, kw_only=True)
class SumLaw:
    """A sum or difference of two codes that lie in known ranges.

    `table`, where given, holds the codes of all pairs as of `Binary`, in C order.
    """

    function: str
    a_quant: Quant
    b_quant: Quant
    y_quant: Quant
    bounds: Bounds
    a_range: Range
    b_range: Range
    table: bytes | None = None

    def codes(self) -> npt.NDArray[np.int8]:
        """The law's codes of all pairs, int8 (256, 256)."""
        if self.table is not None:
            return np.frombuffer(self.table, np.int8).reshape(256, 256)
        return binary_codes(self.function, self.a_quant, self.b_quant, self.y_quant, self.bounds)

    def clamp(self) -> Range:
        """Lowest and highest code."""
        if self.table is None:
            return code_bounds(self.y_quant, self.bounds)
        codes = self.codes()
        return int(codes.min()), int(codes.max())


@dataclass(frozen=True, kw_only=True)
class SumParameters:
    """y = clamp(scaling(ma * a + mb * b + bias) + zero point, low, high)."""

    multipliers: tuple[int, int]
    bias: int
    scaling: Scaling
    low: int
    high: int


@lru_cache(maxsize=256)
def find_sum(law: SumLaw) -> SumParameters | None:
    """Parameters that are right for every pair of codes in the ranges, checked on all; or None."""
    if max(law.a_quant.tensor_scale, law.b_quant.tensor_scale) > _LARGEST_SCALE:
        return None
    low, high = law.clamp()
    pairs = _Pairs.of(law, low, high)
    near = pairs.part(np.argsort(pairs.margin, kind="stable")[:_CLOSE_CALLS])
    zeros = law.a_quant.tensor_zero, law.b_quant.tensor_zero
    for search in _SEARCHES:
        theirs = pairs.rounded(search.rounding)
        for ma, mb in _likely(law, near.rounded(search.rounding), search)[:_FULL_CHECKS]:
            scaling = find_scaling(theirs.sums(ma, mb, search.nudge), theirs.limits)
            if scaling is not None:
                bias = search.nudge - ma * zeros[0] - mb * zeros[1]
                return SumParameters(
                    multipliers=(ma, mb), bias=bias, scaling=scaling, low=low, high=high
                )
    return None


@dataclass(frozen=True)
class _Search:
    """Multipliers up to `largest`, the `count` best quotients, `nudge` added to the bias."""

    rounding: Rounding
    largest: int
    count: int
    nudge: int = 0


_SEARCHES = (
    _Search(Rounding.HALF_EVEN, 127, 64),
    _Search(Rounding.FLOAT32, 127, 64),
    *(_Search(Rounding.HALF_EVEN, _LARGEST, 512, nudge) for nudge in _NUDGES),
    *(_Search(Rounding.FLOAT32, _LARGEST, 4096, nudge) for nudge in _NUDGES),
)
"""In order of preference: int8 multipliers take one pass of the core, larger ones two."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pairs:
    """Pairs of centred codes (P,), the law's codes for them, and their real sums in units of y."""

    a: Int64
    b: Int64
    limits: Limits
    exact: Float64

    @staticmethod
    def of(law: SumLaw, low: int, high: int) -> "_Pairs":
        rows, columns = (np.arange(first, last + 1) for first, last in (law.a_range, law.b_range))
        a, b = np.meshgrid(
            rows - law.a_quant.tensor_zero, columns - law.b_quant.tensor_zero, indexing="ij"
        )
        sign = 1 if law.function == "add" else -1
        real = a * law.a_quant.tensor_scale + sign * b * law.b_quant.tensor_scale
        wanted = law.codes()[np.ix_(rows + 128, columns + 128)].astype(np.int64)
        return _Pairs(
            a=a.ravel(),
            b=b.ravel(),
            limits=Limits(
                codes=wanted.ravel(), zero_point=law.y_quant.tensor_zero, low=low, high=high
            ),
            exact=real.ravel() / law.y_quant.tensor_scale,
        )

    @property
    def margin(self) -> Float64:
        """How far the real sum is from being rounded to another code."""
        limits = self.limits
        return np.minimum(self.exact - limits.lower, limits.upper - self.exact)

    def rounded(self, rounding: Rounding) -> "_Pairs":
        """The same for another rounding."""
        if rounding is self.limits.rounding:
            return self
        return replace(self, limits=replace(self.limits, rounding=rounding))

    def part(self, index: npt.NDArray[np.intp]) -> "_Pairs":
        return _Pairs(
            a=self.a[index],
            b=self.b[index],
            limits=self.limits.part(index),
            exact=self.exact[index],
        )

    def sums(self, ma: Int64 | int, mb: Int64 | int, nudge: int) -> Int64:
        return ma * self.a + mb * self.b + nudge


def _likely(law: SumLaw, near: _Pairs, search: _Search) -> list[tuple[int, int]]:
    """Multipliers for which the close calls leave a multiplier, the widest interval first."""
    ratio = float(law.a_quant.tensor_scale) / float(law.b_quant.tensor_scale)
    ma, mb = _quotients(ratio, search.largest, search.count)
    if search.nudge == 0 and search.rounding is Rounding.HALF_EVEN:
        reduced = np.gcd(ma, mb) == 1
        ma, mb = ma[reduced], mb[reduced]
    if law.function == "sub":
        mb = -mb
    sums = near.sums(ma[:, None], mb[:, None], search.nudge).astype(np.float64)
    least, most = multiplier_range(sums, near.limits.lower, near.limits.upper)
    good = multipliers_within(least, most, search.rounding)[0] >= 0
    with np.errstate(invalid="ignore"):
        room = np.where(np.isfinite(most), (most - least) / most, 1.0)[good]
    pairs = zip(ma[good].tolist(), mb[good].tolist(), strict=True)
    ranked = sorted(zip(-room, pairs, strict=True))
    return [pair for _, pair in ranked]


def _quotients(ratio: float, largest: int, count: int) -> tuple[Int64, Int64]:
    """The `count` pairs of integers up to `largest` whose quotient is nearest to `ratio`."""
    inverted = ratio < 1
    ratio = 1 / ratio if inverted else ratio
    greater = np.arange(1, largest + 1)
    smaller = np.maximum(np.rint(greater / ratio), 1)
    error = np.abs(greater / smaller / ratio - 1)
    best = np.argsort(error, kind="stable")[:count]
    big, small = greater[best], smaller[best].astype(np.int64)
    return (small, big) if inverted else (big, small)
