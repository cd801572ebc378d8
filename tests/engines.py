"""The simulators that must agree, by name; tests of meaning run on each of them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from vitral.config import CoreConfig
from vitral.program import Dram, Launch, OnChip, Outcome

__all__ = ["ENGINES", "EVERY", "FACTORIES", "Engine", "engine"]


class Engine(Protocol):
    """What a test needs of a simulator."""

    def run(self, launch: Launch, dram: Dram, *, onchip: OnChip | None = None) -> Outcome: ...


def _reference(config: CoreConfig) -> Engine:
    from vitral.sim.reference import Reference

    return Reference(config)


def _rtl(config: CoreConfig) -> Engine:
    from vitral.sim.rtl import RtlSimulator  # builds with a C++ compiler, so only on demand

    return RtlSimulator(config)


def _functional(config: CoreConfig) -> Engine:
    from vitral.sim.functional import FunctionalSimulator

    return FunctionalSimulator(config)


FACTORIES: dict[str, Callable[[CoreConfig], Engine]] = {
    "reference": _reference,
    "fsim": _functional,
    "tsim": _rtl,
}
ENGINES = ("reference", "fsim")
"""Those that every test of meaning runs on, whatever the core."""

EVERY = (*ENGINES, "tsim")
"""For tests on the default core, of which there is one build in any case."""


@lru_cache(maxsize=64)
def engine(name: str, config: CoreConfig) -> Engine:
    """The simulator of that name for a configuration; one per process."""
    return FACTORIES[name](config)
