"""On-chip memories that are filled a bus beat at a time and read by elements.

An element is a memory row, its first byte in the lowest bits. Elements lie in turn in as many
banks as are needed for what happens in one cycle, element e in bank ``e % banks``, row
``e // banks``:

* a beat of several *narrow* elements lands at any element position: a bank for each of them;
  *wide* elements (>= a beat) are written beat by beat and need one bank;
* several elements are read at once, as long as they lie in different banks.

Instances are `lane0`, `lane1`, ..., or `memory` when there is only one.
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
    """Memory of elements; a read of one that is written in the same cycle gives the old one.

    Parameters
    ----------
    reads : int
        Elements read at once; the user sees to it that they lie in different banks.

    Ports
    -----
    write
        `BeatWritePort`; takes effect at the end of the cycle.
    read
        `ReadPort` of one element, or an array of `reads` of them; latency one cycle. Data hold
        until the next read of their bank.

    Attributes
    ----------
    memories : tuple of Memory
        The banks, for simulators.
    """

    def __init__(self, *, element_bytes: int, depth: int, beat_bytes: int, reads: int = 1) -> None:
        self.geometry = Geometry(element_bytes=element_bytes, depth=depth, beat_bytes=beat_bytes)
        self._reads = reads
        banks = max(self._columns, reads)
        bits = element_bytes * 8
        self.memories = tuple(
            Memory(shape=unsigned(bits), depth=max(2, depth // banks), init=[])
            for _ in range(banks)
        )
        port = In(ReadPort(address_bits=_log2(depth), data_bits=bits))
        super().__init__(
            {
                "write": In(BeatWritePort(self.geometry)),
                "read": port if reads == 1 else port.array(reads),
            }
        )

    @property
    def _columns(self) -> int:
        """Elements that a beat may write at once."""
        return 1 if self.geometry.wide else self.geometry.lanes

    def elaborate(self, platform):
        m = Module()
        if len(self.memories) == 1:
            m.submodules.memory = self.memories[0]
        else:
            for number, memory in enumerate(self.memories):
                m.submodules[f"lane{number}"] = memory
        for number in range(len(self.memories)):
            self._write_bank(m, number)
        self._read_banks(m)
        return m

    def _write_bank(self, m: Module, number: int) -> None:
        """Rows of the write port lie in turn in groups of banks, a bank for each column."""
        geometry, columns = self.geometry, self._columns
        group, column = divmod(number, columns)
        group_bits = _log2(len(self.memories) // columns)
        write: MemoryWritePort = self.memories[number].write_port(
            granularity=geometry.unit_bytes * 8
        )
        row = Signal.like(self.write.row, name=f"row_{number}")
        here = row[:group_bits] == group
        if geometry.wide:
            mask = self.write.mask
            data = self.write.data.replicate(geometry.lanes)
            m.d.comb += row.eq(self.write.row)
        else:
            mask = self.write.mask[column]
            data = self.write.data.word_select(column, geometry.element_bytes * 8)
            m.d.comb += row.eq(Mux(self.write.next[column], self.write.row + 1, self.write.row))
        m.d.comb += [
            write.en.eq(Mux(here, mask, 0)),
            write.addr.eq(row[group_bits:]),
            write.data.eq(data),
        ]

    def _read_banks(self, m: Module) -> None:
        bank_bits = _log2(len(self.memories))
        ports = [self.read] if self._reads == 1 else list(self.read)
        outputs = []
        for number, memory in enumerate(self.memories):
            read: MemoryReadPort = memory.read_port()
            m.d.comb += [read.en.eq(0), read.addr.eq(ports[0].address[bank_bits:])]
            for port in ports:
                with m.If(port.en & (port.address[:bank_bits] == number)):
                    m.d.comb += [read.en.eq(1), read.addr.eq(port.address[bank_bits:])]
            outputs.append(read.data)

        # Each port's data come from the bank that it read last.
        if not bank_bits:
            m.d.comb += ports[0].data.eq(outputs[0])
            return
        for number, port in enumerate(ports):
            lane = Signal(bank_bits, name=f"lane_{number}")
            with m.If(port.en):
                m.d.sync += lane.eq(port.address[:bank_bits])
            m.d.comb += port.data.eq(Array(outputs)[lane])
