"""What every simulator and device shares about a program: how it starts, its memory, its outcome.

Needs numpy only.
"""

from vitral.program.dram import GUARD, PAGE, Dram
from vitral.program.folder import ProgramFolder, Region
from vitral.program.launch import Launch
from vitral.program.memory_model import MemoryModel
from vitral.program.onchip import OnChip
from vitral.program.outcome import Outcome, Wait, WaitReason
from vitral.program.timeline import Span, Timeline

__all__ = [
    "GUARD",
    "PAGE",
    "Dram",
    "Launch",
    "MemoryModel",
    "OnChip",
    "Outcome",
    "ProgramFolder",
    "Region",
    "Span",
    "Timeline",
    "Wait",
    "WaitReason",
]
