"""On-chip memories that are filled a bus beat at a time and read an element at a time.

Elements and beats are powers of two in bytes, and either may be the larger one:

* *wide* elements (>= a beat): one memory of element-wide rows, written beat by beat. Instance
  `memory`, row e holds element e, its first byte in the lowest bits.
* *narrow* elements (< a beat): as many banks as a beat has elements, so that a beat lands at any
  element position in one cycle. Instances `lane0`, `lane1`, ...; element e lies in lane
  ``e % lanes``, row ``e // lanes``.
"""

from dataclasses import dataclass

from amaranth import Array, Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.memory import ReadPort as MemoryReadPort
from amaranth.lib.memory import WritePort as MemoryWritePort
from amaranth.lib.wiring import In, Out

from vitral.hw.core.interfaces import ReadPort

__all__ = ["BeatWritePort", "Geometry", "Scratchpad"]


def _log2(value: int) -> int:
    return value.bit_length() - 1


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """How elements of one memory and beats of the bus fit together.

    A *unit* is the smaller of element and beat; a lane is a unit's place in a row.
    """

    element_bytes: int
    depth: int
    beat_bytes: int

    @property
    def wide(self) -> bool:
        """An element is a beat or more."""
        return self.element_bytes >= self.beat_bytes

    @property
    def unit_bytes(self) -> int:
        return min(self.element_bytes, self.beat_bytes)

    @property
    def lanes(self) -> int:
        """Units of a row: beats of a wide element, narrow elements of a beat."""
        return max(self.element_bytes, self.beat_bytes) // self.unit_bytes

    @property
    def lane_bits(self) -> int:
        return _log2(self.lanes)

    @property
    def beat_units(self) -> int:
        """Units of a beat."""
        return self.beat_bytes // self.unit_bytes

    @property
    def unit_shift(self) -> int:
        """log2 of the units of an element."""
        return self.lane_bits if self.wide else 0

    @property
    def rows(self) -> int:
        return self.depth if self.wide else max(2, self.depth // self.lanes)

    @property
    def row_bits(self) -> int:
        return _log2(self.rows)

    @property
    def unit_bits(self) -> int:
        """Width of a unit's number in the memory."""
        return self.row_bits + self.lane_bits


class BeatWritePort(wiring.Signature):
    """Write of the units of one beat.

    Lane i of row `row` takes its place of `data` when bit i of `mask` is set: beat-wide lanes all
    take the whole of `data`, narrow lanes element i of it. Narrow lanes with their bit in `next`
    write row + 1 instead.
    """

    def __init__(self, geometry: Geometry) -> None:
        members = {
            "mask": Out(geometry.lanes),
            "row": Out(geometry.row_bits),
            "data": Out(geometry.beat_bytes * 8),
        }
        if not geometry.wide:
            members["next"] = Out(geometry.lanes)
        super().__init__(members)


class Scratchpad(wiring.Component):
    """1R1W memory; a read of an element that is written in the same cycle gives the old one.

    Ports
    -----
    write
        `BeatWritePort`; takes effect at the end of the cycle.
    read
        `ReadPort` of one element, latency one cycle, data holds.

    Attributes
    ----------
    memories : tuple of Memory
        The arrays behind it (one, or one per lane), for simulators.
    """

    def __init__(self, *, element_bytes: int, depth: int, beat_bytes: int) -> None:
        self.geometry = Geometry(element_bytes=element_bytes, depth=depth, beat_bytes=beat_bytes)
        geometry = self.geometry
        bits = element_bytes * 8
        self.memories = tuple(
            Memory(shape=unsigned(bits), depth=geometry.rows, init=[])
            for _ in range(1 if geometry.wide else geometry.lanes)
        )
        super().__init__(
            {
                "write": In(BeatWritePort(self.geometry)),
                "read": In(ReadPort(address_bits=_log2(depth), data_bits=bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self.geometry.wide:
            self._elaborate_wide(m)
        else:
            self._elaborate_narrow(m)
        return m

    def _elaborate_wide(self, m: Module) -> None:
        geometry = self.geometry
        m.submodules.memory = memory = self.memories[0]
        write: MemoryWritePort = memory.write_port(granularity=geometry.beat_bytes * 8)
        read: MemoryReadPort = memory.read_port()
        m.d.comb += [
            write.en.eq(self.write.mask),
            write.addr.eq(self.write.row),
            write.data.eq(self.write.data.replicate(geometry.lanes)),
            read.en.eq(self.read.en),
            read.addr.eq(self.read.address),
            self.read.data.eq(read.data),
        ]

    def _elaborate_narrow(self, m: Module) -> None:
        geometry = self.geometry
        lane_bits = geometry.lane_bits
        bits = geometry.element_bytes * 8
        lane = Signal(lane_bits)
        row = Signal(geometry.row_bits)
        with m.If(self.read.en):
            m.d.sync += lane.eq(self.read.address[:lane_bits])
        m.d.comb += row.eq(self.read.address[lane_bits:])

        outputs = []
        for index, memory in enumerate(self.memories):
            m.submodules[f"lane{index}"] = memory
            write: MemoryWritePort = memory.write_port()
            read: MemoryReadPort = memory.read_port()
            m.d.comb += [
                write.en.eq(self.write.mask[index]),
                write.addr.eq(Mux(self.write.next[index], self.write.row + 1, self.write.row)),
                write.data.eq(self.write.data.word_select(index, bits)),
                read.en.eq(self.read.en),
                read.addr.eq(row),
            ]
            outputs.append(read.data)
        m.d.comb += self.read.data.eq(Array(outputs)[lane])
