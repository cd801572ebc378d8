"""A core behind its registers: what a bus master on the register port sees."""

from typing import Protocol

from vitral.config import CoreConfig
from vitral.isa import Memory, Profile, Stage
from vitral.program import Dram, Launch, Outcome
from vitral.registers import BASE_ALIGN, REGISTERS, Access, register
from vitral.sim.functional import FunctionalSimulator

__all__ = ["FunctionalLogic", "Logic"]

WORD_BITS = 32
WORD_BYTES = 4
WORD_MASK = (1 << WORD_BITS) - 1


class Logic(Protocol):
    """Programmable logic with one core.

    Attributes
    ----------
    config : CoreConfig
        The core's.
    irq : bool
        Level of the interrupt line.
    """

    config: CoreConfig

    @property
    def irq(self) -> bool: ...

    def attach(self, dram: Dram) -> None:
        """Connect the memory port."""
        ...

    def read(self, offset: int) -> int:
        """One 32-bit read of a register."""
        ...

    def write(self, offset: int, value: int) -> None:
        """One 32-bit write of a register."""
        ...

    def advance(self) -> None:
        """Let some time pass, until the interrupt at most."""
        ...


class FunctionalLogic:
    """Registers in Python around the functional simulator: a program takes no time.

    One that never ends leaves the core busy, its stages where they wait, until a soft reset.

    Parameters
    ----------
    config : CoreConfig
        The core.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        self._simulator = FunctionalSimulator(config)
        self._dram: Dram | None = None
        self._places = {
            entry.offset + WORD_BYTES * word: (entry, word)
            for entry in REGISTERS
            for word in range(entry.words)
        }
        self._values = {entry.name: entry.reset for entry in REGISTERS}
        self._values["digest"] = config.digest32
        self._set_idle()

    def attach(self, dram: Dram) -> None:
        self._dram = dram

    @property
    def irq(self) -> bool:
        return bool(self._values["irq_status"] & self._values["irq_enable"])

    def read(self, offset: int) -> int:
        entry, word = self._places.get(offset, (None, 0))
        if entry is None or entry.access is Access.PULSE:
            return 0
        return self._values[entry.name] >> WORD_BITS * word & WORD_MASK

    def write(self, offset: int, value: int) -> None:
        entry, word = self._places.get(offset, (None, 0))
        if entry is None or entry.access is Access.READ:
            return
        if entry.access is Access.CLEAR:
            self._values[entry.name] &= ~value
        elif entry.access is Access.PULSE:
            self._command(value)
        else:
            if entry.name.endswith("_base") and word == 0:
                value &= -BASE_ALIGN
            shift = WORD_BITS * word
            kept = self._values[entry.name] & ~(WORD_MASK << shift)
            self._values[entry.name] = kept | (value & WORD_MASK) << shift

    def advance(self) -> None:
        """Nothing: whatever was started has ended."""

    def _command(self, word: int) -> None:
        control, status = register("control"), register("status")
        if control["soft_reset"].extract(word):
            self._set_idle()
            self._values["status"] = self._values["error_index"] = self._values["irq_status"] = 0
        elif control["start"].extract(word):
            if status["busy"].extract(self._values["status"]):
                self._values["status"] |= status["refused"].mask
            else:
                self._set_idle()
                self._end(self._run(control["profile"].extract(word)))

    def _run(self, profile: int) -> Outcome:
        assert self._dram is not None, "logic without memory"
        values = self._values
        launch = Launch(
            insn_base=values["insn_base"],
            insn_count=values["insn_count"],
            profile=Profile.VITRAL if profile else Profile.VTA,
            bases={memory: values[f"{memory.name.lower()}_base"] for memory in Memory},
            limit_low=values["limit_low"],
            limit_high=values["limit_high"],
        )
        return self._simulator.run(launch, self._dram)

    def _end(self, outcome: Outcome) -> None:
        status = register("status")
        if outcome.waits:
            self._values["status"] = status["busy"].mask
            for wait in outcome.waits:
                if wait.stage is not None:
                    self._set_state(wait.stage, int(wait.reason), wait.index)
            return
        word = status["done"].mask | status["cause"].insert(int(outcome.cause))
        self._values["status"] = word if outcome.ok else word | status["error"].mask
        self._values["error_index"] = outcome.index
        self._values["irq_status"] = register("irq_status")["done"].mask

    def _set_idle(self) -> None:
        for stage in Stage:
            self._set_state(stage, 1, 0)

    def _set_state(self, stage: Stage, wait: int, index: int) -> None:
        entry = register(f"{stage.name.lower()}_state")
        shown = wait if wait <= 6 else 0  # full queue and draining show as busy
        word = entry["wait"].insert(shown) | entry["index"].insert(index)
        self._values[entry.name] = word
