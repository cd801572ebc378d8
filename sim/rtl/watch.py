"""Looks at a running core now and then: which instructions are done, and whether time is up."""

import time
from collections.abc import Callable, Collection

from vitral.config import INSN_BYTES, CoreConfig
from vitral.errors import DeviceError
from vitral.isa import DecodeError, InstructionSet, Stage, queue_of
from vitral.program import Dram, Launch, WaitReason
from vitral.registers import register

__all__ = ["Watch"]

MARK_STEPS = (2, 16, 64)
"""Cycles between two looks while a marked instruction executes, is one of the next, or is far."""
NEXT = 3

TIME_STEP = 1 << 14
"""Cycles between two looks at the host's clock."""


class Watch:
    """What to look for during one run.

    An instruction is seen as done when its stage has gone on to a later one, within about ten
    cycles, or 64 when instructions before it are shorter than that. The register port is
    independent of the rest of the core, so looking changes no cycle count.

    Parameters
    ----------
    marks : collection of int
        Numbers of the instructions to look for.
    max_seconds : float or None
        Time on the host that the run may take.
    """

    def __init__(
        self,
        config: CoreConfig,
        launch: Launch,
        dram: Dram,
        marks: Collection[int],
        max_seconds: float | None,
    ) -> None:
        self.seen: dict[int, int] = {}
        self._deadline = None if max_seconds is None else time.monotonic() + max_seconds
        self._pending: dict[Stage, list[int]] = {}
        self._distance = NEXT
        isa = InstructionSet.of(config)
        for mark in sorted(marks, reverse=True):
            self._pending.setdefault(_stage_of(mark, isa, launch, dram), []).append(mark)

    @property
    def step(self) -> int | None:
        """Cycles until the next look; None when there is nothing to look for."""
        if self._pending:
            return MARK_STEPS[(self._distance > 0) + (self._distance >= NEXT)]
        return None if self._deadline is None else TIME_STEP

    @property
    def expired(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    def look(self, read_register: Callable[[str], int], cycle: int) -> None:
        """Note the marks that are done in `cycle`, counted from the launch."""
        self._distance = NEXT
        for stage, marks in list(self._pending.items()):
            name = f"{stage.name.lower()}_state"
            state = read_register(name)
            if register(name)["wait"].extract(state) == WaitReason.IDLE:
                continue  # its index may be that of an instruction long done
            index = register(name)["index"].extract(state)
            while marks and marks[-1] < index:
                self.seen[marks.pop()] = cycle
            if marks:
                self._distance = min(self._distance, marks[-1] - index)
            else:
                del self._pending[stage]


def _stage_of(mark: int, isa: InstructionSet, launch: Launch, dram: Dram) -> Stage:
    if not 0 <= mark < launch.insn_count:
        raise DeviceError(f"marks number instructions 0..{launch.insn_count - 1}, got {mark}")
    word = int.from_bytes(dram.read(launch.insn_base + mark * INSN_BYTES, INSN_BYTES), "little")
    try:
        return queue_of(isa.decode(word, launch.profile))
    except DecodeError:
        return Stage.COMPUTE  # the core will stop at it
