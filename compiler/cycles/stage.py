"""What the three stages have in common: instructions in order, tokens, and why they wait."""

from collections import Counter

from vitral.compiler.cycles.queues import Queue, Tokens
from vitral.compiler.cycles.timing import Timing
from vitral.isa import Instruction

__all__ = ["Stage"]


class Stage:
    """A stage that begins its instructions in order, each as soon as all it needs is there.

    `stalls` counts the cycles by what an instruction waited for longest: `idle` (its own fetch),
    `wait_prev`, `wait_next` (tokens), `wait_memory`; `busy` ones belong to earlier instructions.
    """

    def __init__(
        self,
        timing: Timing,
        queue: Queue,
        prev: tuple[Tokens, Tokens] | None,
        following: tuple[Tokens, Tokens] | None,
    ) -> None:
        self.timing = timing
        self.queue = queue
        self.stalls: Counter[str] = Counter()
        self._from_prev, self._to_prev = prev or (Tokens(), Tokens())
        self._from_next, self._to_next = following or (Tokens(), Tokens())
        self._pushed = 0  # instructions whose tokens have been given

    def advance(self) -> bool:
        """Begin and retire what can be decided by now; whether there was anything."""
        queue = self.queue
        first = number = len(queue.begun)
        arrived = len(queue.arrived)
        while number < arrived:
            insn = queue.insns[number]
            if (insn.pop_prev and not self._from_prev.known) or (
                insn.pop_next and not self._from_next.known
            ):
                break
            able = self.able(insn)
            if able is None:
                break
            self._begin(insn, able)
            number += 1
        ended = len(queue.retired)
        if ended < number:
            self.retire()
        return number > first or len(queue.retired) > ended

    def able(self, insn: Instruction) -> tuple[int, int] | None:
        """When the stage has done with what the instruction needs: units, memory. None: unknown."""
        raise NotImplementedError

    def begin(self, insn: Instruction, time: int) -> None:
        """The instruction begins in cycle `time`."""
        raise NotImplementedError

    def retire(self) -> None:
        """Append to `queue.retired` what has ended by what is known."""
        raise NotImplementedError

    def _begin(self, insn: Instruction, able: tuple[int, int]) -> None:
        queue = self.queue
        time = busy = able[0]
        cause = ""
        waits = [("idle", queue.arrived[len(queue.begun)]), ("wait_memory", able[1])]
        if insn.pop_prev:
            waits.append(("wait_prev", self._from_prev.available))
            self._from_prev.take()
        if insn.pop_next:
            waits.append(("wait_next", self._from_next.available))
            self._from_next.take()
        for name, when in waits:
            if when > time:
                time, cause = when, name
        if cause:
            self.stalls[cause] += time - busy
        queue.begun.append(time)
        self.begin(insn, time)

    def push(self, insn: Instruction, time: int) -> None:
        """The instruction's tokens can be taken from cycle `time` on."""
        if insn.push_prev:
            self._to_prev.give(time)
        if insn.push_next:
            self._to_next.give(time)
        self.queue.retired.append(time)
