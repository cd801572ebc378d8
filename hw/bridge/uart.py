"""Serial line, 8 data bits, no parity, one stop bit."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["UartReceiver", "UartTransmitter"]

DATA_BITS = 8


class UartReceiver(wiring.Component):
    """Bytes from the line `rx`, idle high.

    A bit takes `bit_cycles` cycles, 4 or more, and is looked at in its middle. `valid` is high for
    one cycle with each byte in `data`; nothing can hold it back. A byte without its stop bit is
    dropped.
    """

    def __init__(self, *, bit_cycles: int) -> None:
        if bit_cycles < 4:
            raise ValueError(f"bit_cycles must be 4 or more, got {bit_cycles}")
        self._bit_cycles = bit_cycles
        super().__init__({"rx": In(1), "data": Out(DATA_BITS), "valid": Out(1)})

    def elaborate(self, platform):
        m = Module()
        rx = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.rx, rx, init=1)
        timer = Signal(range(self._bit_cycles))
        left = Signal(range(DATA_BITS + 2))  # bits to come, stop bit included
        bits = Signal(DATA_BITS)
        m.d.sync += self.valid.eq(0)
        m.d.comb += self.data.eq(bits)
        with m.FSM():
            with m.State("IDLE"):
                with m.If(~rx):
                    m.d.sync += timer.eq(self._bit_cycles // 2 - 1)
                    m.next = "START"
            with m.State("START"):
                m.d.sync += timer.eq(timer - 1)
                with m.If(timer == 0):
                    m.d.sync += [timer.eq(self._bit_cycles - 1), left.eq(DATA_BITS + 1)]
                    m.next = "BITS"
                    with m.If(rx):  # a spike
                        m.next = "IDLE"
            with m.State("BITS"):
                m.d.sync += timer.eq(timer - 1)
                with m.If(timer == 0):
                    m.d.sync += [timer.eq(self._bit_cycles - 1), left.eq(left - 1)]
                    with m.If(left == 1):
                        m.d.sync += self.valid.eq(rx)
                        m.next = "STOP"
                    with m.Else():
                        m.d.sync += bits.eq(Cat(bits[1:], rx))
            with m.State("STOP"):
                with m.If(rx):
                    m.next = "IDLE"
        return m


class UartTransmitter(wiring.Component):
    """Bytes of a stream to the line `tx`, idle high; a bit takes `bit_cycles` cycles."""

    def __init__(self, *, bit_cycles: int) -> None:
        if bit_cycles < 1:
            raise ValueError(f"bit_cycles must be 1 or more, got {bit_cycles}")
        self._bit_cycles = bit_cycles
        line = Out(1, init=1)  # pyright: ignore[reportCallIssue]  # missing in the stubs
        super().__init__({"i": In(stream.Signature(DATA_BITS)), "tx": line})

    def elaborate(self, platform):
        m = Module()
        timer = Signal(range(self._bit_cycles))
        left = Signal(range(DATA_BITS + 2))  # bits to come, the one on the line not counted
        busy = Signal()
        bits = Signal(DATA_BITS, init=-1)
        m.d.comb += self.i.ready.eq(~busy)
        with m.If(~busy):
            with m.If(self.i.valid):
                m.d.sync += [
                    busy.eq(1),
                    bits.eq(self.i.payload),
                    self.tx.eq(0),
                    left.eq(DATA_BITS + 1),
                    timer.eq(self._bit_cycles - 1),
                ]
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Elif(left != 0):
            m.d.sync += [
                self.tx.eq(bits[0]),
                bits.eq(Cat(bits[1:], 1)),
                left.eq(left - 1),
                timer.eq(self._bit_cycles - 1),
            ]
        with m.Else():
            m.d.sync += busy.eq(0)
        return m
