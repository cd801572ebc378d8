"""The write channel: data in order, a limit of bursts in flight, acknowledgements in order."""

from collections import deque
from collections.abc import Sequence

from vitral.compiler.cycles.timing import Timing
from vitral.config import CoreConfig
from vitral.program import MemoryModel

__all__ = ["WriteChannel"]


class WriteChannel:
    """Times of the bursts of STOREs, one STORE after the other. `beats` counts data."""

    def __init__(self, config: CoreConfig, memory: MemoryModel, timing: Timing) -> None:
        self._timing = timing
        self._latency = max(1, memory.write_latency)
        outstanding = max(2, min(config.outstanding, memory.outstanding))
        self._acks: deque[int] = deque([-timing.ack_to_burst] * outstanding, outstanding)
        self._address = 0
        self._end = -1
        self.beats = 0

    def send(
        self, bursts: Sequence[int], address: int, data: int, before_last: int
    ) -> tuple[int, int, int]:
        """Bursts whose addresses may go from cycle `address` on and data, a beat a cycle, `data`.

        Returns
        -------
        tuple of int
            Cycle in which the last row's addresses begin to go, of the last beat, and of the
            last acknowledgement.
        """
        timing, first_of_last = self._timing, address
        ahead = self._address
        for number, beats in enumerate(bursts):
            ahead = max(ahead + 1, address, self._acks[0] + timing.ack_to_burst)
            if number < before_last:
                first_of_last = ahead
            self._end = max(self._end + 1, data, ahead + timing.address_to_data) + beats - 1
            data += beats
            self._acks.append(max(self._end + self._latency, self._acks[-1] + 1))
            self.beats += beats
        self._address = ahead
        return first_of_last, self._end, self._acks[-1]
