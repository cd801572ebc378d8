"""Micro-op sequences: each stored once, loaded before its use and again if it was replaced."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.isa import InstructionSet, Load, Memory, Uop

__all__ = ["MicroOps"]

Sequence = tuple[Uop, ...]
_LOAD_LIMIT = 65535


class MicroOps:
    """Where the micro-ops of a segment lie, in DRAM and in the UOP memory.

    Those of as many layers as fit together are loaded at once, as the first of these layers
    starts. When those of a single layer do not fit, each is loaded as it is needed, in a ring.

    Parameters
    ----------
    config : CoreConfig
    layers : iterable of iterables of sequences
        What each layer uses, in order. None may be longer than the UOP memory.
    """

    def __init__(self, config: CoreConfig, layers: Iterable[Iterable[Sequence]]) -> None:
        self._depth = config.layout.uop_depth
        self._isa = InstructionSet.of(config)
        self._groups = _groups([list(dict.fromkeys(layer)) for layer in layers], self._depth)
        self._sizes = {id(group): sum(map(len, group)) for group in self._groups}
        self._uops: list[Uop] = []
        self._group_base: dict[int, int] = {}
        self._dram: list[dict[Sequence, int]] = [self._lay_out(group) for group in self._groups]
        self._loaded: int | None = None  # identity of the group that is on chip as a whole
        self._resident: dict[Sequence, int] = {}
        self._next = 0

    def _lay_out(self, group: list[Sequence]) -> dict[Sequence, int]:
        """DRAM position of each sequence of a group; the group lies in one piece."""
        if id(group) not in self._group_base:
            self._group_base[id(group)] = len(self._uops)
            for sequence in group:
                self._uops.extend(sequence)
        places, place = {}, self._group_base[id(group)]
        for sequence in group:
            places[sequence] = place
            place += len(sequence)
        return places

    @property
    def image(self) -> npt.NDArray[np.uint32]:
        """All micro-ops as they lie in DRAM."""
        return np.array([self._isa.encode_uop(uop) for uop in self._uops], "<u4")

    def request(self, layer: int, sequence: Sequence, dram_base: int) -> tuple[int, list[Load]]:
        """Position of a sequence in the UOP memory, and the LOADs that must come first.

        `dram_base` is the DRAM element at which `image` lies.
        """
        group, places = self._groups[layer], self._dram[layer]
        total = self._sizes[id(group)]
        if self._loaded == id(group):
            return places[sequence] - self._group_base[id(group)], []
        if total <= self._depth:
            self._loaded, self._resident = id(group), {}
            base = self._group_base[id(group)]
            return places[sequence] - base, self._loads(0, dram_base + base, total)
        return self._in_ring(sequence, dram_base + places[sequence])

    def _in_ring(self, sequence: Sequence, dram: int) -> tuple[int, list[Load]]:
        if self._loaded is not None:
            self._loaded, self._resident, self._next = None, {}, 0
        if sequence in self._resident:
            return self._resident[sequence], []
        if len(sequence) > self._depth:
            raise CompileError(
                f"{len(sequence)} micro-ops in a sequence, the UOP memory holds {self._depth}"
            )
        if self._next + len(sequence) > self._depth:
            self._next = 0
        base, end = self._next, self._next + len(sequence)
        self._resident = {
            other: place
            for other, place in self._resident.items()
            if place + len(other) <= base or place >= end
        }
        self._resident[sequence] = base
        self._next = end
        return base, self._loads(base, dram, len(sequence))

    @staticmethod
    def _loads(sram: int, dram: int, count: int) -> list[Load]:
        return [
            Load(
                memory=Memory.UOP,
                sram_base=sram + first,
                dram_base=dram + first,
                y_size=1,
                x_size=min(count - first, _LOAD_LIMIT),
                x_stride=min(count - first, _LOAD_LIMIT),
            )
            for first in range(0, count, _LOAD_LIMIT)
        ]


def _groups(layers: list[list[Sequence]], depth: int) -> list[list[Sequence]]:
    """For each layer the sequences that are loaded with its own: those of neighbours that fit."""
    groups: list[dict[Sequence, None]] = []
    for sequences in layers:
        union = {**groups[-1], **dict.fromkeys(sequences)} if groups else {}
        if groups and sum(map(len, union)) <= depth:
            groups[-1].update(union)
            groups.append(groups[-1])
        else:
            groups.append(dict.fromkeys(sequences))
    lists = {id(group): list(group) for group in groups}
    return [lists[id(group)] for group in groups]
