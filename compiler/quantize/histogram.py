"""Histograms of a tensor over many batches, of fixed size."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["BINS", "Extent", "Histogram"]

BINS = 4096
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass
class Extent:
    """Least and largest value so far."""

    low: float = np.inf
    high: float = -np.inf

    def add(self, values: npt.NDArray[np.float32]) -> None:
        if values.size:
            self.low = min(self.low, float(values.min()))
            self.high = max(self.high, float(values.max()))


@dataclass
class Histogram:
    """Counts of values in `BINS` equal bins from `low` to `high`, zeros counted apart.

    Zero is exact in every choice of scale, and half the values behind a Relu are zero.
    """

    low: float
    high: float
    counts: Int64 = field(default_factory=lambda: np.zeros(BINS, np.int64))
    zeros: int = 0

    def add(self, values: npt.NDArray[np.float32]) -> None:
        """Count a batch; values outside go to the bins at the ends."""
        flat = values.reshape(-1)
        other = flat[flat != 0]
        self.zeros += flat.size - other.size
        if self.high > self.low:
            ends = float(np.float32(self.low)), float(np.float32(self.high))
            clipped = np.clip(other, *ends)
            self.counts += np.histogram(clipped, bins=BINS, range=ends)[0]
        else:
            self.counts[0] += other.size

    @property
    def edges(self) -> Float64:
        return np.linspace(self.low, self.high, BINS + 1)

    @property
    def centers(self) -> Float64:
        edges = self.edges
        return (edges[:-1] + edges[1:]) / 2

    @property
    def total(self) -> int:
        """Values counted, zeros included."""
        return int(self.counts.sum()) + self.zeros
