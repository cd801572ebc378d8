"""Runs a fixed set of random programs on a woven core, one mutant after the other."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from programs import Program, generate
from programs.broken import MISTAKES, broken
from programs.compare import State, differences, state_after

from mutants.mutant import Mutant
from mutants.weave import mutated_verilog, selector
from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import MemoryModel
from vitral.sim.reference import Reference
from vitral.sim.rtl import RtlSimulator

__all__ = ["Hunt", "Trial", "memory_of", "trials"]

LONG = 60
"""Instructions of every fourth program: more than fetch's buffer holds."""

LIMIT_CYCLES = 100_000
"""Many times what the longest program of the set takes."""


@dataclass(frozen=True)
class Trial:
    """A program, the memory that it runs with, and what the reference says of it."""

    name: str
    program: Program
    memory: MemoryModel
    wanted: State


def memory_of(seed: int) -> MemoryModel:
    """A memory drawn from a seed: latencies up to 200 cycles, back-pressure more or less often."""
    rng = random.Random(f"memory {seed}")
    return MemoryModel(
        latency=rng.choice((1, 2, 10, 64, rng.randrange(1, 201))),
        write_latency=rng.choice((1, 5, 64, 200, rng.randrange(1, 201))),
        outstanding=rng.choice((1, 2, 4, 8, 8)),
        stall_seed=rng.choice((None, seed, seed, seed)),
        stall_probability=rng.choice((0.05, 0.2, 0.5, 0.8)),
        limit_cycles=LIMIT_CYCLES,
    )


def trials(config: CoreConfig, good: int, bad: int) -> Iterator[Trial]:
    """`good` legal programs; between them `bad` ones with a mistake, whose status is known."""
    kinds = list(MISTAKES)
    every = max(1, good // max(1, bad))
    wrong = 0
    for seed in range(good):
        program = generate(seed, config, length=LONG if seed % 4 == 3 else None)
        yield _trial(f"seed {seed}", program, seed)
        if seed % every == 0 and wrong < bad:
            mistake = kinds[wrong % len(kinds)]
            wrong += 1
            faulty = broken(program, mistake, seed)
            if faulty is not None:
                yield _trial(f"seed {seed}, {mistake}", faulty, seed)


def _trial(name: str, program: Program, seed: int) -> Trial:
    wanted = state_after(program, Reference(program.config))
    return Trial(name, program, memory_of(seed), wanted)


class Hunt:
    """A woven core and a set of trials.

    Parameters
    ----------
    config : CoreConfig
        Of the core.
    mutants : tuple of Mutant
        All that the core can become.
    good, bad : int
        How many legal programs, and programs with a mistake, there are.
    """

    def __init__(
        self, config: CoreConfig, mutants: tuple[Mutant, ...], *, good: int, bad: int
    ) -> None:
        self.mutants = mutants
        self.trials = tuple(trials(config, good, bad))
        self.core = RtlSimulator(config, verilog=mutated_verilog(config, mutants))

    def __enter__(self) -> "Hunt":
        return self

    def __exit__(self, *error: object) -> None:
        self.core.close()

    def failures(self, mutant: Mutant | None) -> Iterator[tuple[int, str]]:
        """(number of the trial, what differs) where the core, as `mutant`, is caught.

        None is the core as it is.
        """
        number = 0 if mutant is None else self.mutants.index(mutant) + 1
        selector(self.core.arrays)[0] = number
        self.core.reset()
        for place, trial in enumerate(self.trials):
            found = self._try(trial)
            if found:
                yield place, f"{trial.name}: {found}"
                self.core.reset()

    def _try(self, trial: Trial) -> str:
        """What differs, or "": status, bytes, a rule of the bus, a time-out."""
        self.core.memory_model = trial.memory
        try:
            got = state_after(trial.program, self.core)
        except DeviceError as error:
            return str(error)
        return "; ".join(differences(_seen(got), _seen(trial.wanted)))


def _seen(state: State) -> State:
    """Without fetch's wait, which hardware does not show."""
    outcome = state[0]
    waits = tuple(wait for wait in outcome.waits if wait.stage is not None)
    return replace(outcome, waits=waits), *state[1:]
