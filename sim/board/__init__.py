"""A board without a board: a processor's memory behind a cache, and a core behind registers.

What it leaves out, beside time: it is as strict as a real board, and stricter where boards differ.
"""

from vitral.sim.board.board import SimulatedBoard
from vitral.sim.board.cache import CachedMemory
from vitral.sim.board.logic import FunctionalLogic, Logic
from vitral.sim.board.replay import ReplayBoard, read_record

__all__ = [
    "CachedMemory",
    "FunctionalLogic",
    "Logic",
    "ReplayBoard",
    "SimulatedBoard",
    "read_record",
]
