"""Signatures by which the parts of the core are wired together; directions as the user sees them.

A port that a component *offers* is declared ``In(...)``, one that it *uses* ``Out(...)``.
"""

from enum import IntEnum

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig

__all__ = [
    "CAUSE_BITS",
    "Fault",
    "INDEX_BITS",
    "InsnWord",
    "LoadCommand",
    "ReadPort",
    "StoreCommand",
    "Ticket",
    "TokenPort",
    "WAIT_BITS",
    "Wait",
    "WritePort",
    "granule_bytes",
]

INDEX_BITS = 24
"""Width of an instruction's number in program order."""

CAUSE_BITS = 8
WAIT_BITS = 4
"""Width of the wait code that each stage shows (see registers: `load_state.wait`)."""


class Wait(IntEnum):
    """What a stage does or waits for, as its `wait` output and its state register show it."""

    BUSY = 0
    IDLE = 1
    POP_PREV = 2
    POP_NEXT = 3
    PUSH_PREV = 4
    PUSH_NEXT = 5
    MEMORY = 6


def granule_bytes(config: CoreConfig) -> int:
    """Bytes that the store stage hands over at once: a beat, or an OUT element if smaller."""
    return config.layout.granule_bytes


class InsnWord(data.Struct):
    """A fetched instruction and its number in program order."""

    word: 128
    index: INDEX_BITS


class Ticket(data.Struct):
    """Names an instruction through a DMA engine; `tag` is opaque to the engine."""

    index: INDEX_BITS
    tag: 2


class LoadCommand(data.Struct):
    """A LOAD as the load engine takes it: the instruction's fields in elements, unmodified."""

    ticket: Ticket
    memory: 3
    sram_base: 16
    dram_base: 32
    y_size: 16
    x_size: 16
    x_stride: 16
    y_pad_0: 4
    y_pad_1: 4
    x_pad_0: 4
    x_pad_1: 4
    pad_value: 1


class StoreCommand(data.Struct):
    """A STORE as the store engine takes it. `wide` is the 32-bit form (base and size of ACC)."""

    ticket: Ticket
    wide: 1
    dram_base: 32
    y_size: 16
    x_size: 16
    x_stride: 16


class TokenPort(wiring.Signature):
    """A stage's link to one neighbour.

    `available` and `room` hold in the same cycle; `take` (only while `available`) removes a
    token that the neighbour gave, `give` (only while `room`) hands it one.
    """

    def __init__(self) -> None:
        super().__init__({"available": In(1), "take": Out(1), "room": In(1), "give": Out(1)})


class Fault(wiring.Signature):
    """Reports an error status: `valid` for one cycle or more; the first one in the core stays."""

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "cause": Out(CAUSE_BITS), "index": Out(INDEX_BITS)})


class ReadPort(wiring.Signature):
    """Read of one element of an on-chip memory: `data` belongs to the last cycle with `en`.

    `data` is valid the cycle after `en` and holds until the next `en`.
    """

    def __init__(self, *, address_bits: int, data_bits: int) -> None:
        super().__init__({"en": Out(1), "address": Out(address_bits), "data": In(data_bits)})


class WritePort(wiring.Signature):
    """Write of a memory row of one or more elements, `mask` has one bit per element.

    `row` counts rows; an element's number is ``row * elements + position``.
    """

    def __init__(self, *, row_bits: int, elements: int, element_bits: int) -> None:
        super().__init__(
            {
                "mask": Out(elements),
                "row": Out(row_bits),
                "data": Out(elements * element_bits),
            }
        )
