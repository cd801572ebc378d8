"""Frames of a serial line to register and memory accesses."""

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.crc.catalog import CRC16_IBM_3740
from amaranth.lib.wiring import In, Out

from vitral.hw.bridge.ram import WordPort
from vitral.hw.bridge.registers import RegisterAccess
from vitral.hw.bridge.request import REPLY_HEAD, Request
from vitral.hw.bus.axi import Axi4Lite
from vitral.registers import ADDRESS_BITS
from vitral.serial_frames import (
    HEADER_BYTES,
    HELLO_MAGIC,
    MEMORY_WORD,
    REGISTER_WORD,
    REQUEST_SYNC,
    Op,
    Reply,
)

__all__ = ["Bridge"]

BYTE = 8
CRC_BYTES = 2
WORD_BITS = MEMORY_WORD * BYTE


class Bridge(wiring.Component):
    """Answers the requests of `vitral.serial_frames`, one at a time.

    A byte that comes while a request is being done or answered is dropped. A request whose next
    byte does not come within `idle_cycles` is forgotten; one with a damaged header is not answered,
    and the bytes behind it are skipped until the line is quiet for as long. Nothing waits longer
    for the core than `core_cycles`.

    Ports
    -----
    rx_data, rx_valid
        Bytes from the line.
    tx
        Stream of bytes to the line.
    axi
        AXI4-Lite master for the core's registers.
    word
        Memory of `memory_bytes`.
    """

    def __init__(self, *, memory_bytes: int, idle_cycles: int, core_cycles: int = 1024) -> None:
        self._memory_bytes = memory_bytes
        self._idle_cycles = idle_cycles
        self._core_cycles = core_cycles
        self._index_bits = (memory_bytes // MEMORY_WORD - 1).bit_length()
        super().__init__(
            {
                "rx_data": In(BYTE),
                "rx_valid": In(1),
                "tx": Out(stream.Signature(BYTE)),
                "axi": Out(Axi4Lite(addr_bits=ADDRESS_BITS)),
                "word": Out(WordPort(address_bits=self._index_bits, data_bits=WORD_BITS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC16_IBM_3740(data_width=BYTE).create()
        m.submodules.registers = registers = RegisterAccess(
            addr_bits=ADDRESS_BITS, timeout=self._core_cycles
        )
        request = Request(
            m,
            self.rx_valid,
            words=self._memory_bytes // MEMORY_WORD,
            idle_cycles=self._idle_cycles,
        )
        wiring.connect(m, registers.axi, wiring.flipped(self.axi))
        m.d.comb += [
            crc.data.eq(self.rx_data),
            registers.address.eq(request.header.address),
            registers.write.eq(request.header.op == Op.WRITE_REGISTER),
            registers.write_data.eq(request.bits[-REGISTER_WORD * BYTE :]),
            self.word.address.eq(request.index),
            self.word.write_data.eq(request.bits),
        ]
        with m.FSM():
            self._receive(m, request, crc)
            self._take_payload(m, request, crc)
            self._execute(m, request, crc, registers)
            self._reply(m, request, crc, registers)
        return m

    def _receive(self, m: Module, s: Request, crc) -> None:
        with m.State("HUNT"):
            m.d.sync += [s.left.eq(HEADER_BYTES - 2), s.status.eq(Reply.OK)]
            m.d.comb += crc.start.eq(1)
            with m.If(self.rx_valid & (self.rx_data == REQUEST_SYNC)):
                m.d.comb += crc.valid.eq(1)
                m.next = "HEADER"
        with m.State("HEADER"):
            with m.If(self.rx_valid & (s.left >= CRC_BYTES)):
                m.d.sync += s.shift_header(self.rx_data)
            self._take_byte(m, s, crc, "CHECK")
        with m.State("CHECK"):
            m.d.sync += s.first_word()
            with m.If(~crc.match_detected):
                m.next = "SKIP"
            with m.Else():
                with m.If(s.refused):
                    m.d.sync += s.status.eq(Reply.REFUSED)
                m.next = "EXECUTE"
                with m.If(s.writes):
                    m.next = "PAYLOAD"
        with m.State("SKIP"):
            with m.If(s.idle):
                m.next = "HUNT"

    def _take_byte(self, m: Module, s: Request, crc, then: str) -> None:
        """Counts a byte, the last one leads to state `then`; back to the start without one."""
        m.d.comb += crc.valid.eq(self.rx_valid)
        with m.If(self.rx_valid):
            m.d.sync += s.left.eq(s.left - 1)
            with m.If(s.left == 0):
                m.next = then
        with m.Elif(s.idle):
            m.next = "HUNT"

    def _take_payload(self, m: Module, s: Request, crc) -> None:
        with m.State("PAYLOAD"):
            with m.If(self.rx_valid):
                m.d.sync += s.bits.eq(Cat(s.bits[BYTE:], self.rx_data))
            self._take_byte(m, s, crc, "STORE")
        with m.State("STORE"):
            m.d.comb += self.word.write.eq((s.header.op == Op.WRITE_MEMORY) & s.good)
            with m.If(~self.word.write | self.word.write_ready):
                m.d.sync += s.next_word()
                m.next = "PAYLOAD"
                with m.If(s.last_word):
                    m.d.sync += s.left.eq(CRC_BYTES - 1)
                    m.next = "PAYLOAD_CRC"
        with m.State("PAYLOAD_CRC"):
            self._take_byte(m, s, crc, "PAYLOAD_CHECK")
        with m.State("PAYLOAD_CHECK"):
            with m.If(~crc.match_detected):
                m.d.sync += s.status.eq(Reply.DAMAGED)
            m.next = "EXECUTE"

    def _execute(self, m: Module, s: Request, crc, registers: RegisterAccess) -> None:
        known, last = Signal(), Signal(BYTE)  # tag of the last register write
        again = known & (last == s.header.tag)
        with m.State("EXECUTE"):
            m.next = "ANSWER"
            with m.If(s.good):
                with m.Switch(s.header.op):
                    with m.Case(Op.HELLO):
                        m.d.sync += known.eq(0)
                    with m.Case(Op.READ_REGISTER):
                        m.d.comb += registers.start.eq(1)
                        m.next = "REGISTER"
                    with m.Case(Op.WRITE_REGISTER):
                        with m.If(~again):
                            m.d.comb += registers.start.eq(1)
                            m.d.sync += [known.eq(1), last.eq(s.header.tag)]
                            m.next = "REGISTER"
                    with m.Case(Op.CLEAR_MEMORY):
                        m.d.sync += s.bits.eq(0)
                        m.next = "CLEAR"
        with m.State("CLEAR"):
            m.d.comb += self.word.write.eq(1)
            with m.If(self.word.write_ready):
                m.d.sync += s.next_word()
                with m.If(s.last_word):
                    m.next = "ANSWER"
        with m.State("REGISTER"):
            with m.If(registers.done):
                with m.If(registers.silent):
                    m.d.sync += s.status.eq(Reply.SILENT)
                m.next = "ANSWER"

    def _reply(self, m: Module, s: Request, crc, registers: RegisterAccess) -> None:
        with m.State("ANSWER"):
            m.d.comb += crc.start.eq(1)
            m.d.sync += [s.bits.eq(s.reply_head()), s.left.eq(REPLY_HEAD - 1), s.more.eq(0)]
            with m.If(s.reads & s.good):
                m.d.sync += s.more.eq(1)
            m.next = "SEND"
        with m.State("SEND"):
            self._send(m, crc, s.bits)
            with m.If(self.tx.ready):
                m.d.comb += crc.valid.eq(1)
                m.d.sync += [s.bits.eq(s.bits[BYTE:]), s.left.eq(s.left - 1)]
                with m.If(s.left == 0):
                    m.next = "CRC_HIGH"
                    with m.If(s.more):
                        m.next = "FETCH"
        with m.State("FETCH"):
            m.d.comb += self.word.read.eq(s.header.op == Op.READ_MEMORY)
            with m.If(~self.word.read | self.word.read_ready):
                m.d.sync += s.next_word()
                m.d.sync += s.more.eq(~s.last_word)
                m.next = "FETCHED"
        with m.State("FETCHED"):
            with m.Switch(s.header.op):
                with m.Case(Op.READ_MEMORY):
                    m.d.sync += s.bits.eq(self.word.read_data)
                with m.Case(Op.READ_REGISTER):
                    m.d.sync += s.bits.eq(registers.read_data)
                with m.Default():
                    m.d.sync += s.bits.eq(Const(HELLO_MAGIC | self._memory_bytes << 32, WORD_BITS))
            m.next = "SEND"
        with m.State("CRC_HIGH"):
            self._send(m, crc, crc.crc[BYTE:])
            with m.If(self.tx.ready):
                m.next = "CRC_LOW"
        with m.State("CRC_LOW"):
            self._send(m, crc, crc.crc)
            with m.If(self.tx.ready):
                m.next = "HUNT"

    def _send(self, m: Module, crc, byte: Value) -> None:
        m.d.comb += [
            self.tx.valid.eq(1),
            self.tx.payload.eq(byte[:BYTE]),
            crc.data.eq(byte[:BYTE]),
        ]
