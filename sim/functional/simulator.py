"""The functional simulator: whole programs in native code, specialised to a configuration."""

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.isa import (
    Cause,
    InstructionSet,
    Memory,
    Profile,
    Stage,
)
from vitral.program import Dram, Launch, OnChip, Outcome, Wait, WaitReason
from vitral.sim.functional.jit import host_extensions, load
from vitral.sim.functional.words import (
    QUEUE_WORDS,
    RUNNING,
    SLOTS,
    TOKENS,
    shadow_bytes,
    slot,
)

__all__ = ["FunctionalSimulator"]

LAST_ADDRESS = (1 << 64) - 1
_MEMORIES = ("uop", "inp", "wgt", "acc", "param")
_GIVEN = [
    slot(name)
    for name in (
        "dram",
        "dram_first",
        "dram_last",
        "limit_low",
        "limit_last",
        "insn_base",
        "insn_count",
        "profile",
        *(f"base_{memory.name}" for memory in Memory),
        *_MEMORIES,
    )
]
"""Words that differ between runs."""
_MEMORY_IDS = tuple(Memory)
_RESULTS = [
    slot(name)
    for name in (
        "cause",
        "index",
        "finished",
        "insns",
        *(f"token_{giver.name}_{taker.name}" for giver, taker in TOKENS),
    )
]


class FunctionalSimulator:
    """A core of one configuration, with memories that keep their contents between runs.

    The same bytes, errors and deadlocks as `vitral.sim.reference.Reference`, much faster.

    Parameters
    ----------
    config : CoreConfig
        The core's parameters.
    extensions : str or None
        Vector extension to use, one of `vitral.sim.functional.extensions.EXTENSIONS` that the host
        has; None takes the best. Results do not depend on it.
    """

    def __init__(self, config: CoreConfig, *, extensions: str | None = None) -> None:
        self.config = config
        self.native = load(config, extensions or host_extensions())
        self.onchip = OnChip.zeros(config)
        self.queues = {
            stage: np.zeros((config.queue_depth, QUEUE_WORDS), np.uint64) for stage in Stage
        }
        self.shadows = {
            name: np.zeros(size, np.uint8) for name, size in shadow_bytes(config).items()
        }
        self._words = self._fixed_words()

    def run(self, launch: Launch, dram: Dram, *, onchip: OnChip | None = None) -> Outcome:
        """Run a program to its end, fault or deadlock, changing `dram` in place.

        `onchip`, when given, is used and changed instead of the core's own memories.
        """
        if not launch.insn_count:
            return Outcome(Cause.EMPTY_PROGRAM, 0)
        memories = self.onchip
        if onchip is not None:
            onchip.check(self.config)
            memories = onchip
        arrays = [np.ascontiguousarray(getattr(memories, name)) for name in _MEMORIES]
        words = self._context(launch, dram, arrays)
        self.native.run(words.ctypes.data)
        for name, array in zip(_MEMORIES, arrays, strict=True):
            if array is not getattr(memories, name):
                getattr(memories, name)[:] = array
        return self._outcome(launch, words.view(np.int64))

    def _fixed_words(self) -> npt.NDArray[np.uint64]:
        """What is the same at the start of each run."""
        words = np.zeros(len(SLOTS), np.uint64)
        values = {name: array.ctypes.data for name, array in self.shadows.items()}
        values |= {f"queue_{s.name}": queue.ctypes.data for s, queue in self.queues.items()}
        values["finished"] = LAST_ADDRESS  # RUNNING as an unsigned word
        for name, value in values.items():
            words[slot(name)] = value
        return words

    def _context(
        self, launch: Launch, dram: Dram, arrays: list[npt.NDArray[np.generic]]
    ) -> npt.NDArray[np.uint64]:
        last = min(launch.limit_high, 1 << self.config.addr_bits) - 1
        nothing = last < launch.limit_low
        values = [
            dram.data.ctypes.data,
            dram.base,
            dram.end - 1,
            LAST_ADDRESS if nothing else launch.limit_low,
            0 if nothing else last,
            launch.insn_base,
            launch.insn_count,
            int(launch.profile),
            *(launch.bases.get(memory, 0) for memory in _MEMORY_IDS),
            *(array.ctypes.data for array in arrays),
        ]
        words = self._words.copy()
        words[_GIVEN] = np.array(values, np.uint64)
        return words

    def _outcome(self, launch: Launch, words: npt.NDArray[np.int64]) -> Outcome:
        cause, index, finished, insns, *tokens = words[_RESULTS].tolist()
        if cause:
            return Outcome(Cause(cause), index, insns=insns)
        if finished != RUNNING:
            left = any(tokens)
            return Outcome(
                *((Cause.TOKENS_LEFT, finished) if left else (Cause.NONE, 0)), insns=insns
            )
        state = {name: int(words[number]) for number, name in enumerate(SLOTS)}
        busy = [stage for stage in Stage if state[f"count_{stage.name}"]]
        if state["fetched"] == launch.insn_count and not busy:
            return Outcome(Cause.NO_FINISH, launch.insn_count, insns=insns)
        waits = [self._wait(state, stage) for stage in busy]
        if state["fetched"] < launch.insn_count:
            waits.insert(0, Wait(None, state["fetched"], WaitReason.QUEUE))
        return Outcome(Cause.NONE, 0, tuple(waits), insns=insns)

    def _wait(self, state: dict[str, int], stage: Stage) -> Wait:
        """Why the head of a stage's queue does not go on."""
        low, high, index = (int(w) for w in self.queues[stage][state[f"head_{stage.name}"]])
        insn = InstructionSet.of(self.config).decode(high << 64 | low, Profile.VITRAL)
        if state[f"executed_{stage.name}"]:
            fmt = InstructionSet.of(self.config).finish
            prev = state[f"pending_{stage.name}"] & fmt["push_prev"].mask
            return Wait(stage, index, WaitReason.PUSH_PREV if prev else WaitReason.PUSH_NEXT)
        for wanted, step, reason in (
            (insn.pop_prev, -1, WaitReason.POP_PREV),
            (insn.pop_next, 1, WaitReason.POP_NEXT),
        ):
            if wanted and not state[f"token_{Stage(stage + step).name}_{stage.name}"]:
                return Wait(stage, index, reason)
        return Wait(stage, index, WaitReason.DRAIN)
