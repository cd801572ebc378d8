"""What the stages of a core did, cycle by cycle."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.isa import Stage
from vitral.program.outcome import WaitReason

__all__ = ["TRAFFIC_CYCLES", "Span", "Timeline"]

TRAFFIC_CYCLES = 64
"""Cycles that one entry of `Timeline.read_beats` covers."""

Cycles = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Span:
    """Cycles `start` to `end` (exclusive) in which a stage did one thing with one instruction."""

    start: int
    end: int
    index: int
    reason: WaitReason


@dataclass(frozen=True, kw_only=True, eq=False)
class Timeline:
    """The run of one program; cycles count from the one after its launch, in which all idle.

    Parameters
    ----------
    cycles : int
        Length of the run.
    spans : mapping from Stage to tuple of Span
        Without gaps, in order, from cycle 0 to `cycles`.
    read_beats, write_beats : uint32 arrays
        Beats on the memory port in each `TRAFFIC_CYCLES` cycles; the rest at the end is left out.
    """

    cycles: int
    spans: dict[Stage, tuple[Span, ...]]
    read_beats: npt.NDArray[np.uint32]
    write_beats: npt.NDArray[np.uint32]

    def count(self, stage: Stage, *reasons: WaitReason) -> int:
        """Cycles that a stage spent on any of these."""
        return sum(span.end - span.start for span in self.spans[stage] if span.reason in reasons)
