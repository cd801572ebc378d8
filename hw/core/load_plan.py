"""What follows from the list of memories that a load engine serves."""

from collections.abc import Sequence
from functools import cached_property

from amaranth.hdl import Const, Mux, Value

from vitral.config import CoreConfig
from vitral.hw.core.addressing import element_bytes
from vitral.hw.core.scratchpad import Geometry
from vitral.isa import Memory

__all__ = ["LoadPlan", "memory_geometry"]

SERIAL_BUFFER_BEATS = 32
"""Beats held for memories that take less than a beat per cycle."""


def memory_geometry(config: CoreConfig, memory: Memory) -> Geometry:
    """How the DRAM elements of a memory and the bus's beats fit together."""
    layout = config.layout
    name = "acc" if memory is Memory.ACC_8BIT else memory.name.lower()
    return Geometry(
        element_bytes=element_bytes(config, memory),
        depth=getattr(layout, f"{name}_depth"),
        beat_bytes=layout.beat_bytes,
        parts=layout.param_rows if memory is Memory.PARAM else 1,
    )


class LoadPlan:
    """Numbers, widths and geometries of one load engine.

    A memory's *number* is its place in `memories`. A *target* is an on-chip memory: the same
    number, except that ACC_8BIT shares ACC's.

    Parameters
    ----------
    depth : int
        Commands in flight, a power of two.
    """

    def __init__(self, config: CoreConfig, memories: Sequence[Memory], depth: int) -> None:
        self.config = config
        self.memories = tuple(memories)
        self.depth = depth
        self.geometries = tuple(memory_geometry(config, memory) for memory in memories)

    @property
    def number_bits(self) -> int:
        """Width of a memory's number, and of a target."""
        return max(1, (len(self.memories) - 1).bit_length())

    @property
    def slot_bits(self) -> int:
        """Width of a command slot's number."""
        return (self.depth - 1).bit_length()

    @cached_property
    def element_bits(self) -> int:
        """Width of an element count up to the deepest memory, included."""
        return max(geometry.depth.bit_length() for geometry in self.geometries)

    @cached_property
    def beat_count_bits(self) -> int:
        """Width of a row's number of beats."""
        return 2 + max(geometry.unit_bits for geometry in self.geometries)

    @cached_property
    def serial(self) -> tuple[bool, ...]:
        """Whether each memory takes the units of a beat one by one: narrow elements of ACC."""
        return tuple(
            memory in (Memory.ACC, Memory.ACC_8BIT) and not geometry.wide
            for memory, geometry in zip(self.memories, self.geometries, strict=True)
        )

    @property
    def buffer_beats(self) -> int:
        """Beats to be buffered before the memories; 0 when all keep up with the bus."""
        return SERIAL_BUFFER_BEATS if any(self.serial) else 0

    def number_of(self, memory: Value) -> Value:
        """Number of the memory with that id."""
        return self._choose(memory, {known: n for n, known in enumerate(self.memories)})

    def target_of(self, memory: Value) -> Value:
        """Target of the memory with that id."""
        table = {known: n for n, known in enumerate(self.memories)}
        if Memory.ACC_8BIT in table:
            table[Memory.ACC_8BIT] = table[Memory.ACC]
        return self._choose(memory, table)

    def _choose(self, memory: Value, table: dict[Memory, int]) -> Value:
        chosen: Value = Const(0, self.number_bits)
        for known, value in table.items():
            if value:
                chosen = Mux(memory == known, Const(value, self.number_bits), chosen)
        return chosen
