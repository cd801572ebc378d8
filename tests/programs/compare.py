"""Runs one random program on two simulators and says what differs."""

from typing import Protocol

from engines import Engine

from vitral.program import Dram, Launch, OnChip, Outcome

__all__ = ["Runnable", "State", "differences", "state_after"]

State = tuple[Outcome, Dram, OnChip]


class Runnable(Protocol):
    """A program with its memories."""

    @property
    def launch(self) -> Launch: ...
    @property
    def dram(self) -> Dram: ...
    @property
    def onchip(self) -> OnChip: ...


def state_after(program: Runnable, engine: Engine) -> State:
    """Outcome and memories after a run on copies of the program's memories."""
    dram, onchip = program.dram.copy(), program.onchip.copy()
    return engine.run(program.launch, dram, onchip=onchip), dram, onchip


def differences(got: State, wanted: State) -> list[str]:
    """Lines about status, DRAM (all of it, guards included) and on-chip memories."""
    lines = []
    status = [(o.cause, o.index, o.waits) for o in (got[0], wanted[0])]
    if status[0] != status[1]:
        lines.append(f"status: {got[0].message}, expected {wanted[0].message}")
    if not wanted[0].ok:
        return lines  # after an error only the status is defined
    wrong = (got[1].data != wanted[1].data).nonzero()[0]
    if wrong.size:
        shown = ", ".join(
            f"{got[1].base + n:#x}: {got[1].data[n]:#04x} != {wanted[1].data[n]:#04x}"
            for n in wrong[:4].tolist()
        )
        lines.append(f"dram: {wrong.size} bytes differ: {shown}")
    return lines + got[2].differences(wanted[2])
