"""A load engine: LOADs become bursts; data and padding complete them in order."""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from math import ceil

from vitral.compiler.cycles.bursts import Transfer
from vitral.compiler.cycles.reads import NEVER, Data, ReadChannel
from vitral.compiler.cycles.timing import Timing

__all__ = ["Command", "LoadEngine"]


@dataclass(frozen=True, slots=True)
class Command:
    """A LOAD as an engine takes it: its bursts, if any, and the elements that it writes.

    `target` is the on-chip memory. `pads` counts padding elements, `pad_turns` the cycles that
    the filler needs beside them.
    """

    transfer: Transfer | None
    target: int = 0
    begin: int = 0
    end: int = 0
    pads: int = 0
    pad_turns: int = 0


class LoadEngine:
    """Issues one LOAD's bursts after the other's, as a client of the read channel.

    `ready` is the first cycle that the next command can be taken in, NEVER while a row of the
    current one has not been issued. `done` has, for the commands in order, the cycle of the last
    data beat or its equivalent: what waits for a command counts its latency from there.
    """

    def __init__(self, timing: Timing, depth: int, padded: int = -1) -> None:
        self._timing = timing
        self._depth = depth
        self._padded = padded  # the memory whose beats hold up padding
        self.request = NEVER
        self.ready = 0
        self.done: list[int] = []
        self._left: list[int] = []
        self._command = Command(None)
        self._next = 0  # bursts of the current command that have been granted
        self._begin = self._row_issued = 0
        self._taken = 0
        self._flying: deque[Command] = deque(maxlen=depth)
        self._fills = _Filler()
        self._unresolved: deque[tuple[int, Command, int]] = deque()

    @property
    def insists(self) -> int:
        return 0

    def take(self, time: int, command: Command) -> None:
        """Begin a command in cycle `time`, which is not before `ready`."""
        admitted = self._admission(time + 1, command)
        self._taken += 1
        self._flying.append(command)
        self._begin = admitted - 1
        if command.transfer is None:
            self.ready = admitted + 1
            self._unresolved.append((admitted - 1, command, admitted))
            return
        self._command = command
        self._next = self._row_issued = 0
        self.request = admitted - 1 + self._timing.command_to_burst
        self.ready = NEVER

    def _admission(self, time: int, command: Command) -> int:
        """Waits for room in the slots and for unfinished commands on the same elements."""
        place = self._taken - self._depth
        if place >= 0 and place < len(self.done):
            time = max(time, self.done[place] + self._timing.beat_to_token)
        for back, other in enumerate(reversed(self._flying), 1):
            number = self._taken - back
            if number >= len(self.done):
                continue  # all its data are known, only its padding is not
            free = self.done[number] + self._timing.beat_to_token
            if free <= time:
                break
            if (
                other.target == command.target
                and other.begin < command.end
                and command.begin < other.end
            ):
                return free
        return time

    def issue(self, channel: ReadChannel, until: int) -> None:
        """Grant bursts of the current command until it has none, or another client asks."""
        command, transfer = self._command, self._command.transfer
        assert transfer is not None
        left = transfer.bursts[self._next :] if self._next else transfer.bursts
        data: list[Data] | None = [] if command.target == self._padded else None
        addresses = channel.grant(self.request, left, until, data)
        if data:
            self._fills.occupy(data)
        self._next += len(addresses)
        before = transfer.before_last - (self._next - len(addresses))
        if 0 < before <= len(addresses):
            self._row_issued = addresses[before - 1]
        if self._next < len(transfer.bursts):
            self.request = addresses[-1] + 1
            return
        self.request = NEVER
        self.ready = max(self._begin + self._timing.command_gap, self._row_issued)
        self._unresolved.append((channel.last_end, command, self._begin + 2))

    def settle(self, horizon: int) -> bool:
        """Completes commands in order, as far as data before cycle `horizon` decide it.

        Returns whether any was completed.
        """
        if not self._unresolved:
            return False
        settled = False
        while self._unresolved:
            end, command, admitted = self._unresolved[0]
            if command.pads:
                end = max(end, self._fills.fill(admitted, command.pads, command.pad_turns))
                if end >= horizon:
                    break
                self._fills.commit()
            self._unresolved.popleft()
            previous = self.done[-1] if self.done else -1
            self.done.append(max(end, previous + 1))
            settled = True
        return settled


class _Filler:
    """Writes padding in the cycles that the data of its memory leave free."""

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

    def fill(self, time: int, pads: int, turns: int) -> int:
        """The cycle of the last padding element of a job that is there at `time`."""
        time = max(time, self._free)
        beats = self._beats
        while self._first < len(beats) and beats[self._first][1] < time:
            self._first += 1
        left, writes = pads + turns, pads / (pads + turns)
        for start, end in islice(beats, self._first, None):
            if start > time:
                left -= start - time
                time = start
            if left <= 0:
                return self._finish(time + left)
            # Beside data, the filler only takes those of its cycles that write nothing.
            left = max(left - (end + 1 - time), ceil(left * writes))
            time = end + 1
        return self._finish(time + left)

    def _finish(self, time: int) -> int:
        self._result = time
        return time

    def commit(self) -> None:
        """The job whose end was asked for last is done; the next one follows."""
        self._free = self._result + 1
