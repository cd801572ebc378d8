"""From the values of a tensor to the range that its codes cover: four methods.

Each takes a histogram and gives (low, high) around 0; what lies outside saturates.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from vitral.compiler.quantize.config import Activations, QuantizeConfig
from vitral.compiler.quantize.histogram import Histogram

__all__ = ["Range", "choose_range", "entropy", "mse", "percentile"]

Range = tuple[float, float]
Float64 = npt.NDArray[np.float64]

_STEPS = 255
_KL_BINS = 2048
_LEAST_LEVELS = 128
_NEAR = 16
_PEAK_RATIO = 4
_SHRINK = np.linspace(0.02, 1.0, 99)


def choose_range(histogram: Histogram, config: QuantizeConfig) -> Range:
    """The range by the method of `config`; 0 is inside, and symmetric ranges are symmetric."""
    methods: dict[str, Callable[[], Range]] = {
        "minmax": lambda: (histogram.low, histogram.high),
        "percentile": lambda: percentile(histogram, config.percentile, config.activations),
        "entropy": lambda: entropy(histogram, config.activations),
        "mse": lambda: mse(histogram, config.activations),
    }
    low, high = methods[config.method]()
    return around_zero(low, high, config.activations)


def around_zero(low: float, high: float, activations: Activations) -> Range:
    """With 0 inside; symmetric where zero points are 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    if activations == "symmetric":
        peak = max(-low, high)
        return -peak, peak
    return low, high


def percentile(histogram: Histogram, keep: float, activations: Activations) -> Range:
    """Bounds that `keep` per cent of all values lie under, and as many over; of magnitudes when
    symmetric. Zeros count as values."""
    outside = (1 - keep / 100) * histogram.total
    if activations == "symmetric":
        counts, edges = _magnitudes(histogram)
        peak = _upper(counts, edges, outside)
        return -peak, peak
    edges = histogram.edges
    counts = histogram.counts.astype(np.float64)
    high = _upper(counts, edges, outside)
    low = -_upper(counts[::-1], -edges[::-1], outside)
    return low, high


def _upper(counts: Float64, edges: Float64, outside: float) -> float:
    """The value above which `outside` counts lie, evenly spread within a bin."""
    above = np.concatenate([np.cumsum(counts[::-1])[::-1], [0.0]])
    index = int(np.searchsorted(-above, -outside, side="right")) - 1
    index = min(max(index, 0), len(counts) - 1)
    if counts[index] == 0 or above[index] <= outside:
        return float(edges[index])
    share = (above[index] - outside) / counts[index]
    return float(edges[index] + min(share, 1.0) * (edges[index + 1] - edges[index]))


def mse(histogram: Histogram, activations: Activations) -> Range:
    """The range with the least mean squared error of rounding and saturation.

    A search on a grid of 1 %: both ends shrunk alike, then each end by itself, twice over. An error
    is the sum over bins of count times the squared distance of the bin's centre from its code's
    value.
    """
    low, high = around_zero(histogram.low, histogram.high, activations)
    if high <= low:
        return low, high
    best = min(((low * f, high * f) for f in _SHRINK), key=lambda r: _error(histogram, *r))
    if activations == "symmetric" or low == 0 or high == 0:
        return best
    for _ in range(2):
        lows = ((low * f, best[1]) for f in _SHRINK)
        best = min((best, *lows), key=lambda r: _error(histogram, *r))
        highs = ((best[0], high * f) for f in _SHRINK)
        best = min((best, *highs), key=lambda r: _error(histogram, *r))
    return best


def _error(histogram: Histogram, low: float, high: float) -> float:
    scale = (high - low) / _STEPS
    zero = np.rint(-low / scale)
    live = histogram.counts > 0
    centers = histogram.centers[live]
    codes = np.clip(np.rint(centers / scale) + zero, 0, _STEPS)
    return float((histogram.counts[live] * (centers - (codes - zero) * scale) ** 2).sum())


def entropy(histogram: Histogram, activations: Activations) -> Range:
    """The threshold on magnitudes whose codes keep most of the distribution's information.

    For each threshold the distribution P of magnitudes below it, all beyond it added to its last
    bin, is compared with Q: the same bins without that addition, merged into as many levels as
    codes have magnitudes, and spread evenly again over the bins that are not empty. The threshold
    with the least Kullback-Leibler divergence sum P log(P / Q) wins (Migacz, 8-bit Inference with
    TensorRT, 2017). Zeros take no part, and a bin counts at most four times what those about it do:
    single values that a plain background gives again and again would be lost in every level.

    Of N values in b bins merged into l levels, chance alone makes a divergence of (b - l) / 2N with
    a deviation of sqrt(2 (b - l)) / 2N: twice that sum is a chi-squared variable. The mean is taken
    off, and of thresholds that differ by less than two deviations the widest is chosen; else few
    values, such as a classifier's results, would be cut to where no bins are merged at all.
    """
    counts, edges = _magnitudes(histogram)
    if not counts.any():
        return histogram.low, histogram.high
    counts = _without_peaks(counts)
    least = histogram.low if activations == "affine" else -edges[-1]
    most = histogram.high if activations == "affine" else edges[-1]
    found: list[tuple[float, float, float]] = []
    for used in range(_LEAST_LEVELS, _KL_BINS + 1, 8):
        peak = float(edges[used])
        width = min(peak, max(most, 0.0)) + min(peak, max(-least, 0.0))
        levels = int(np.clip(round(_STEPS * peak / width), _LEAST_LEVELS, _STEPS))
        found.append((peak, *_divergence(counts, used, min(levels, used))))
    lowest = min(found, key=lambda item: item[1])
    limit = lowest[1] + 2 * max(item[2] for item in found)
    chosen = max(peak for peak, divergence, _ in found if divergence <= limit)
    return max(least, -chosen), min(most, chosen)


def _magnitudes(histogram: Histogram) -> tuple[Float64, Float64]:
    """Counts of magnitudes in equal bins from 0 to the largest; bins cut in two are shared."""
    peak = max(abs(histogram.low), abs(histogram.high))
    edges = np.linspace(0.0, peak, _KL_BINS + 1)
    if peak == 0:
        return np.zeros(_KL_BINS), edges
    total = np.concatenate([[0.0], np.cumsum(histogram.counts, dtype=np.float64)])

    def below(values: Float64) -> Float64:
        return np.interp(values, histogram.edges, total)

    upper, lower = below(edges), below(-edges)
    return np.maximum(np.diff(upper) - np.diff(lower), 0.0), edges


def _without_peaks(counts: Float64) -> Float64:
    """Counts cut at four times the median of the bins about them that are not empty."""
    padded = np.pad(np.where(counts > 0, counts, np.nan), _NEAR, constant_values=np.nan)
    near = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEAR + 1)
    live = counts > 0
    usual = np.zeros_like(counts)
    usual[live] = np.nanmedian(near[live], axis=1)
    return np.minimum(counts, _PEAK_RATIO * usual)


def _divergence(counts: Float64, used: int, levels: int) -> tuple[float, float]:
    """Divergence beyond what chance makes, and the deviation of that."""
    kept = counts[:used]
    reference = kept.copy()
    reference[-1] += counts[used:].sum()
    group = np.arange(used) * levels // used
    sums = np.bincount(group, kept, levels)
    filled = np.bincount(group, kept > 0, levels)
    spread = np.where(kept > 0, (sums / np.maximum(filled, 1))[group], 0.0)
    if not spread.any():
        return np.inf, 0.0
    total = reference.sum()
    p, q = reference / total, spread / spread.sum()
    live = p > 0
    if (q[live] == 0).any():
        return np.inf, 0.0  # values beyond the threshold where nothing is left to hold them
    free = float(filled.sum() - (filled > 0).sum())
    divergence = float((p[live] * np.log(p[live] / q[live])).sum())
    return divergence - free / (2 * total), float(np.sqrt(2 * free) / (2 * total))
