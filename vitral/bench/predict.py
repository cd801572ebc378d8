"""What the cycle model says about a module."""

from vitral.compiler.cycles import layer_cycles, predict_segment
from vitral.program import MemoryModel
from vitral.runtime.module import Module

__all__ = ["predicted_cycles"]


def predicted_cycles(module: Module, memory: MemoryModel) -> list[int | None]:
    """What the cycle model says about each layer; None for a memory that stalls at random."""
    cycles: list[int | None] = []
    for segment in module.segments:
        if memory.stall_seed is None:
            prediction = predict_segment(module, segment, memory)
            cycles += layer_cycles(module, segment, prediction)
        else:
            cycles += [None] * len(segment.layers)
    return cycles
