"""Radiona ULX3S: clock, pins, and the core with its memory behind the USB serial port."""

from amaranth import ClockDomain, ClockSignal, Const, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from vitral.config import CoreConfig
from vitral.hw.bridge.system import SerialSystem
from vitral.serial_frames import IDLE_SECONDS

__all__ = ["MEMORY_BYTES", "Ulx3sTop"]

MEMORY_BYTES = 64 << 10
"""On-chip memory behind the core's port."""
BAUD = 1_000_000
"""Of the USB serial port: whole cycles at any clock, and the FT231X makes it exactly."""
OSCILLATOR_MHZ = 25
STEP_MHZ = 5
"""The clocks that the PLL is set to are multiples of this."""
VCO_MHZ = (400, 800)
"""What the PLL's oscillator does."""


class Ulx3sTop(Elaboratable):
    """A `SerialSystem` on a ULX3S at `clock_mhz`, a multiple of 5.

    The fire button 1 resets it. LEDs, from 0 on: the PLL is locked, the host's line, the board's
    line, the core's interrupt.
    """

    def __init__(self, config: CoreConfig, *, clock_mhz: int) -> None:
        if clock_mhz % STEP_MHZ or not 10 <= clock_mhz <= VCO_MHZ[0]:
            raise ValueError(f"clock_mhz must be a multiple of {STEP_MHZ}, got {clock_mhz}")
        self._clock_mhz = clock_mhz
        self._system = SerialSystem(
            config,
            memory_bytes=MEMORY_BYTES,
            bit_cycles=clock_mhz * 1_000_000 // BAUD,
            idle_cycles=int(clock_mhz * 1_000_000 * IDLE_SECONDS * 2 / 3),
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.system = system = self._system
        locked = self._clock(m, platform)
        uart = self._pins(platform, "uart")
        m.submodules.rx = rx = io.Buffer(io.Direction.Input, uart.rx)
        m.submodules.tx = tx = io.Buffer(io.Direction.Output, uart.tx)
        m.d.comb += [system.rx.eq(rx.i), tx.o.eq(system.tx)]
        for number, shown in enumerate((locked, ~system.rx, ~system.tx, system.irq)):
            led = io.Buffer(io.Direction.Output, self._pins(platform, "led", number))
            m.submodules[f"led_{number}"] = led
            m.d.comb += led.o.eq(shown)
        return m

    @staticmethod
    def _pins(platform, name: str, number: int = 0):
        return platform.request(name, number, dir="-")  # the buffers are ours

    def _clock(self, m: Module, platform) -> Signal:
        """Domain sync from the PLL; whether it is locked."""
        m.submodules.oscillator = oscillator = io.Buffer(
            io.Direction.Input, self._pins(platform, "clk25")
        )
        m.submodules.button = button = io.Buffer(
            io.Direction.Input, self._pins(platform, "button_fire")
        )
        locked = Signal()
        divisor = VCO_MHZ[1] // self._clock_mhz
        m.domains.sync = ClockDomain()
        m.submodules.pll = Instance(
            "EHXPLLL",
            a_FREQUENCY_PIN_CLKI=str(OSCILLATOR_MHZ),
            a_FREQUENCY_PIN_CLKOP=str(self._clock_mhz),
            p_CLKI_DIV=OSCILLATOR_MHZ // STEP_MHZ,
            p_CLKFB_DIV=self._clock_mhz // STEP_MHZ,
            p_CLKOP_DIV=divisor,
            p_CLKOP_CPHASE=divisor - 1,
            p_CLKOP_FPHASE=0,
            p_CLKOP_ENABLE="ENABLED",
            p_FEEDBK_PATH="CLKOP",
            i_CLKI=oscillator.i,
            i_CLKFB=ClockSignal(),
            i_RST=Const(0),
            i_STDBY=Const(0),
            o_CLKOP=ClockSignal(),
            o_LOCK=locked,
        )
        m.submodules.reset = ResetSynchronizer(~locked | button.i, domain="sync")
        return locked
