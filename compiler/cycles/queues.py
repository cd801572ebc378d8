"""Instruction queues and token counters, as lists of times."""

from vitral.isa import Instruction

__all__ = ["Queue", "Tokens"]


class Queue:
    """The instructions of one stage, in order.

    `numbers` are their places in the program, `arrived` the cycles in which they reach the queue's
    output, `begun` and `retired` those in which the stage takes them and has pushed their tokens.
    """

    def __init__(self) -> None:
        self.insns: list[Instruction] = []
        self.numbers: list[int] = []
        self.arrived: list[int] = []
        self.begun: list[int] = []
        self.retired: list[int] = []

    def add(self, number: int, insn: Instruction) -> None:
        self.numbers.append(number)
        self.insns.append(insn)


class Tokens:
    """A dependency counter: when each token can be taken, in order."""

    def __init__(self) -> None:
        self._given: list[int] = []
        self._taken = 0

    def give(self, time: int) -> None:
        self._given.append(time)

    @property
    def known(self) -> bool:
        """Whether it is known when the next token can be taken."""
        return self._taken < len(self._given)

    @property
    def available(self) -> int:
        """When the next token can be taken."""
        return self._given[self._taken]

    def take(self) -> None:
        self._taken += 1
