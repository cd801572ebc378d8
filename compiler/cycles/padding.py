"""The padding of LOADs, written in the cycles that the data of their memory leave free."""

from vitral.compiler.cycles.reads import Data
from vitral.isa import Load

__all__ = ["PadFiller", "Runs", "runs_of"]

Runs = tuple[tuple[int, int], ...]
"""(count, length): so many runs of so many elements, in order."""


def runs_of(insn: Load) -> Runs:
    """The runs of padding of a LOAD: rows above, beside each row, below; () when it has none."""
    width = insn.x_pad_0 + insn.x_size + insn.x_pad_1
    runs = (
        (insn.y_pad_0, width),
        (1, insn.x_pad_0),
        (insn.y_size - 1, insn.x_pad_0 + insn.x_pad_1),
        (1, insn.x_pad_1),
        (insn.y_pad_1, width),
    )
    return runs if any(count * length for count, length in runs) else ()


class PadFiller:
    """Takes one job after the other. A run costs a cycle, and one for each of its elements in which
    no data come; another cycle ends the job.

    All times are those of the read channel, a cycle before the memory is written.
    """

    def __init__(self) -> None:
        self._beats: list[Data] = []  # first and last cycles of data, apart and ascending
        self._first = 0  # those before are past
        self._free = 0
        self._result = 0

    def occupy(self, data: list[Data]) -> None:
        """There are data in these cycles."""
        for start, end in data:
            if self._beats and self._beats[-1][1] + 1 == start:
                self._beats[-1] = (self._beats[-1][0], end)
            else:
                self._beats.append((start, end))

    def fill(self, time: int, runs: Runs) -> int:
        """When a job that enters in cycle `time` ends, if no other data come than are known."""
        time = max(time, self._free)
        beats = self._beats
        while self._first < len(beats) and beats[self._first][1] < time:
            self._first += 1
        place = self._first
        for count, length in runs:
            if not length:
                time += count
                continue
            for _ in range(count):
                time += 1
                left = length
                while place < len(beats) and left:
                    start, end = beats[place]
                    if start > time + left:
                        break
                    if end > time:
                        left -= max(0, start - time - 1)
                        time = end
                    place += 1
                time += left
        self._result = time + 1
        return self._result

    def commit(self) -> None:
        """The job whose end was asked for last is done; the next one follows."""
        self._free = self._result + 1
