"""The request that a bridge is at work on, and its place in it."""

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib import data

from vitral.registers import ADDRESS_BITS
from vitral.serial_frames import MEMORY_WORD, REGISTER_WORD, REPLY_SYNC, Op, Reply

__all__ = ["REPLY_HEAD", "Request"]

BYTE = 8
REPLY_HEAD = 3
"""Bytes of a reply before its payload."""


class Header(data.Struct):
    """A request's bytes between sync and CRC, the first one low."""

    op: 8
    tag: 8
    count: 8
    address: 32


class Request:
    """Registers and what follows from them; the bridge's states change them.

    Attributes
    ----------
    header : View
        Of the request.
    status : Signal
        How it goes; a `Reply`.
    bits : Signal
        Word that is coming in at the top, or going out at the bottom, byte by byte.
    left : Signal
        Bytes to come of the word, header or CRC, less 1.
    index, words : Signal
        Number of the memory word, and of those behind it.
    more : Signal
        Payload words are still to be sent.
    idle : Signal
        No byte came for `idle_cycles`.
    """

    def __init__(self, m: Module, rx_valid: Value, *, words: int, idle_cycles: int) -> None:
        self._words = words
        self.header = Signal(Header)
        self.status = Signal(BYTE)
        self.bits = Signal(MEMORY_WORD * BYTE)
        self.left = Signal(4)
        self.index = Signal(range(words))
        self.words = Signal(BYTE)
        self.more = Signal()
        self.idle = Signal()
        timer = Signal(range(idle_cycles + 1))
        with m.If(rx_valid):
            m.d.sync += timer.eq(idle_cycles)
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        m.d.comb += self.idle.eq(timer == 0)

    def _is(self, *ops: Op) -> Value:
        return Cat(self.header.op == op for op in ops).any()

    @property
    def good(self) -> Value:
        return self.status == Reply.OK

    @property
    def writes(self) -> Value:
        """It comes with a payload."""
        return self._is(Op.WRITE_REGISTER, Op.WRITE_MEMORY)

    @property
    def reads(self) -> Value:
        """It is answered with a payload."""
        return self._is(Op.HELLO, Op.READ_REGISTER, Op.READ_MEMORY)

    @property
    def refused(self) -> Value:
        """It asks for what is not there."""
        first = self.header.address[3:]
        registers = self._is(Op.READ_REGISTER, Op.WRITE_REGISTER)
        no_register = self.header.address[ADDRESS_BITS:].any() | self.header.address[:2].any()
        no_memory = (first + self.header.count >= self._words) | self.header.address[:3].any()
        return (
            (registers & (no_register | (self.header.count != 0)))
            | (self._is(Op.READ_MEMORY, Op.WRITE_MEMORY, Op.CLEAR_MEMORY) & no_memory)
            | (self.header.op > max(Op))
        )

    @property
    def last_word(self) -> Value:
        return self.words == 0

    def shift_header(self, byte: Value) -> list:
        """Assignments that take a byte of the header in."""
        raw = self.header.as_value()
        return [raw.eq(Cat(raw[BYTE:], byte))]

    def first_word(self) -> list:
        """Assignments that begin the payload."""
        return [
            self.index.eq(self.header.address[3:]),
            self.words.eq(self.header.count),
            self.left.eq(self._word_bytes() - 1),
        ]

    def next_word(self) -> list:
        return [
            self.index.eq(self.index + 1),
            self.words.eq(self.words - 1),
            self.left.eq(self._word_bytes() - 1),
        ]

    def _word_bytes(self) -> Value:
        registers = self._is(Op.READ_REGISTER, Op.WRITE_REGISTER)
        return Const(MEMORY_WORD) - (registers << 2)

    def reply_head(self) -> Value:
        """Bytes that a reply begins with."""
        return Cat(Const(REPLY_SYNC, BYTE), self.status, self.header.tag)


assert MEMORY_WORD - REGISTER_WORD == 1 << 2, "Request._word_bytes"
