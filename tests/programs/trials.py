"""Random programs, each with a random memory behind the core and what the reference makes of it."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from programs.broken import MISTAKES, broken
from programs.compare import State, differences, state_after
from programs.generate import Program, generate
from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.isa import Cause
from vitral.program import MemoryModel, Outcome, WaitReason
from vitral.sim.reference import Reference
from vitral.sim.rtl import RtlSimulator

__all__ = ["LONG", "Trial", "memory_of", "trials"]

LONG = 60
"""Instructions of a long program: more than fetch's buffer and the queues of a small core hold."""

LIMIT_CYCLES = 200_000
"""Many times what the longest program takes."""


@dataclass(frozen=True)
class Trial:
    """A program, the memory that it runs with, and the reference's status and memories."""

    name: str
    program: Program
    memory: MemoryModel
    wanted: State

    def failure(self, core: RtlSimulator) -> str:
        """What is wrong on `core`, or "": status, bytes, a rule of the bus, a time-out.

        The core is reset after a failure, so that the next trial stands alone.
        """
        core.memory_model = self.memory
        try:
            got = state_after(self.program, core)
            found = (
                [] if self._may_hold_more(got[0]) else differences(_seen(got), _seen(self.wanted))
            )
        except DeviceError as error:
            found = [str(error)]
        if found:
            core.reset()
        return "; ".join([self.name, *found]) if found else ""

    def _may_hold_more(self, got: Outcome) -> bool:
        """Whether the program ends with a full queue, and hardware, whose queues may hold a few
        instructions more than they must, comes to another end of its own: another deadlock, or
        FINISH, before which a program with a token too many still fails."""
        full = any(wait.reason is WaitReason.QUEUE for wait in self.wanted[0].waits)
        return full and (got.deadlocked or got.ok or got.cause is Cause.TOKENS_LEFT)


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


def trials(
    config: CoreConfig, seeds: Sequence[int], *, bad: int, long_every: int
) -> Iterator[Trial]:
    """Legal programs of the seeds, every `long_every`-th a long one.

    Between them, about `bad` programs with a mistake, each kind in turn; of these only the
    status is compared.
    """
    every = max(1, len(seeds) // max(1, bad))
    kinds = list(MISTAKES)
    for place, seed in enumerate(seeds):
        is_long = place % long_every == long_every - 1
        program = generate(seed, config, length=LONG if is_long else None)
        yield _trial(f"seed {seed}", program)
        if bad and place % every == 0:
            mistake = kinds[place // every % len(kinds)]
            faulty = broken(program, mistake, seed)
            if faulty is not None:
                yield _trial(f"seed {seed}, {mistake}", faulty)


def _trial(name: str, program: Program) -> Trial:
    wanted = state_after(program, Reference(program.config))
    return Trial(name, program, memory_of(program.seed), wanted)


def _seen(state: State) -> State:
    """Without fetch's wait, which hardware does not show."""
    outcome = state[0]
    waits = tuple(wait for wait in outcome.waits if wait.stage is not None)
    return replace(outcome, waits=waits), *state[1:]
