"""How an operator's exact result becomes codes, where it is not the float32 law."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.isa import Rounding

__all__ = ["FixedPoint", "Thresholds", "Weighted"]


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedPoint:
    """A rounding in fixed point: clamp(round(A * mult / 2**shift) + zero point, low, high).

    `mult` uint32 (31 bits) and `shift` uint8 are (O,); `rounding` is that of
    `vitral.arithmetic.requantize`; `low` and `high` are codes.
    """

    mult: npt.NDArray[np.uint32]
    shift: npt.NDArray[np.uint8]
    rounding: Rounding
    low: int
    high: int


@dataclass(frozen=True, kw_only=True)
class Weighted:
    """clamp(round((weight * sum(codes) + bias) * mult / 2**shift) + zero_point) of a window."""

    weight: int
    bias: int
    mult: int
    shift: int
    zero_point: int
    rounding: Rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Thresholds:
    """Codes of exact window sums: low + how many entries of the row of its count a sum reaches.

    `counts` int64 (K,) are the element counts that occur, `rows` int64 (K, steps) ascend along
    their last axis. `core` is what may give the same codes where all windows have one count; it
    is checked before it is used.
    """

    counts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    low: int
    core: Weighted | None = None
