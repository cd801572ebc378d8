"""A load engine: LOADs become bursts; data and padding complete them in order."""

from collections import deque
from dataclasses import dataclass

from vitral.compiler.cycles.bursts import Transfer
from vitral.compiler.cycles.padding import PadFiller, Runs
from vitral.compiler.cycles.reads import NEVER, Data, ReadChannel
from vitral.compiler.cycles.timing import Timing

__all__ = ["Command", "LoadEngine"]


@dataclass(frozen=True, slots=True)
class Command:
    """A LOAD as an engine takes it: its bursts, if any, and the elements that it writes.

    `target` is the on-chip memory; `padding` lists the runs of padding elements.
    """

    transfer: Transfer | None
    target: int = 0
    begin: int = 0
    end: int = 0
    padding: Runs = ()


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
        self._command = Command(None)
        self._next = 0  # bursts of the current command that have been granted
        self._begin = self._row_issued = 0
        self._taken = 0
        self._flying: deque[Command] = deque(maxlen=depth)
        self._fills = PadFiller()
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
        self._unresolved.append((channel.last_end, command, self._begin + 1))

    def settle(self, horizon: int) -> bool:
        """Completes commands in order, as far as data before cycle `horizon` decide it.

        Returns whether any was completed.
        """
        if not self._unresolved:
            return False
        settled = False
        while self._unresolved:
            end, command, admitted = self._unresolved[0]
            if command.padding:
                end = max(end, self._fills.fill(admitted, command.padding))
                if end >= horizon:
                    break
                self._fills.commit()
            self._unresolved.popleft()
            previous = self.done[-1] if self.done else -1
            self.done.append(max(end, previous + 1))
            settled = True
        return settled
