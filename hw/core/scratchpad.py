"""On-chip memories that are filled a bus beat at a time and read by elements.

An element is a memory row, its first byte in the lowest bits. Elements lie in turn in as many
banks as are needed for what happens in one cycle, element e in bank ``e % banks``, row
``e // banks``:

* a beat of several *narrow* elements lands at any element position: a bank for each of them;
  *wide* elements (>= a beat) are written beat by beat and need one bank;
* several elements are read at once, as long as they lie in different banks.

A wide element that is read in several *parts* lies in as many rows, part p of element e in row
``parts * e + p``.

Instances are `lane0`, `lane1`, ..., or `memory` when there is only one.
"""

from dataclasses import dataclass

from amaranth import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.memory import ReadPort as MemoryReadPort
from amaranth.lib.memory import WritePort as MemoryWritePort
from amaranth.lib.wiring import In, Out

from vitral.hw.core.interfaces import ReadPort

__all__ = ["BeatWritePort", "Geometry", "Scratchpad"]

GROUP_BYTES = 32
"""Of a long row, as many bytes are written at once. FPGAs' memory blocks have bytes of 9 bits: what
is written by 8 bytes leaves an eighth of a block empty, by 32 bytes a ninth of that."""


def _log2(value: int) -> int:
    return value.bit_length() - 1


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """How elements of one memory and beats of the bus fit together.

    A *unit* is the smaller of element and beat; a lane is a unit's place in a row. Wide elements
    may be read in `parts`; one is written beat by beat nevertheless.
    """

    element_bytes: int
    depth: int
    beat_bytes: int
    parts: int = 1

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
    write row + 1 instead. Of beat-wide lanes, either one is written, those of an element one after
    the other, or all of one part.
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
    parts : int
        Parts in which a wide element is read, one per cycle.

    Ports
    -----
    write
        `BeatWritePort`; takes effect at the end of the cycle, or, for the beats of a long element,
        at the end of the cycle that completes `GROUP_BYTES`.
    read
        `ReadPort` of one element or part, or an array of `reads` of them; latency one cycle. Data
        hold until the next read of their bank.

    Attributes
    ----------
    memories : tuple of Memory
        The banks, for simulators.
    """

    def __init__(
        self, *, element_bytes: int, depth: int, beat_bytes: int, reads: int = 1, parts: int = 1
    ) -> None:
        self.geometry = Geometry(
            element_bytes=element_bytes, depth=depth, beat_bytes=beat_bytes, parts=parts
        )
        assert parts == 1 or (self.geometry.wide and reads == 1), "only a single bank has parts"
        self._reads = reads
        banks = max(self._columns, reads)
        bits, depth = element_bytes * 8 // parts, depth * parts
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
        if self.geometry.wide:
            self._write_wide(m)
        else:
            for number in range(len(self.memories)):
                self._write_narrow(m, number)
        self._read_banks(m)
        return m

    def _write_wide(self, m: Module) -> None:
        """Elements lie in turn in the banks; `group` beats of a row are written at once."""
        geometry, mask = self.geometry, self.write.mask
        parts, lanes = geometry.parts, geometry.lanes // geometry.parts
        group = max(1, min(GROUP_BYTES // geometry.beat_bytes, lanes // 2))
        data = self._collect(m, group).replicate(lanes // group)
        masks = [mask[p * lanes : (p + 1) * lanes][group - 1 :: group] for p in range(parts)]
        written = masks[0]
        for other in masks[1:]:
            written = written | other
        part = self._part(m, [mask.any() for mask in masks])
        bank_bits = _log2(len(self.memories))
        for number, memory in enumerate(self.memories):
            write: MemoryWritePort = memory.write_port(granularity=group * geometry.beat_bytes * 8)
            here = self.write.row[:bank_bits] == number
            m.d.comb += [
                write.en.eq(Mux(here, written, 0)),
                write.addr.eq(Cat(part, self.write.row[bank_bits:])),
                write.data.eq(data),
            ]

    def _part(self, m: Module, written: list[Value]) -> Value:
        """The number of the part that is written, if any."""
        if len(written) == 1:
            return Const(0, 0)
        part = Signal(range(len(written)))
        for number, here in enumerate(written):
            with m.If(here):
                m.d.comb += part.eq(number)
        return part

    def _collect(self, m: Module, group: int) -> Value:
        """The last `group` beats, or as often the one that is for all lanes of a group.

        The latter may come between the others, and leaves them alone.
        """
        mask, beat = self.write.mask, self.write.data
        lane = [mask[n::group].any() for n in range(group)]
        beats = []
        for n in range(group - 1):
            kept = Signal.like(beat, name=f"kept_{n}", reset_less=True)
            with m.If(lane[n] & ~lane[-1]):
                m.d.sync += kept.eq(beat)
            beats.append(Mux(lane[n], beat, kept))
        return Cat(*beats, beat)

    def _write_narrow(self, m: Module, number: int) -> None:
        """Rows of the write port lie in turn in groups of banks, a bank for each column."""
        geometry, columns = self.geometry, self._columns
        group, column = divmod(number, columns)
        group_bits = _log2(len(self.memories) // columns)
        write: MemoryWritePort = self.memories[number].write_port()
        row = Signal.like(self.write.row, name=f"row_{number}")
        here = row[:group_bits] == group
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
