"""The protocol of registers between a processor and the core: one for every board."""

import time
from collections.abc import Callable

from vitral.config import ISA_VERSION, CoreConfig
from vitral.errors import DeviceError
from vitral.isa import Cause, Memory, Profile, Stage
from vitral.program import Launch, Outcome, Wait, WaitReason
from vitral.registers import COUNTERS, MAGIC
from vitral.runtime.boards.core_registers import CoreRegisters
from vitral.runtime.boards.interfaces import Interrupt, RegisterWindow

__all__ = ["CoreDriver"]

WATCHDOG_CYCLES = 10_000_000
"""Cycles without progress after which the core gives the bus up: 0.1 s at 100 MHz."""
RESET_SECONDS = 2.0
"""Longest soft reset; more than the watchdog takes on the slowest clock in use."""
LOOK_SECONDS = 0.1
"""Time between two looks at where the stages stand, and the longest single wait for an interrupt,
so that a lost one costs that much and no more."""
FIRST_PAUSE, LAST_PAUSE = 20e-6, 1e-3
"""Seconds between two polls: short at first, doubled each time."""

IsFinish = Callable[[int], bool]


class CoreDriver:
    """Starts programs on a core and waits for their end; nothing here waits for ever.

    Parameters
    ----------
    name : str
        The device, for messages.
    window : RegisterWindow
        The core's registers.
    config : CoreConfig
        The core that programs are for.
    interrupt : Interrupt or None
        Tells the end of a program; None: the status register is polled.
    watchdog : int
        Cycles without progress on its memory port after which the core says "bus hung"; 0 = never.
    axi_attributes : int or None
        Sideband of the memory port; None leaves what the core has.
    """

    def __init__(
        self,
        name: str,
        window: RegisterWindow,
        config: CoreConfig,
        *,
        interrupt: Interrupt | None = None,
        watchdog: int = WATCHDOG_CYCLES,
        axi_attributes: int | None = None,
    ) -> None:
        self.name = name
        self.config = config
        self.registers = CoreRegisters(window)
        self.interrupt = interrupt
        self.watchdog = watchdog
        self.axi_attributes = axi_attributes
        self._started = False

    def identify(self) -> None:
        """Check that the core behind the registers is the one that programs are for.

        Raises
        ------
        DeviceError
            When there is no core of ours, or it is of another version or configuration.
        """
        found = self.registers.read("id")
        if found != MAGIC:
            raise DeviceError(
                f"{self.name}: the register window reads {found:#010x}, needs {MAGIC:#010x}: no"
                " Vitral core at this address; check the bitstream and the base address"
            )
        version, digest = self.registers.read("version"), self.registers.read("digest")
        if version != ISA_VERSION:
            raise DeviceError(
                f"{self.name}: the core has version {version}, needs {ISA_VERSION}; load a"
                " bitstream of this release"
            )
        if digest != self.config.digest32:
            raise DeviceError(
                f"{self.name}: the core's configuration digest is {digest:08x}, needs"
                f" {self.config.digest32:08x}; load the bitstream of that configuration, or"
                " compile for this core"
            )

    def soft_reset(self, seconds: float = RESET_SECONDS) -> None:
        """Stop whatever runs and make the core ready; it touches no memory afterwards.

        Raises
        ------
        DeviceError
            When the bus does not let it end.
        """
        self.registers.write("watchdog", self.watchdog)
        self.registers.write_fields("control", soft_reset=1)
        deadline = time.monotonic() + seconds
        pause = FIRST_PAUSE
        while (status := self.registers.fields("status"))["resetting"]:
            if time.monotonic() > deadline:
                raise DeviceError(
                    f"{self.name}: soft reset did not end within {seconds:g} seconds; load the"
                    " bitstream again"
                )
            time.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE)
        if status["error"]:
            raise DeviceError(
                f"{self.name}: {Cause(status['cause']).text} in a soft reset: the memory port is"
                " not answered; load the bitstream again"
            )
        self._started = False

    def run(self, launch: Launch, seconds: float, is_finish: IsFinish) -> Outcome:
        """Run a program to its end, an error, a deadlock or the time limit.

        Memory must be flushed before. A program that did not end has been stopped by a soft reset.

        Parameters
        ----------
        launch : Launch
            Where the program is.
        seconds : float
            Time limit.
        is_finish : callable
            Whether an instruction number of the program is its FINISH.

        Raises
        ------
        DeviceError
            When the core refuses the start, cannot be stopped, or says what makes no sense.
        """
        self._write_arguments(launch)
        if self.interrupt is not None:
            self.interrupt.arm()
        self._started = True
        profile = int(launch.profile is Profile.VITRAL)
        self.registers.write_fields("control", start=1, profile=profile)
        if self.registers.fields("status")["refused"]:
            raise DeviceError(f"{self.name}: the core refused the start, it is busy; reset it")
        waits = self._wait(seconds, is_finish)
        outcome = self._outcome(launch, waits)
        if waits:
            self.soft_reset()
        self._started = False
        return outcome

    def stop(self) -> None:
        """Make sure that nothing runs, before memory is given back; DeviceError as `soft_reset`."""
        if self._started:
            self.soft_reset()

    def _write_arguments(self, launch: Launch) -> None:
        write = self.registers.write
        self.registers.write_fields("irq_status", done=1)
        write("insn_base", launch.insn_base)
        write("insn_count", launch.insn_count)
        for memory in Memory:
            write(f"{memory.name.lower()}_base", launch.base(memory))
        write("limit_low", launch.limit_low)
        write("limit_high", launch.limit_high)
        write("watchdog", self.watchdog)
        if self.axi_attributes is not None:
            write("axi_attributes", self.axi_attributes)
        self.registers.write_fields("irq_enable", done=int(self.interrupt is not None))

    def _wait(self, seconds: float, is_finish: IsFinish) -> tuple[Wait, ...]:
        """Wait for the end; where the stages stand when there is none."""
        now = time.monotonic()
        deadline, look = now + seconds, now + LOOK_SECONDS
        before: tuple[Wait, ...] = ()
        pause = FIRST_PAUSE
        while not self.registers.fields("status")["done"]:
            now = time.monotonic()
            if now >= look:
                waits = self._waits(is_finish)
                stuck = waits == before and Outcome(Cause.NONE, 0, waits).deadlocked
                if stuck or now >= deadline:
                    # it may have ended since; only a core that is still busy stands anywhere
                    done = self.registers.fields("status")["done"]
                    return () if done else waits or (Wait(None, 0, WaitReason.MEMORY),)
                before, look = waits, min(now + LOOK_SECONDS, deadline)
            look = min(look, deadline)
            pause = self._pause(pause, look - now)
        return ()

    def _pause(self, pause: float, longest: float) -> float:
        if self.interrupt is not None:
            self.interrupt.wait(max(longest, 0.0))
            return pause
        time.sleep(max(0.0, min(pause, longest)))
        return min(2 * pause, LAST_PAUSE)

    def _waits(self, is_finish: IsFinish) -> tuple[Wait, ...]:
        waits = []
        for stage in Stage:
            state = self.registers.fields(f"{stage.name.lower()}_state")
            reason = WaitReason(state["wait"])
            if reason is WaitReason.BUSY and is_finish(state["index"]):
                reason = WaitReason.DRAIN
            if reason is not WaitReason.IDLE:
                waits.append(Wait(stage, state["index"], reason))
        return tuple(waits)

    def _outcome(self, launch: Launch, waits: tuple[Wait, ...]) -> Outcome:
        counters = {name: self.registers.read(f"count_{name}") for name, _ in COUNTERS}
        cycles = counters["cycles"]
        if waits:
            return Outcome(Cause.NONE, 0, waits, cycles, counters)
        status = self.registers.fields("status")
        self.registers.write_fields("irq_status", done=1)
        known = status["cause"] in set(Cause)
        if not known or bool(status["error"]) != (status["cause"] != Cause.NONE):
            raise DeviceError(
                f"{self.name}: status {status} makes no sense; reset the core, or load the"
                " bitstream again"
            )
        if not status["error"]:
            return Outcome(Cause.NONE, 0, (), cycles, counters, launch.insn_count)
        index = self.registers.read("error_index")
        return Outcome(Cause(status["cause"]), index, (), cycles, counters)
