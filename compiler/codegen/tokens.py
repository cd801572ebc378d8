"""Turns "this instruction comes after those" into the dependency tokens of the three queues.

Every wait is an edge from an earlier to a later instruction in program order. Of the edges from
one queue to another only those are kept that say more than the ones before them, so they rise on
both ends: each edge is one token, pushed by one instruction and popped by one other, in the same
order. No token is left at the end, and executing the program one instruction at a time in program
order never blocks; as each counter has one producer and one consumer, no other order of execution
can block either, whatever the depth of the queues.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable

from vitral.compiler.codegen.changed import changed
from vitral.isa import Instruction, Load, Memory, Stage, Store, queue_of

__all__ = ["NOP", "TokenStream"]

NOP: dict[Stage, Instruction] = {
    Stage.LOAD: Load(memory=Memory.INP),
    Stage.COMPUTE: Load(memory=Memory.UOP),
    Stage.STORE: Store(),
}
"""The instruction of each queue that does nothing but move tokens."""

_CHANNELS = (
    (Stage.LOAD, Stage.COMPUTE),
    (Stage.COMPUTE, Stage.LOAD),
    (Stage.COMPUTE, Stage.STORE),
    (Stage.STORE, Stage.COMPUTE),
)
_Channel = tuple[Stage, Stage]


class TokenStream:
    """Collects instructions in program order and gives them their token flags.

    An instruction is named by its handle, a number that rises in program order; `finish` tells
    its final position, as instructions that only move tokens may come in between.

    Parameters
    ----------
    capacity : int
        Tokens that each dependency counter holds, at least 1.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._insns: list[Instruction] = []
        self._stages: list[Stage] = []
        self._waits: dict[_Channel, list[tuple[int, int]]] = {c: [] for c in _CHANNELS}

    def __len__(self) -> int:
        return len(self._insns)

    def append(self, insn: Instruction, after: Iterable[int] = ()) -> int:
        """Add an instruction that starts when those of the handles `after` have ended.

        Negative handles are ignored, and so are those of the same queue, which is in order.
        A wait between load and store goes through the compute queue, by a NOP where no compute
        instruction already waits for as much.
        """
        stage = queue_of(insn)
        latest: dict[Stage, int] = {}
        for handle in after:
            if handle >= 0:
                origin = self._stages[handle]
                latest[origin] = max(latest.get(origin, -1), handle)
        latest.pop(stage, None)
        far = {Stage.LOAD: Stage.STORE, Stage.STORE: Stage.LOAD}.get(stage)
        if far is not None and far in latest:
            relay = self._relay(far, latest.pop(far))
            latest[Stage.COMPUTE] = max(latest.get(Stage.COMPUTE, -1), relay)
        handle = self._add(insn, stage)
        for origin, producer in latest.items():
            self._wait((origin, stage), producer, handle)
        return handle

    def _add(self, insn: Instruction, stage: Stage) -> int:
        self._insns.append(insn)
        self._stages.append(stage)
        return len(self._insns) - 1

    def _wait(self, channel: _Channel, producer: int, consumer: int) -> None:
        waits = self._waits[channel]
        if not waits or waits[-1][0] < producer:
            waits.append((producer, consumer))

    def _relay(self, origin: Stage, producer: int) -> int:
        """The first compute instruction that starts after `producer`, a load or store."""
        waits = self._waits[origin, Stage.COMPUTE]
        place = bisect_left(waits, producer, key=lambda wait: wait[0])
        if place < len(waits):
            return waits[place][1]
        nop = self._add(NOP[Stage.COMPUTE], Stage.COMPUTE)
        self._wait((origin, Stage.COMPUTE), producer, nop)
        return nop

    def finish(self) -> tuple[list[Instruction], list[int]]:
        """The instructions with their flags, and for each handle its position among them.

        Where a counter would overflow, a NOP of the consuming queue takes its oldest token early.
        """
        pushes = {c: {producer for producer, _ in waits} for c, waits in self._waits.items()}
        pops = {c: {consumer for _, consumer in waits} for c, waits in self._waits.items()}
        pending: dict[_Channel, deque[int]] = {
            c: deque(consumer for _, consumer in waits) for c, waits in self._waits.items()
        }
        held = dict.fromkeys(_CHANNELS, 0)
        result: list[Instruction] = []
        positions: list[int] = []
        for handle, insn in enumerate(self._insns):
            flags: dict[str, bool] = {}
            for channel in _CHANNELS:
                if handle in pops[channel]:
                    pending[channel].popleft()
                    held[channel] -= 1
                    flags[_pop_flag(channel)] = True
            for channel in _CHANNELS:
                if handle not in pushes[channel]:
                    continue
                if held[channel] == self._capacity:
                    pops[channel].discard(pending[channel].popleft())
                    held[channel] -= 1
                    result.append(changed(NOP[channel[1]], **{_pop_flag(channel): True}))
                held[channel] += 1
                flags[_push_flag(channel)] = True
            positions.append(len(result))
            result.append(changed(insn, **flags) if flags else insn)
        return result, positions


def _pop_flag(channel: _Channel) -> str:
    return "pop_prev" if channel[0] < channel[1] else "pop_next"


def _push_flag(channel: _Channel) -> str:
    return "push_next" if channel[0] < channel[1] else "push_prev"
