"""Who touched each byte of DRAM last, where the program writes at all."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

import numpy as np
import numpy.typing as npt

from vitral.isa import Stage
from vitral.program import PAGE
from vitral.verify.intervals import IntervalSet
from vitral.verify.loops import Where
from vitral.verify.order import Clock
from vitral.verify.shadow import Conflict, Shadow

__all__ = ["DramShadow", "Rows"]

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows of `size` bytes (> 0), `stride` bytes apart, from byte `start` on."""

    start: int
    count: int
    size: int
    stride: int

    def __str__(self) -> str:
        return f"{self.start:#x}..{self.end:#x}"

    @property
    def end(self) -> int:
        return self.start + (self.count - 1) * self.stride + self.size

    @property
    def starts(self) -> Indices:
        return self.start + self.stride * np.arange(self.count)

    @property
    def grain(self) -> int:
        """Largest number of bytes that divides all its edges."""
        return gcd(self.start, self.size, self.stride if self.count > 1 else 0)


class DramShadow:
    """Last accesses by granule, kept for the pages that the program writes.

    A read of other pages cannot collide with anything. A granule is the largest number of bytes
    that divides every edge of the accesses to those pages.

    Parameters
    ----------
    writes, reads : iterable of Rows
        All that the program will do.
    filled : IntervalSet
        Bytes that hold something before.
    """

    def __init__(self, writes: Iterable[Rows], reads: Iterable[Rows], filled: IntervalSet) -> None:
        written = list(writes)
        self._pages, self._low = _pages_of(written)
        self._before = np.append(0, np.cumsum(self._pages))
        self._slots = np.where(self._pages, np.cumsum(self._pages) - 1, -1)
        shared = [rows for rows in reads if self._touches(rows)]
        self._grain = gcd(PAGE, *(rows.grain for rows in written + shared))
        self._per_page = PAGE // self._grain
        self._shadow = Shadow(int(self._pages.sum()) * self._per_page, False)
        self._filled = filled
        self._live: list[tuple[Indices, Indices]] = []
        self._live_seen: set[Rows] = set()

    def read(self, rows: Rows, stage: Stage, clock: Clock) -> tuple[Conflict | None, int | None]:
        """Note a read: the write it collides with, and the first byte that holds nothing."""
        if not self._touches(rows):
            return None, self._note_live(rows)
        run = self._run(rows)
        if run is not None:
            conflict = self._shadow.read(run, stage, clock)
            if self._shadow.unwritten(run) is None:
                return conflict, None
        where, addresses, found = self._granules(rows)
        conflict = self._shadow.read(where, stage, clock) if where.size else None
        found[found] = self._shadow.written[where]
        return conflict, self._note(addresses[~found], addresses[~found] + self._grain)

    def write(self, rows: Rows, stage: Stage, clock: Clock) -> Conflict | None:
        """Note a write: the access it collides with."""
        return self._shadow.write(self._where(rows), stage, clock)

    def changed(self, rows: Rows) -> bool:
        """Whether the program has written any of these bytes so far."""
        if not self._touches(rows):
            return False
        return bool(self._shadow.written[self._where(rows)].any())

    @property
    def live_in(self) -> IntervalSet:
        """Bytes read before the program wrote them."""
        if not self._live:
            return IntervalSet()
        starts, ends = zip(*self._live, strict=True)
        return IntervalSet(np.concatenate(starts), np.concatenate(ends))

    @property
    def writes(self) -> IntervalSet:
        """Bytes written so far."""
        granules = np.flatnonzero(self._shadow.written)
        slot, place = np.divmod(granules, self._per_page)
        starts = (self._low + np.flatnonzero(self._pages)[slot]) * PAGE + place * self._grain
        return IntervalSet(starts, starts + self._grain)

    def _touches(self, rows: Rows) -> bool:
        low = rows.start // PAGE - self._low
        high = (rows.end - 1) // PAGE - self._low
        count = self._pages.size
        if high < 0 or low >= count:
            return False
        return bool(self._before[min(high + 1, count)] > self._before[max(low, 0)])

    def _where(self, rows: Rows) -> Where:
        """Slots of those granules that are in written pages."""
        run = self._run(rows)
        return self._granules(rows)[0] if run is None else run

    def _run(self, rows: Rows) -> slice | None:
        """The slots of rows that follow each other and lie in neighbouring pages, all written."""
        if rows.count > 1 and rows.stride != rows.size:
            return None
        first, last = rows.start // PAGE - self._low, (rows.end - 1) // PAGE - self._low
        if first < 0 or last >= self._pages.size:
            return None
        slot = int(self._slots[first])
        if self._before[last + 1] - self._before[first] != last + 1 - first:
            return None
        start = slot * self._per_page + rows.start % PAGE // self._grain
        return slice(start, start + rows.count * rows.size // self._grain)

    def _granules(self, rows: Rows) -> tuple[Indices, Indices, npt.NDArray[np.bool_]]:
        """Slots of those granules that are in written pages; all addresses; and which have one."""
        number = (rows.starts // self._grain)[:, None] + np.arange(rows.size // self._grain)
        number = number.ravel()
        page = number // self._per_page - self._low
        inside = (page >= 0) & (page < self._pages.size)
        slot = np.where(inside, self._slots[np.where(inside, page, 0)], -1)
        found = slot >= 0
        where = slot[found] * self._per_page + number[found] % self._per_page
        return where, number * self._grain, found

    def _note_live(self, rows: Rows) -> int | None:
        if rows in self._live_seen:
            return None
        self._live_seen.add(rows)
        starts = rows.starts
        return self._note(starts, starts + rows.size)

    def _note(self, starts: Indices, ends: Indices) -> int | None:
        if not starts.size:
            return None
        self._live.append((starts, ends))
        missing = ~self._filled.covers(starts, ends)
        return int(starts[np.argmax(missing)]) if missing.any() else None


def _pages_of(written: list[Rows]) -> tuple[npt.NDArray[np.bool_], int]:
    """Which pages are written, from the lowest one on, and its number."""
    if not written:
        return np.zeros(0, bool), 0
    low = min(rows.start for rows in written) // PAGE
    high = max(rows.end - 1 for rows in written) // PAGE
    pages = np.zeros(high - low + 1, bool)
    for rows in written:
        if rows.stride <= PAGE:
            pages[rows.start // PAGE - low : (rows.end - 1) // PAGE - low + 1] = True
            continue
        for start in rows.starts.tolist():
            pages[start // PAGE - low : (start + rows.size - 1) // PAGE - low + 1] = True
    return pages, low
