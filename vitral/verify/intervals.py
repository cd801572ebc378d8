"""Sets of byte addresses as sorted, disjoint intervals."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["IntervalSet"]

Int64 = npt.NDArray[np.int64]


class IntervalSet:
    """Bytes ``starts[i] <= address < ends[i]``; merged and sorted whatever order they come in.

    Parameters
    ----------
    starts, ends : int64 (n,)
        Intervals, which may overlap; empty ones are dropped.
    """

    def __init__(self, starts: npt.ArrayLike = (), ends: npt.ArrayLike = ()) -> None:
        first, last = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
        real = last > first
        first, last = first[real], last[real]
        order = np.argsort(first, kind="stable")
        first, last = first[order], np.maximum.accumulate(last[order])
        opens = np.ones(first.size, bool)
        opens[1:] = first[1:] > last[:-1]
        self.starts = first[opens]
        self.ends = last[np.append(opens[1:], True)] if first.size else last

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> "IntervalSet":
        """From (start, size) pairs."""
        pairs = np.array([(start, start + size) for start, size in ranges], np.int64)
        return cls(*pairs.reshape(-1, 2).T)

    def __bool__(self) -> bool:
        return self.starts.size > 0

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, IntervalSet)
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.ends, other.ends)
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # holds arrays

    @property
    def size(self) -> int:
        """Bytes in the set."""
        return int((self.ends - self.starts).sum())

    def covers(self, starts: npt.ArrayLike, ends: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """For each interval given, whether all of it is in the set; empty ones are."""
        first, last = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
        place = np.searchsorted(self.starts, first, "right") - 1
        reach = np.append(self.ends, np.iinfo(np.int64).min)[place]  # place -1: before all
        return (last <= first) | (last <= reach)

    def __or__(self, other: "IntervalSet") -> "IntervalSet":
        return IntervalSet(
            np.concatenate([self.starts, other.starts]), np.concatenate([self.ends, other.ends])
        )

    def __and__(self, other: "IntervalSet") -> "IntervalSet":
        return self._where(other, True)

    def __sub__(self, other: "IntervalSet") -> "IntervalSet":
        return self._where(other, False)

    def _where(self, other: "IntervalSet", inside: bool) -> "IntervalSet":
        """The part of this set that is inside, or outside, the other."""
        edges = np.unique(np.concatenate([self.starts, self.ends, other.starts, other.ends]))
        starts, ends = edges[:-1], edges[1:]
        keep = self.covers(starts, ends) & (other.covers(starts, ends) == inside)
        return IntervalSet(starts[keep], ends[keep])
