"""Turns beats and pad elements into writes of an on-chip memory."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.interfaces import WritePort
from vitral.hw.core.pads import PAD_VALUE_BITS
from vitral.hw.core.scratchpad import BeatWritePort, Geometry

__all__ = ["AccSink", "ScratchpadSink"]

LANE_BITS = 32
BYTE_BITS = 8


def _unit_ports(geometry: Geometry) -> dict[str, wiring.Member]:
    """Where a beat belongs, as `BeatCursor.row` says it."""
    lane_bits = max(1, geometry.beat_units.bit_length() - 1)
    return {
        "position": In(geometry.unit_bits),
        "left": In(geometry.unit_bits + 2),
        "head": In(lane_bits),
    }


class ScratchpadSink(wiring.Component):
    """Writes beats into a `Scratchpad` in the cycle they come, pad elements in the others.

    Ports
    -----
    beat
        `data` is for this memory; `position`, `left`, `head` as in `beat_row_layout`.
    pad
        There is a pad element `pad_element`, filled with the low 8 bits of `pad_value`, a part per
        cycle; `pad_taken` when the last part is written in this cycle.
    write
        To the memory.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        element_bits = geometry.depth.bit_length() - 1
        super().__init__(
            {
                "beat": In(1),
                "data": In(geometry.beat_bytes * 8),
                **_unit_ports(geometry),
                "pad": In(1),
                "pad_element": In(element_bits),
                "pad_value": In(PAD_VALUE_BITS),
                "pad_taken": Out(1),
                "write": Out(BeatWritePort(geometry)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self._geometry.wide:
            self._write_wide(m)
        else:
            self._write_narrow(m)
        return m

    def _pad_beat(self) -> Value:
        return self.pad_value[:BYTE_BITS].replicate(self._geometry.beat_bytes)

    def _write_wide(self, m: Module) -> None:
        lane_bits, parts = self._geometry.lane_bits, self._geometry.parts
        lanes = self._geometry.lanes // parts
        pads: Value = self.pad.replicate(lanes)
        pads_part = self.pad & ~self.beat
        m.d.comb += self.pad_taken.eq(pads_part)
        if parts > 1:
            part = Signal(range(parts))
            with m.If(pads_part):
                m.d.sync += part.eq(part + 1)
            m.d.comb += self.pad_taken.eq(pads_part & (part == parts - 1))
            pads = pads << (part * lanes)
        with m.If(self.beat):
            m.d.comb += [
                self.write.mask.eq(1 << self.position[:lane_bits]),
                self.write.row.eq(self.position[lane_bits:]),
                self.write.data.eq(self.data),
            ]
        with m.Else():
            m.d.comb += [
                self.write.mask.eq(pads),
                self.write.row.eq(self.pad_element),
                self.write.data.eq(self._pad_beat()),
            ]

    def _write_narrow(self, m: Module) -> None:
        """Rotates the beat: its element i goes to lane (i + position) mod lanes."""
        geometry = self._geometry
        lanes = geometry.lanes
        m.d.comb += self.pad_taken.eq(self.pad & ~self.beat)
        wanted = Signal(lanes)
        turn = Signal(geometry.lane_bits)
        m.d.comb += turn.eq(self.position[: geometry.lane_bits])
        for lane in range(lanes):
            begun = lane >= self.head if lane < lanes - 1 else 1
            m.d.comb += wanted[lane].eq((lane < self.left) & begun)
        with m.If(self.beat):
            m.d.comb += self.write.row.eq(self.position[geometry.lane_bits :])
            with m.Switch(turn):
                for amount in range(lanes):
                    with m.Case(amount):
                        m.d.comb += [
                            self.write.mask.eq(wanted.rotate_left(amount)),
                            self.write.next.eq((1 << amount) - 1),
                            self.write.data.eq(
                                self.data.rotate_left(amount * geometry.element_bytes * 8)
                            ),
                        ]
        with m.Else():
            m.d.comb += [
                self.write.mask.eq(self.pad << self.pad_element[: geometry.lane_bits]),
                self.write.row.eq(self.pad_element[geometry.lane_bits :]),
                self.write.data.eq(self._pad_beat()),
            ]


class AccSink(wiring.Component):
    """Collects beats into ACC elements and writes each in the cycle after its last beat.

    Elements of int32 lanes, or of int8 lanes that are sign-extended. Units of narrow forms come
    one per cycle (`head` is the unit's place in the beat).

    Ports
    -----
    beat, bytes
        `data` is for ACC; with `bytes` its units belong to int8 elements.
    position, bytes_position, head
        Unit of the beat in either form.
    pad, pad_element, pad_value, pad_taken
        As in `ScratchpadSink`, the value being the int32 of all lanes.
    write
        Of whole elements.
    pending
        A collected element is written in this cycle.
    """

    def __init__(self, config: CoreConfig, words: Geometry, octets: Geometry) -> None:
        self._config = config
        self._words = words
        self._octets = octets
        layout = config.layout
        lane_bits = max(1, words.beat_units.bit_length() - 1, octets.beat_units.bit_length() - 1)
        super().__init__(
            {
                "beat": In(1),
                "bytes": In(1),
                "data": In(config.data_bits),
                "position": In(max(words.unit_bits, octets.unit_bits)),
                "head": In(lane_bits),
                "pad": In(1),
                "pad_element": In(layout.acc_index_bits),
                "pad_value": In(PAD_VALUE_BITS),
                "pad_taken": Out(1),
                "write": Out(
                    WritePort(
                        row_bits=layout.acc_index_bits,
                        elements=1,
                        element_bits=layout.acc_bytes * 8,
                    )
                ),
                "pending": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        lanes = self._config.layout.acc_bytes * 8 // LANE_BITS
        collected = [Signal(LANE_BITS, name=f"lane_{k}") for k in range(lanes)]
        row = Signal(self._config.layout.acc_index_bits)

        with m.If(self.beat & self.bytes):
            self._collect(m, self._octets, collected, row, BYTE_BITS)
        with m.Elif(self.beat):
            self._collect(m, self._words, collected, row, LANE_BITS)
        with m.Else():
            m.d.sync += self.pending.eq(0)

        m.d.comb += [
            self.pad_taken.eq(self.pad & ~self.pending),
            self.write.mask.eq(self.pending | self.pad),
            self.write.row.eq(Mux(self.pending, row, self.pad_element)),
            self.write.data.eq(Mux(self.pending, Cat(*collected), self.pad_value.replicate(lanes))),
        ]
        return m

    def _collect(
        self, m: Module, geometry: Geometry, collected: list[Signal], row: Signal, bits: int
    ) -> None:
        """Puts the unit's lanes of `bits` bits in place; the last unit completes the element."""
        unit = self.position[: geometry.unit_bits]
        if geometry.wide:
            part = unit[: geometry.lane_bits]
            values = self.data
            m.d.sync += row.eq(unit[geometry.lane_bits :])
            m.d.sync += self.pending.eq(part == geometry.lanes - 1)
        else:
            part = None
            values = self.data.word_select(self.head[: geometry.lane_bits], geometry.unit_bytes * 8)
            m.d.sync += row.eq(unit + self.head)
            m.d.sync += self.pending.eq(1)
        lanes = geometry.unit_bytes * 8 // bits
        for number, lane in enumerate(collected):
            value = values.word_select(number % lanes, bits).as_signed()
            if part is None or geometry.lanes == 1:
                m.d.sync += lane.eq(value)
            else:
                with m.If(part == number // lanes):
                    m.d.sync += lane.eq(value)
