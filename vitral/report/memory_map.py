"""What lies where in a module's arena."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vitral.config import INSN_BYTES
from vitral.runtime.module import Module
from vitral.runtime.packing import packed_bytes

__all__ = ["Area", "memory_map"]

INSTRUCTIONS, CONSTANTS = "instructions", "weights and constants"
EDGES, ACTIVATIONS = "inputs and outputs", "activations"
KINDS: tuple[str, ...] = (INSTRUCTIONS, CONSTANTS, EDGES, ACTIVATIONS)


@dataclass(frozen=True)
class Area:
    """Bytes `start` to `end` (exclusive) of the arena hold one kind of thing."""

    kind: str
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def memory_map(module: Module) -> list[Area]:
    """The arena from its first byte to its last; neighbours of one kind are one area.

    Constants are micro-ops, weights, parameters and fixed padding. A tensor between layers of a
    program has no place of its own for good: the activations' bytes are used again.
    """
    page = 64
    kinds = np.full(-(-module.arena_bytes // page), KINDS.index(ACTIVATIONS), np.uint8)

    def fill(start: int, size: int, kind: str) -> None:
        kinds[start // page : -(-(start + size) // page)] = KINDS.index(kind)

    for segment in module.segments:
        for tensor in (*segment.inputs, *segment.outputs):
            size = packed_bytes(tensor, module.config)
            fill(tensor.offset, size, EDGES)
    for offset, chunk in module.image.items():
        fill(offset, chunk.nbytes, CONSTANTS)
    for segment in module.segments:
        fill(segment.insn_offset, segment.insn_count * INSN_BYTES, INSTRUCTIONS)
    edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    return [
        Area(KINDS[kinds[start]], start * page, min(end * page, module.arena_bytes))
        for start, end in pairwise(edges)
    ]
