"""A legal order of execution, and what each instruction can rely on having completed before it."""

from collections import deque
from collections.abc import Iterator, Sequence

from vitral.config import CoreConfig
from vitral.isa import Finish, Stage
from vitral.program import Wait, WaitReason
from vitral.verify.ops import CHANNELS, Op

__all__ = ["Clock", "TokenOrder"]

Clock = Sequence[int]
"""Per stage, how many of its instructions are known to have completed."""


class TokenOrder:
    """Runs fetch, queues and tokens of a program without its work.

    Each counter has one stage that pushes and one that pops, so the n-th pop takes the n-th push
    in every execution: whether the program ends, and what happens before what, is the same in
    all of them. A clock counts what is ordered by queues and tokens alone; an order that only
    follows from a full queue or counter is not relied upon.

    Iteration gives (op, clock) in an order that some execution has. When it stops, `waits` is
    empty for a program that ended, and `tokens_left` names the counters that are not 0.
    """

    def __init__(self, ops: Sequence[Op], config: CoreConfig) -> None:
        self._ops = ops
        self._depth = config.queue_depth
        self._capacity = config.token_capacity
        self._queues: list[deque[Op]] = [deque() for _ in Stage]
        self._tokens: list[deque[tuple[int, ...]]] = [deque() for _ in CHANNELS]
        self._known = [[0, 0, 0] for _ in Stage]
        self._owed: list[list[int]] = [[] for _ in Stage]
        self._fetched = 0

    def __iter__(self) -> Iterator[tuple[Op, Clock]]:
        moved = True
        while moved:
            moved = self._fetch()
            for stage in Stage:
                while self._queues[stage]:
                    if self._owed[stage]:
                        if not self._push(stage):
                            break
                    elif self._start(stage):
                        op = self._queues[stage][0]
                        yield op, self._known[stage]
                        self._complete(stage, op)
                    else:
                        break
                    moved = True

    def _fetch(self) -> bool:
        start = self._fetched
        while self._fetched < len(self._ops):
            op = self._ops[self._fetched]
            if len(self._queues[op.stage]) >= self._depth:
                break
            self._queues[op.stage].append(op)
            self._fetched += 1
        return self._fetched > start

    def _start(self, stage: Stage) -> bool:
        """Take the tokens of the head of a queue, if all are there, and learn what they know."""
        op = self._queues[stage][0]
        if self._blocked(op) is not None:
            return False
        known = self._known[stage]
        for channel in op.pops:
            known[:] = map(max, known, self._tokens[channel].popleft())
        return True

    def _blocked(self, op: Op) -> WaitReason | None:
        for channel in op.pops:
            if not self._tokens[channel]:
                source, stage = CHANNELS[channel]
                return WaitReason.POP_PREV if source < stage else WaitReason.POP_NEXT
        busy = self._queues[Stage.LOAD] or self._queues[Stage.STORE]
        return WaitReason.DRAIN if isinstance(op.insn, Finish) and busy else None

    def _complete(self, stage: Stage, op: Op) -> None:
        self._known[stage][stage] += 1
        if op.pushes:
            self._owed[stage] = list(op.pushes)
            self._push(stage)
        else:
            self._queues[stage].popleft()

    def _push(self, stage: Stage) -> bool:
        """Push the tokens that have room; the instruction leaves its queue after the last."""
        owed = self._owed[stage]
        ready = [channel for channel in owed if len(self._tokens[channel]) < self._capacity]
        for channel in ready:
            self._tokens[channel].append(tuple(self._known[stage]))
            owed.remove(channel)
        if not owed:
            self._queues[stage].popleft()
        return bool(ready)

    @property
    def waits(self) -> tuple[Wait, ...]:
        """Where fetch and the stages stand for ever."""
        waits = [
            Wait(stage, queue[0].index, self._reason(stage, queue[0]))
            for stage, queue in zip(Stage, self._queues, strict=True)
            if queue
        ]
        if self._fetched < len(self._ops):
            waits.insert(0, Wait(None, self._fetched, WaitReason.QUEUE))
        return tuple(waits)

    def _reason(self, stage: Stage, op: Op) -> WaitReason:
        if self._owed[stage]:
            _, other = CHANNELS[self._owed[stage][0]]
            return WaitReason.PUSH_PREV if other < stage else WaitReason.PUSH_NEXT
        return self._blocked(op) or WaitReason.BUSY

    @property
    def tokens_left(self) -> list[str]:
        return [
            f"{len(tokens)} {source.name.lower()} to {target.name.lower()}"
            for (source, target), tokens in zip(CHANNELS, self._tokens, strict=True)
            if tokens
        ]
