"""How a run ended: status, where each stage waits if it did not end, cycles and counters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from vitral.errors import DeviceError, ExecutionFault
from vitral.isa import Cause, Stage

if TYPE_CHECKING:
    from vitral.program.timeline import Timeline

__all__ = ["Outcome", "Wait", "WaitReason"]


class WaitReason(IntEnum):
    """What a stage is doing; 0..6 are the codes of the state registers' `wait` field.

    QUEUE (fetch: its next instruction's queue is full) and DRAIN (FINISH: the other stages still
    work) are known to simulators of whole programs only; the hardware shows them as busy.
    """

    BUSY = 0
    IDLE = 1
    POP_PREV = 2
    POP_NEXT = 3
    PUSH_PREV = 4
    PUSH_NEXT = 5
    MEMORY = 6
    QUEUE = 7
    DRAIN = 8

    @property
    def is_token(self) -> bool:
        """Whether only another stage can end the wait."""
        return WaitReason.POP_PREV <= self <= WaitReason.PUSH_NEXT


_PREV = {Stage.COMPUTE: Stage.LOAD, Stage.STORE: Stage.COMPUTE}
_NEXT = {Stage.LOAD: Stage.COMPUTE, Stage.COMPUTE: Stage.STORE}


@dataclass(frozen=True)
class Wait:
    """A stage (None: fetch) that did not go on at instruction `index` in program order."""

    stage: Stage | None
    index: int
    reason: WaitReason

    def __str__(self) -> str:
        name = "fetch" if self.stage is None else self.stage.name.lower()
        return f"{name} {self._what()} at instruction {self.index}"

    def _what(self) -> str:
        reason = self.reason
        if reason in (WaitReason.POP_PREV, WaitReason.POP_NEXT):
            return f"waits for {self._neighbour()}"
        if reason in (WaitReason.PUSH_PREV, WaitReason.PUSH_NEXT):
            return f"waits for room to push a token to {self._neighbour()}"
        return {
            WaitReason.IDLE: "is idle",
            WaitReason.MEMORY: "waits for memory",
            WaitReason.QUEUE: "waits for room in a full queue",
            WaitReason.DRAIN: "waits for the other stages to end",
        }.get(reason, "is busy")

    def _neighbour(self) -> str:
        before = self.reason in (WaitReason.POP_PREV, WaitReason.PUSH_PREV)
        other = None if self.stage is None else (_PREV if before else _NEXT).get(self.stage)
        return "a neighbour it does not have" if other is None else other.name.lower()


@dataclass(frozen=True)
class Outcome:
    """Result of one run.

    Parameters
    ----------
    cause, index : Cause, int
        The status; `index` is the number of the faulting instruction, 0 without an error.
    waits : tuple of Wait
        Empty when the program ended; else where it stands, in a deadlock or at the time limit.
    cycles : int or None
        Clock cycles from launch to done, where the simulator or device knows them.
    counters : Mapping[str, int]
        Values by the names of `vitral.registers.COUNTERS`, where known.
    insns : int
        Instructions executed, where known.
    marks : Mapping[int, int]
        Cycle in which each instruction that was asked for had completed, where known.
    mark_counters : Mapping[int, Mapping[str, int]]
        For each of these what the counters of stages and beats held in that cycle, where known.
    timeline : Timeline or None
        What each stage did when, if it was asked for.
    """

    cause: Cause
    index: int
    waits: tuple[Wait, ...] = ()
    cycles: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    insns: int = 0
    marks: Mapping[int, int] = field(default_factory=dict)
    mark_counters: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    timeline: "Timeline | None" = None

    @property
    def ok(self) -> bool:
        """Whether the program ran to its FINISH without an error."""
        return self.cause is Cause.NONE and not self.waits

    @property
    def deadlocked(self) -> bool:
        """Whether no stage can ever go on: each waits for another one."""
        stuck = (WaitReason.IDLE, WaitReason.QUEUE, WaitReason.DRAIN)
        return bool(self.waits) and all(
            wait.reason.is_token or wait.reason in stuck for wait in self.waits
        )

    @property
    def message(self) -> str:
        """One line: "ok", the error and its instruction, or the deadlock and who waits where."""
        if self.cause is not Cause.NONE:
            return f"{self.cause.text} at instruction {self.index}"
        if not self.waits:
            return "ok"
        kind = "deadlock" if self.deadlocked else "time-out"
        return f"{kind}: {'; '.join(str(wait) for wait in self.waits)}"

    def raise_for_status(self) -> None:
        """Nothing when `ok`.

        Raises
        ------
        ExecutionFault
            With cause and instruction when the program stopped with an error status.
        DeviceError
            When it did not end.
        """
        if self.cause is not Cause.NONE:
            raise ExecutionFault(self.message, cause=int(self.cause), index=self.index)
        if self.waits:
            raise DeviceError(self.message)
