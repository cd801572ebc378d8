"""On-chip memory behind an AXI4 port, shared with a port of single words."""

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from vitral.hw.bus.axi import Axi4

__all__ = ["AxiRam", "WordPort"]

INCR = 1
OKAY, DECERR = 0, 3


class WordPort(wiring.Signature):
    """Single words of a memory, as their user sees it.

    `write` and `read` are done in the cycle in which their `_ready` is high; `read_data` is that
    word in the next cycle only. `address` counts words.
    """

    def __init__(self, *, address_bits: int, data_bits: int) -> None:
        super().__init__(
            {
                "address": Out(address_bits),
                "write": Out(1),
                "write_ready": In(1),
                "write_data": Out(data_bits),
                "read": Out(1),
                "read_ready": In(1),
                "read_data": In(data_bits),
            }
        )


class AxiRam(wiring.Component):
    """Memory of `nbytes`, a power of two, from address 0 of the port on.

    One beat per cycle and direction; a burst is taken when the last beat of the one before is on
    its way. INCR bursts of full beats within the memory only, all others are answered DECERR and
    write nothing. The word port comes first whenever both want the memory. Contents survive a
    reset.

    Ports
    -----
    axi
        AXI4 slave with one ID.
    word
        `WordPort`, its provider's side.
    """

    def __init__(self, *, nbytes: int, addr_bits: int, data_bits: int) -> None:
        beat_bytes = data_bits // 8
        if nbytes & nbytes - 1 or nbytes < 2 * beat_bytes:
            raise ValueError(f"nbytes must be a power of two above {beat_bytes}, got {nbytes}")
        self._depth = nbytes // beat_bytes
        self._shift = (beat_bytes - 1).bit_length()
        self._data_bits = data_bits
        self._index_bits = (self._depth - 1).bit_length()
        super().__init__(
            {
                "axi": In(Axi4(addr_bits=addr_bits, data_bits=data_bits)),
                "word": In(WordPort(address_bits=self._index_bits, data_bits=data_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=self._data_bits, depth=self._depth, init=[])
        self._read(m, memory.read_port())
        self._write(m, memory.write_port(granularity=8))
        return m

    def _refused(self, address, size, burst):
        """Whether a burst is not one of full beats within the memory."""
        outside = address[self._shift + self._index_bits :].any()
        return outside | (size != self._shift) | (burst != INCR)

    def _index(self, address):
        return address[self._shift :][: self._index_bits]

    def _read(self, m: Module, port) -> None:
        axi, word = self.axi, self.word
        busy, bad, answer_bad = Signal(), Signal(), Signal()
        index = Signal(self._index_bits)
        left = Signal(8)  # beats after the next one
        free, issue, last = Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~axi.rvalid | axi.rready),
            issue.eq(busy & free & ~word.read),
            last.eq(issue & (left == 0)),
            axi.arready.eq(~busy | last),
            word.read_ready.eq(free),
            word.read_data.eq(port.data),
            port.en.eq(issue | (free & word.read)),
            port.addr.eq(index),
            axi.rdata.eq(port.data),
            axi.rresp.eq(answer_bad.replicate(2) & Const(DECERR)),
        ]
        with m.If(word.read):
            m.d.comb += port.addr.eq(word.address)
        with m.If(free):
            m.d.sync += [axi.rvalid.eq(issue), axi.rlast.eq(last), answer_bad.eq(bad)]
        with m.If(issue):
            m.d.sync += [index.eq(index + 1), left.eq(left - 1), busy.eq(~last)]
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [
                busy.eq(1),
                index.eq(self._index(axi.araddr)),
                left.eq(axi.arlen),
                bad.eq(self._refused(axi.araddr, axi.arsize, axi.arburst)),
            ]

    def _write(self, m: Module, port) -> None:
        axi, word = self.axi, self.word
        busy, bad = Signal(), Signal()
        index = Signal(self._index_bits)
        taken, last = Signal(), Signal()
        m.d.comb += [
            axi.awready.eq(~busy & ~axi.bvalid),
            axi.wready.eq(busy & ~word.write),
            taken.eq(axi.wvalid & axi.wready),
            last.eq(taken & axi.wlast),
            word.write_ready.eq(1),
            port.addr.eq(index),
            port.data.eq(axi.wdata),
            port.en.eq(axi.wstrb & (taken & ~bad).replicate(len(axi.wstrb))),
        ]
        with m.If(word.write):
            m.d.comb += [
                port.addr.eq(word.address),
                port.data.eq(word.write_data),
                port.en.eq(Cat(word.write for _ in port.en)),
            ]
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        with m.If(taken):
            m.d.sync += index.eq(index + 1)
        with m.If(last):
            m.d.sync += [
                busy.eq(0),
                axi.bvalid.eq(1),
                axi.bresp.eq(bad.replicate(2) & Const(DECERR)),
            ]
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [
                busy.eq(1),
                index.eq(self._index(axi.awaddr)),
                bad.eq(self._refused(axi.awaddr, axi.awsize, axi.awburst)),
            ]
