"""The read channel: clients that take turns, a limit of bursts in flight, data in order."""

from collections.abc import Sequence
from typing import Protocol

from vitral.config import CoreConfig
from vitral.program import MemoryModel

__all__ = ["NEVER", "ReadChannel", "ReadClient"]

Data = tuple[int, int]
"""First and last cycle of a burst's data."""

NEVER = 1 << 60
"""A time that nothing known so far leads to."""


class ReadClient(Protocol):
    """Someone who asks for bursts. `request` is when the next one is offered, or NEVER."""

    request: int

    @property
    def insists(self) -> int:
        """When it no longer lets others that ask at the same time go first."""
        ...

    def issue(self, channel: "ReadChannel", until: int) -> None:
        """Send the offered burst, and following ones as long as nobody else asks `until` then."""
        ...


class ReadChannel:
    """Times of address and data phases, in the order in which bursts are granted.

    A burst's data start `latency` cycles after its address, and not before those of the burst
    before it have ended. `beats` counts them.
    """

    def __init__(self, config: CoreConfig, memory: MemoryModel) -> None:
        self._latency = max(1, memory.latency)
        self._outstanding = min(config.outstanding, memory.outstanding)
        self._ends = [-1] * self._outstanding  # of the last bursts, a ring
        self._oldest = 0
        self._last_address = 0
        self._last_end = -1
        self.owner = 0
        self.beats = 0

    @property
    def slot(self) -> int:
        """First cycle in which the next address can be taken."""
        return max(self._last_address, self._ends[self._oldest]) + 1

    @property
    def horizon(self) -> int:
        """No data of bursts still to be granted come before this cycle."""
        return max(self.slot + self._latency, self._last_end + 1)

    def grant(
        self,
        request: int,
        bursts: Sequence[int],
        until: int = NEVER,
        data: list[Data] | None = None,
    ) -> list[int]:
        """Grant bursts, each offered a cycle after the one before, the first one at `request`.

        After the first, none whose address would go in cycle `until` or later. `data` receives the
        first and last data cycle of each. Returns the cycles of the addresses.
        """
        ends, oldest, wrap = self._ends, self._oldest, self._outstanding
        last, end, latency = self._last_address, self._last_end, self._latency
        addresses: list[int] = []
        beats = 0
        for count in bursts:
            address = last + 1
            if ends[oldest] >= address:
                address = ends[oldest] + 1
            if request > address:
                address = request
            if address >= until and addresses:
                break
            last = address
            start = address + latency
            if end >= start:
                start = end + 1
            end = start + count - 1
            ends[oldest] = end
            oldest += 1
            if oldest == wrap:
                oldest = 0
            addresses.append(address)
            beats += count
            if data is not None:
                data.append((start, end))
        self._oldest, self._last_address, self._last_end = oldest, last, end
        self.beats += beats
        return addresses

    @property
    def last_end(self) -> int:
        """Cycle of the last data beat of all that is granted."""
        return self._last_end

    def serve(self, clients: list[ReadClient]) -> bool:
        """Grant one or more bursts to the client whose turn it is; False when nobody asks."""
        slot, count = self.slot, len(clients)
        asks = [max(client.request, slot) for client in clients]
        for number, client in enumerate(clients):
            if client.insists > asks[number] >= min(asks[:number] + asks[number + 1 :]):
                asks[number] = client.insists
        best = min(range(count), key=lambda n: (asks[n], (n - self.owner - 1) % count))
        if asks[best] >= NEVER:
            return False
        others = min(ask for number, ask in enumerate(asks) if number != best)
        self.owner = best
        clients[best].issue(self, others)
        return True
