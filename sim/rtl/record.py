"""Asks the harness what the stages did, and puts the answer into the project's terms."""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from vitral.config import INSN_BYTES, CoreConfig
from vitral.errors import DeviceError
from vitral.isa import DecodeError, InstructionSet, Stage, queue_of
from vitral.program import Dram, Launch, WaitReason
from vitral.program.timeline import Span, Timeline
from vitral.registers import register
from vitral.sim.rtl.library import Harness

__all__ = ["Recorder"]

STAGES = (Stage.LOAD, Stage.COMPUTE, Stage.STORE)
"""In the order of `timeline.h`."""
KINDS = {
    "busy": (WaitReason.BUSY,),
    "idle": (WaitReason.IDLE,),
    "wait_prev": (WaitReason.POP_PREV,),
    "wait_next": (WaitReason.POP_NEXT,),
    "wait_push": (WaitReason.PUSH_PREV, WaitReason.PUSH_NEXT),
    "wait_memory": (WaitReason.MEMORY,),
}
"""A stage's counters, by what the name of the register ends in."""

_MARK = np.dtype(
    [
        ("stage", np.uint64),
        ("index", np.uint64),
        ("seen", np.uint64),
        ("cycle", np.uint64),
        ("read_beats", np.uint64),
        ("write_beats", np.uint64),
        ("counts", np.uint64, (len(STAGES), WaitReason.MEMORY + 1)),
    ]
)
_CHANGE = np.dtype([("cycle", np.uint64), ("state", np.uint32), ("stage", np.uint32)])
_TRAFFIC = np.dtype([("read", np.uint32), ("write", np.uint32)])


class Recorder:
    """What to look for during one run, and what was seen.

    Parameters
    ----------
    marks : collection of int
        Numbers of the instructions whose end is wanted.
    keep : bool
        Whether the whole timeline is wanted.

    Raises
    ------
    DeviceError
        When a mark is no instruction of the program, or the library does not show its stages.
    """

    def __init__(
        self,
        harness: Harness,
        config: CoreConfig,
        launch: Launch,
        dram: Dram,
        marks: Collection[int],
        *,
        keep: bool,
    ) -> None:
        self._harness = harness
        self._keep = keep
        wanted = np.zeros(len(marks), _MARK)
        isa = InstructionSet.of(config)
        for place, mark in enumerate(sorted(marks)):
            wanted[place]["stage"] = STAGES.index(_stage_of(mark, isa, launch, dram))
            wanted[place]["index"] = mark
        rows = wanted.view(np.uint64).reshape(len(wanted), _MARK.itemsize // 8)
        if not harness.start_timeline(rows, keep=keep) and (keep or len(wanted)):
            raise DeviceError("the core's Verilog has no state words by the names of the registers")

    def finish(self, cycles: int) -> None:
        """Stop looking; the program took `cycles`."""
        self._harness.stop_timeline()
        found = self._harness.timeline("marks", _MARK)
        found = found[found["seen"] > 0]
        self.marks = {int(m["index"]): int(m["cycle"]) for m in found}
        self.counters = {int(m["index"]): _counters(m) for m in found}
        self.timeline = self._timeline(cycles) if self._keep else None

    def _timeline(self, cycles: int) -> Timeline:
        changes = self._harness.timeline("changes", _CHANGE)
        traffic = self._harness.timeline("traffic", _TRAFFIC)
        spans = {
            stage: _spans(changes[changes["stage"] == number], stage, cycles)
            for number, stage in enumerate(STAGES)
        }
        return Timeline(
            cycles=cycles,
            spans=spans,
            read_beats=np.array(traffic["read"]),
            write_beats=np.array(traffic["write"]),
        )


def _counters(mark: npt.NDArray) -> dict[str, int]:
    """Under the names of `vitral.registers.COUNTERS`."""
    result = {
        f"{stage.name.lower()}_{kind}": sum(int(mark["counts"][number][reason]) for reason in codes)
        for number, stage in enumerate(STAGES)
        for kind, codes in KINDS.items()
    }
    beats = {name: int(mark[name]) for name in ("read_beats", "write_beats")}
    return {"cycles": int(mark["cycle"]), **result, **beats}


def _spans(changes: npt.NDArray, stage: Stage, cycles: int) -> tuple[Span, ...]:
    entry = register(f"{stage.name.lower()}_state")
    starts = [int(cycle) for cycle in changes["cycle"]]
    ends = [*starts[1:], cycles]
    states = [int(state) for state in changes["state"]]
    return tuple(
        Span(start, end, entry["index"].extract(state), WaitReason(entry["wait"].extract(state)))
        for start, end, state in zip(starts, ends, states, strict=True)
    )


def _stage_of(mark: int, isa: InstructionSet, launch: Launch, dram: Dram) -> Stage:
    if not 0 <= mark < launch.insn_count:
        raise DeviceError(f"marks number instructions 0..{launch.insn_count - 1}, got {mark}")
    word = int.from_bytes(dram.read(launch.insn_base + mark * INSN_BYTES, INSN_BYTES), "little")
    try:
        return queue_of(isa.decode(word, launch.profile))
    except DecodeError:
        return Stage.COMPUTE  # the core will stop at it
