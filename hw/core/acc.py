"""The accumulator memory: banks of one read and one write port, shared by all who need them."""

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.interfaces import WritePort

__all__ = ["AccMemory", "AccRead", "AccWrite"]

STORE_PATIENCE = 3
"""Cycles that the store stage gives way to the compute units before it goes first."""


class AccRead(wiring.Signature):
    """Requests to read one ACC element.

    A request is served in the cycle with `valid` and `ready`; `data` is the element in the
    following cycle, and longer only while nobody reads that bank.
    """

    def __init__(self, config: CoreConfig) -> None:
        layout = config.layout
        super().__init__(
            {
                "valid": Out(1),
                "address": Out(layout.acc_index_bits),
                "ready": In(1),
                "data": In(8 * layout.acc_bytes),
            }
        )


class AccWrite(wiring.Signature):
    """Requests to write one ACC element, done in the cycle with `valid` and `ready`."""

    def __init__(self, config: CoreConfig) -> None:
        layout = config.layout
        super().__init__(
            {
                "valid": Out(1),
                "address": Out(layout.acc_index_bits),
                "data": Out(8 * layout.acc_bytes),
                "ready": In(1),
            }
        )


class AccMemory(wiring.Component):
    """``config.acc_banks`` banks, chosen by the top address bits; a row is one element.

    Every bank serves one read and one write per cycle. Of the readers, `dst` goes before `src`
    and `src` before `store`, but a store that waited `STORE_PATIENCE` cycles goes first, so that
    nobody waits for ever. Of the writers, `load` is always served, and `result` waits for it; in
    a cycle in which `result` waits, `store` reads nothing, so that the data of the compute units'
    reads stay in place. A read in the cycle of a write to its element gives the old value.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        layout = config.layout
        super().__init__(
            {
                "dst": In(AccRead(config)),
                "src": In(AccRead(config)),
                "store": In(AccRead(config)),
                "result": In(AccWrite(config)),
                "load": In(
                    WritePort(
                        row_bits=layout.acc_index_bits,
                        elements=1,
                        element_bits=8 * layout.acc_bytes,
                    )
                ),
            }
        )

    def _bank(self, address: Value) -> Value:
        return address[self.config.layout.acc_index_bits - self._bank_bits :]

    def _row(self, address: Value) -> Value:
        return address[: self.config.layout.acc_index_bits - self._bank_bits]

    @property
    def _bank_bits(self) -> int:
        return self.config.acc_banks.bit_length() - 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        readers = (self.dst, self.src, self.store)
        outputs = [self._add_bank(m, number) for number in range(self.config.acc_banks)]
        self._arbitrate(m)

        for reader in readers:
            bank = Signal(range(len(outputs)), reset_less=True)
            with m.If(reader.valid & reader.ready):
                m.d.sync += bank.eq(self._bank(reader.address))
            with m.Switch(bank):
                for number, output in enumerate(outputs):
                    with m.Case(number):
                        m.d.comb += reader.data.eq(output)
        return m

    def _add_bank(self, m: Module, number: int) -> Value:
        layout = self.config.layout
        bank = memory.Memory(
            shape=unsigned(8 * layout.acc_bytes),
            depth=layout.acc_depth // self.config.acc_banks,
            init=[],
        )
        m.submodules[f"bank_{number}"] = bank
        read, write = bank.read_port(), bank.write_port()

        m.d.comb += read.en.eq(0)
        # The last that asks and is ready wins; `_arbitrate` lets at most one be both.
        for reader in (self.dst, self.src, self.store):
            with m.If(reader.valid & reader.ready & (self._bank(reader.address) == number)):
                m.d.comb += [read.en.eq(1), read.addr.eq(self._row(reader.address))]

        address = Mux(self.load.mask, self.load.row, self.result.address)
        m.d.comb += [
            write.en.eq((self.load.mask | self.result.valid) & (self._bank(address) == number)),
            write.addr.eq(self._row(address)),
            write.data.eq(Mux(self.load.mask, self.load.data, self.result.data)),
        ]
        return read.data

    def _arbitrate(self, m: Module) -> None:
        def clash(first: AccRead, second: AccRead) -> Value:
            return first.valid & (self._bank(first.address) == self._bank(second.address))

        waited = Signal(range(STORE_PATIENCE + 1))
        urgent = waited == STORE_PATIENCE
        blocked = self.result.valid & ~self.result.ready
        m.d.comb += [
            self.result.ready.eq(~self.load.mask),
            self.dst.ready.eq(~(urgent & clash(self.store, self.dst))),
            self.src.ready.eq(~clash(self.dst, self.src) & ~(urgent & clash(self.store, self.src))),
            self.store.ready.eq(
                ~blocked & (urgent | ~(clash(self.dst, self.store) | clash(self.src, self.store)))
            ),
        ]
        with m.If(self.store.ready | ~self.store.valid):
            m.d.sync += waited.eq(0)
        with m.Elif(~urgent):
            m.d.sync += waited.eq(waited + 1)
