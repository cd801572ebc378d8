"""The register port: an AXI4-Lite slave built from the map in `vitral.registers`."""

from collections.abc import Iterator

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bus.axi import Axi4Lite
from vitral.registers import ADDRESS_BITS, BASE_ALIGN, REGISTERS, Access, Register

__all__ = ["RegisterFile"]

WORD_BITS = 32
WORD_BYTES = 4
_CONSTANTS = ("id", "version", "digest")


def _is_base(entry: Register) -> bool:
    return entry.access is Access.WRITE and entry.name.endswith("_base")


class RegisterFile(wiring.Component):
    """Registers behind AXI4-Lite.

    Address and data of a write may come in any order; byte strobes are honoured; offsets without
    a register read as 0 and ignore writes; every access is answered OKAY. One write takes three
    cycles, one read two.

    Ports (one or more per register, named after it)
    -----
    <rw register>
        Output, its present value; 64 bits when it has two words.
    <ro register>
        Input, what it reads as. `id`, `version` and `digest` have no port.
    <wo register>
        Output, the word being written during one cycle, else 0.
    <w1c register>
        Input, what it reads as, and `<register>_clear`, output, the ones being written.
    """

    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        members: dict[str, wiring.Member] = {"axi": In(Axi4Lite(addr_bits=ADDRESS_BITS))}
        for entry in REGISTERS:
            bits = WORD_BITS * entry.words
            if entry.access is Access.WRITE:
                members[entry.name] = Out(
                    bits,
                    init=entry.reset,  # pyright: ignore[reportCallIssue]  # missing in the stubs
                )
            elif entry.access is Access.PULSE:
                members[entry.name] = Out(bits)
            elif entry.name not in _CONSTANTS:
                members[entry.name] = In(bits)
            if entry.access is Access.CLEAR:
                members[f"{entry.name}_clear"] = Out(bits)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        self._write(m)
        self._read(m)
        return m

    def _words(self) -> Iterator[tuple[Register, int, int]]:
        """(register, number of its word, offset / 4)."""
        for entry in REGISTERS:
            for word in range(entry.words):
                yield entry, word, entry.offset // WORD_BYTES + word

    def _write(self, m: Module) -> None:
        axi = self.axi
        address = Signal(ADDRESS_BITS - 2)
        data = Signal(WORD_BITS)
        strobes = Signal(WORD_BYTES)
        have_address = Signal()
        have_data = Signal()
        go = Signal()
        m.d.comb += [
            axi.awready.eq(~have_address),
            axi.wready.eq(~have_data),
            go.eq(have_address & have_data & ~axi.bvalid),
        ]
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [have_address.eq(1), address.eq(axi.awaddr[2:])]
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += [have_data.eq(1), data.eq(axi.wdata), strobes.eq(axi.wstrb)]
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        with m.If(go):
            m.d.sync += [axi.bvalid.eq(1), have_address.eq(0), have_data.eq(0)]
            with m.Switch(address):
                for entry, word, number in self._words():
                    with m.Case(number):
                        self._write_word(m, entry, word, data, strobes)

    def _write_word(
        self, m: Module, entry: Register, word: int, data: Signal, strobes: Signal
    ) -> None:
        mask = Cat(strobe.replicate(8) for strobe in strobes)
        if entry.access is Access.WRITE:
            stored = getattr(self, entry.name).word_select(word, WORD_BITS)
            value = (stored & ~mask) | (data & mask)
            if _is_base(entry) and word == 0:
                value &= Const(-BASE_ALIGN, WORD_BITS)
            m.d.sync += stored.eq(value)
        elif entry.access is Access.PULSE:
            m.d.comb += getattr(self, entry.name).eq(data & mask)
        elif entry.access is Access.CLEAR:
            m.d.comb += getattr(self, f"{entry.name}_clear").eq(data & mask)

    def _read(self, m: Module) -> None:
        axi = self.axi
        m.d.comb += axi.arready.eq(~axi.rvalid)
        with m.If(axi.rready):
            m.d.sync += axi.rvalid.eq(0)
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [axi.rvalid.eq(1), axi.rdata.eq(0)]
            with m.Switch(axi.araddr[2:]):
                for entry, word, number in self._words():
                    if entry.access is not Access.PULSE:
                        with m.Case(number):
                            m.d.sync += axi.rdata.eq(self._value(entry, word))

    def _value(self, entry: Register, word: int) -> Value:
        if entry.name == "digest":
            return Const(self._config.digest32, WORD_BITS)
        if entry.name in _CONSTANTS:
            return Const(entry.reset, WORD_BITS)
        return getattr(self, entry.name).word_select(word, WORD_BITS)
