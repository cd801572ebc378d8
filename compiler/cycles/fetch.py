"""Fetch: reads blocks of instructions ahead of the queues and hands them out in order."""

from collections.abc import Sequence

from vitral.compiler.cycles.queues import Queue
from vitral.compiler.cycles.reads import NEVER, Data, ReadChannel
from vitral.compiler.cycles.timing import Timing
from vitral.config import INSN_BYTES, CoreConfig
from vitral.registers import BASE_ALIGN

__all__ = ["Fetch"]

_BLOCK = BASE_ALIGN // INSN_BYTES


class Fetch:
    """A client of the read channel. `order` names the queue of each instruction.

    While the queue `ahead` is well filled it lets other clients go first.
    """

    def __init__(
        self, config: CoreConfig, timing: Timing, order: Sequence[Queue], ahead: Queue
    ) -> None:
        beat = config.layout.beat_bytes
        self._timing = timing
        self._order = order
        self._ahead = ahead
        self._depth = config.queue_depth
        self._beats_per_insn = INSN_BYTES / beat
        self._per_word = max(1, INSN_BYTES // beat)
        self._arrivals: list[int] = []  # of each instruction's last beat
        self._assembled: list[int] = []
        self._blocks = 0
        self._free = timing.launch_to_block
        self._handed = -1
        self.request = NEVER

    @property
    def insists(self) -> int:
        queue = self._ahead
        place = len(queue.arrived) - self._timing.fetch_ahead
        if place < 0:
            return 0
        return queue.begun[place] + 2 if place < len(queue.begun) else NEVER

    def advance(self) -> bool:
        """Hand over what has arrived and has room in its queue; ask for the next block."""
        timing, assembled = self._timing, self._assembled
        first = number = len(assembled)
        while number < len(self._arrivals):
            queue = self._order[number]
            place = len(queue.arrived)
            room = 0
            if place >= self._depth:
                if place - self._depth >= len(queue.begun):
                    break
                room = queue.begun[place - self._depth] + 1
            before = assembled[-1] + self._per_word if assembled else 0
            word = max(self._arrivals[number] + timing.beat_to_word, before, self._handed)
            assembled.append(word)
            self._handed = max(word + timing.word_to_queue, room)
            queue.arrived.append(self._handed + timing.queue)
            number += 1
        self._ask()
        return number > first

    def _ask(self) -> None:
        if self.request < NEVER or _BLOCK * self._blocks >= len(self._order):
            return
        used = _BLOCK * (self._blocks + 1 - self._timing.fetch_blocks) - 1
        if used < len(self._assembled):
            room = self._assembled[used] + 2 if used >= 0 else 0
            self.request = max(self._free, room)

    def issue(self, channel: ReadChannel, until: int) -> None:
        """Fetch one block."""
        del until
        first = _BLOCK * self._blocks
        insns = min(_BLOCK, len(self._order) - first)
        beats = max(1, round(insns * self._beats_per_insn))
        data: list[Data] = []
        (address,) = channel.grant(self.request, (beats,), data=data)
        start = data[0][0]
        for n in range(1, insns + 1):
            self._arrivals.append(start + max(1, int(n * self._beats_per_insn)) - 1)
        self._blocks += 1
        self._free = address + 1
        self.request = NEVER
