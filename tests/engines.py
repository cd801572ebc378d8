"""The simulators that must agree, by name; tests of meaning run on each of them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from vitral.config import CoreConfig
from vitral.program import Dram, Launch, OnChip, Outcome
from vitral.sim.reference import Reference

__all__ = ["ENGINES", "Engine", "engine"]


class Engine(Protocol):
    """What a test needs of a simulator."""

    def run(self, launch: Launch, dram: Dram, *, onchip: OnChip | None = None) -> Outcome: ...


ENGINES: dict[str, Callable[[CoreConfig], Engine]] = {
    "reference": Reference,
}


@lru_cache(maxsize=64)
def engine(name: str, config: CoreConfig) -> Engine:
    """The simulator of that name for a configuration; one per process."""
    return ENGINES[name](config)
