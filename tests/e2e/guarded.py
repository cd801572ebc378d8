"""A device in hostile surroundings: random memories, and guard bytes around every result."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from engines import engine

from vitral.config import CoreConfig
from vitral.isa import Memory
from vitral.program import GUARD, PAGE, Dram, Launch, OnChip, Outcome
from vitral.runtime.module import Module
from vitral.runtime.packing import packed_bytes

__all__ = ["GuardedDevice", "Span"]

BASE = 0x2000_0000
Span = tuple[int, int]
"""Byte offset in the arena and size."""


class GuardedDevice:
    """A simulator whose memories hold random bytes wherever the module has written none.

    Results of 8-bit STOREs go to an area of their own, by way of OUT's base register, that is full
    of guard bytes except for the module's output tensors themselves. After each run every byte of
    memory outside these tensors must be what it was. Limits lie around all of it, so that a stray
    access is seen and not merely stopped.

    Sessions on devices of one name share one simulator, as programs share one core.

    Parameters
    ----------
    name : str
        Of `engines.FACTORIES`.
    module : Module
        Each of its programs has one layer; one that reads its own results would miss them.
    seed : int
        Of the random bytes.
    random_onchip : bool
        Draw the on-chip memories before each run; else they keep what the last run left.
    """

    def __init__(
        self, name: str, module: Module, *, seed: int = 0, random_onchip: bool = True
    ) -> None:
        self.name = name
        self.config: CoreConfig = module.config
        self.cycles: list[int | None] = []
        self._simulator = engine(name, module.config)
        self._rng = np.random.default_rng([seed, 0xA5])
        self._random_onchip = random_onchip
        self._spans = _output_spans(module)
        self._arena = 0
        self._out = 0
        self._dram: Dram | None = None

    @property
    def dram(self) -> Dram:
        assert self._dram is not None, "allocate first"
        return self._dram

    def allocate(self, nbytes: int) -> int:
        """Guard page, arena, guard page, results, guard page; all but the arena full of guards."""
        assert self._dram is None, "allocates once"
        size = -(-nbytes // PAGE) * PAGE
        self._arena, self._out = BASE + PAGE, BASE + 2 * PAGE + size
        self._dram = Dram.filled(BASE, 3 * PAGE + 2 * size, GUARD)
        self._randomise(self._arena, size)
        for offset, length in self._spans:
            self._randomise(self._out + offset, length)
        return self._arena

    def _randomise(self, address: int, size: int) -> None:
        self.dram.write(address, self._rng.integers(0, 256, size).astype(np.uint8))

    def write(self, offset: int, array: npt.NDArray) -> None:
        self.dram.write(self._arena + offset, array)

    def read(self, offset: int, nbytes: int) -> npt.NDArray[np.uint8]:
        assert (offset, nbytes) in self._spans, "a session reads whole outputs"
        return self.dram.view(self._out + offset, nbytes)

    def run(
        self, launch: Launch, *, timeout: float | None = None, marks: Collection[int] = ()
    ) -> Outcome:
        """Run, and raise AssertionError when a byte changed that is no result."""
        dram, before = self.dram, self.dram.data.copy()
        moved = replace(
            launch,
            bases={**launch.bases, Memory.OUT: self._out},
            limit_low=dram.base,
            limit_high=dram.end,
        )
        onchip = OnChip.random(self.config, self._rng) if self._random_onchip else None
        outcome = self._simulator.run(moved, dram, onchip=onchip)
        self.cycles.append(outcome.cycles)
        for offset, length in self._spans:
            at = self._out + offset - dram.base
            before[at : at + length] = dram.data[at : at + length]
        changed = np.flatnonzero(before != dram.data)
        assert not changed.size, self._where(dram.base + int(changed[0]), changed.size)
        return outcome

    def _where(self, address: int, count: int) -> str:
        places = [f"{self._out + at:#x}..{self._out + at + n:#x}" for at, n in self._spans]
        return (
            f"{self.name}: {count} bytes changed that are no result, the first at {address:#x};"
            f" arena at {self._arena:#x}, results at {', '.join(places)}"
        )

    def reset(self) -> None:
        """Nothing: the simulators start each program clean."""

    def close(self) -> None:
        """Nothing: the simulator serves the next one."""


def _output_spans(module: Module) -> Sequence[Span]:
    assert all(len(segment.layers) == 1 for segment in module.segments), "needs single layers"
    return [
        (tensor.offset, packed_bytes(tensor, module.config))
        for segment in module.segments
        for tensor in segment.outputs
    ]
