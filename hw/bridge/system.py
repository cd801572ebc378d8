"""A core that needs no processor: its registers and an on-chip memory behind a serial line."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.bridge.bridge import Bridge
from vitral.hw.bridge.ram import AxiRam
from vitral.hw.bridge.uart import UartReceiver, UartTransmitter
from vitral.hw.core.core import Core
from vitral.serial_frames import MEMORY_WORD

__all__ = ["SerialSystem"]


class SerialSystem(wiring.Component):
    """A core with `memory_bytes` behind its memory port and a `Bridge` to both.

    Ports
    -----
    rx, tx
        Serial line, idle high, `bit_cycles` cycles a bit.
    irq
        The core's interrupt.

    Raises
    ------
    ValueError
        When the core's memory port is not as wide as the bridge's words.
    """

    def __init__(
        self, config: CoreConfig, *, memory_bytes: int, bit_cycles: int, idle_cycles: int
    ) -> None:
        if config.layout.beat_bytes != MEMORY_WORD:
            raise ValueError(
                f"data_bits must be {8 * MEMORY_WORD} behind a bridge, got {config.data_bits}"
            )
        self.config = config
        self._memory_bytes = memory_bytes
        self._bit_cycles = bit_cycles
        self._idle_cycles = idle_cycles
        super().__init__({"rx": In(1), "tx": Out(1), "irq": Out(1)})

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.core = core = Core(config)
        m.submodules.ram = ram = AxiRam(
            nbytes=self._memory_bytes, addr_bits=config.addr_bits, data_bits=config.data_bits
        )
        m.submodules.bridge = bridge = Bridge(
            memory_bytes=self._memory_bytes, idle_cycles=self._idle_cycles
        )
        m.submodules.receiver = receiver = UartReceiver(bit_cycles=self._bit_cycles)
        m.submodules.transmitter = transmitter = UartTransmitter(bit_cycles=self._bit_cycles)
        wiring.connect(m, bridge.axi, core.s_axi)
        wiring.connect(m, core.m_axi, ram.axi)
        wiring.connect(m, bridge.word, ram.word)
        wiring.connect(m, bridge.tx, transmitter.i)
        m.d.comb += [
            receiver.rx.eq(self.rx),
            bridge.rx_data.eq(receiver.data),
            bridge.rx_valid.eq(receiver.valid),
            self.tx.eq(transmitter.tx),
            self.irq.eq(core.irq),
        ]
        return m
