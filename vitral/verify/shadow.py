"""Who touched each element of an on-chip memory last."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.isa import Stage
from vitral.verify.loops import Where
from vitral.verify.order import Clock

__all__ = ["Conflict", "Shadow"]


@dataclass(frozen=True)
class Conflict:
    """An access that no token path orders: number `count` (from 1) of the stage's queue."""

    stage: Stage
    count: int
    wrote: bool


class Shadow:
    """Per element and stage: the last access as a count in the stage's queue, from 1; 0 for none.

    Of a stage the last access to an element is enough: its earlier ones come before that.

    Parameters
    ----------
    depth : int
        Elements.
    initialised : bool
        Whether they hold something from the start.
    """

    def __init__(self, depth: int, initialised: bool) -> None:
        self.written = np.full(depth, initialised)
        self._writes: dict[Stage, npt.NDArray[np.int32]] = {}
        self._reads: dict[Stage, npt.NDArray[np.int32]] = {}

    def read(self, where: Where, stage: Stage, clock: Clock) -> Conflict | None:
        """Note a read; the write of another stage that it may overtake or miss, if any."""
        self._of(self._reads, stage)[where] = clock[stage] + 1
        return _later(self._writes, where, stage, clock, True)

    def write(self, where: Where, stage: Stage, clock: Clock) -> Conflict | None:
        """Note a write; the access of another stage that it may collide with, if any."""
        self._of(self._writes, stage)[where] = clock[stage] + 1
        self.written[where] = True
        conflict = _later(self._reads, where, stage, clock, False)
        return conflict or _later(self._writes, where, stage, clock, True)

    def unwritten(self, where: Where) -> int | None:
        """The first element that nothing was ever written to, if any."""
        written = self.written[where]
        place = int(written.argmin())
        if written[place]:
            return None
        return where.start + place if isinstance(where, slice) else int(where[place])

    def _of(self, table: dict[Stage, npt.NDArray[np.int32]], stage: Stage) -> npt.NDArray[np.int32]:
        if stage not in table:
            table[stage] = np.zeros(self.written.size, np.int32)
        return table[stage]


def _later(
    table: dict[Stage, npt.NDArray[np.int32]],
    where: Where,
    stage: Stage,
    clock: Clock,
    wrote: bool,
) -> Conflict | None:
    for other, counts in table.items():
        if other is stage:
            continue
        last = int(np.maximum.reduce(counts[where]))
        if last > clock[other]:
            return Conflict(other, last, wrote)
    return None
