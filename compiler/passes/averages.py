"""Averages as thresholds of exact integer sums."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import AveragePool
from vitral.compiler.ir.rounding import Thresholds
from vitral.compiler.passes.law import code_bounds
from vitral.runtime.cpu.windows import window_counts

__all__ = ["average_thresholds", "quotient_thresholds"]


def average_thresholds(
    op: AveragePool, size: tuple[int, ...], clamp: tuple[int, int] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """(counts, thresholds, low): y = low + number of thresholds that the window's sum reaches.

    `size` is the input's (height, width). counts (K,) are the element counts that occur; row i of
    thresholds (K, high - low) belongs to counts[i]. Exact: y is the rounded rational average,
    ties to even, for every sum, or what the operator's own thresholds say. `clamp` are the lowest
    and highest code instead of those of the operator's bounds.
    """
    assert op.y_quant is not None
    if op.thresholds is not None:
        return _clamped(op.thresholds, clamp)
    counts = np.unique(
        window_counts(
            size,
            kernel=op.kernel,
            strides=op.strides,
            pads=op.pads,
            excess=op.excess,
            dilations=op.dilations,
            include_pad=op.include_pad,
        )
    )
    low, high = clamp or code_bounds(op.y_quant, op.bounds)
    rows = [quotient_thresholds(op.x_quant, op.y_quant, int(count), low, high) for count in counts]
    return counts, np.array(rows, np.int64).reshape(len(counts), high - low), low


def _clamped(
    given: Thresholds, clamp: tuple[int, int] | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """The steps that are left between the codes of `clamp`."""
    low, high = clamp or (given.low, given.low + given.rows.shape[1])
    return given.counts, given.rows[:, low - given.low : high - given.low], low


def quotient_thresholds(x: Quant, y: Quant, count: int, low: int, high: int) -> list[int]:
    """Of a sum of centred codes to be divided by `count`: the least for each code above `low`.

    Sums past every reachable one stand for never.

    rne(v) >= k exactly when v > k - 1/2, or v = k - 1/2 and k is even.
    """
    unit = Fraction(x.tensor_scale) / (Fraction(y.tensor_scale) * count)
    never = count * 256
    row: list[int] = []
    for code in range(low + 1, high + 1):
        target = code - y.tensor_zero
        edge = Fraction(2 * target - 1, 2) / unit
        whole = -(-edge.numerator // edge.denominator)
        least = whole + 1 if edge == whole and target % 2 else whole
        row.append(min(max(least, -never), never))
    return row
