"""The functional simulator: whole programs in native code, specialised to a configuration."""

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.isa import (
    Cause,
    ConfigRegister,
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

    def run(self, launch: Launch, dram: Dram, *, onchip: OnChip | None = None) -> Outcome:
        """Run a program to its end, fault or deadlock, changing `dram` in place.

        `onchip`, when given, is used and changed instead of the core's own memories.
        """
        if not launch.insn_count:
            return Outcome(Cause.EMPTY_PROGRAM, 0)
        memories = self.onchip if onchip is None else onchip
        memories.check(self.config)
        arrays = {name: np.ascontiguousarray(getattr(memories, name)) for name in _MEMORIES}
        words = self._context(launch, dram, arrays)
        self.native.run(words.ctypes.data)
        for name, array in arrays.items():
            if array is not getattr(memories, name):
                getattr(memories, name)[:] = array
        return self._outcome(launch, words)

    def _context(
        self, launch: Launch, dram: Dram, arrays: dict[str, npt.NDArray[np.generic]]
    ) -> npt.NDArray[np.uint64]:
        last = min(launch.limit_high, 1 << self.config.addr_bits) - 1
        nothing = last < launch.limit_low
        values = {
            "dram": dram.data.ctypes.data,
            "dram_first": dram.base,
            "dram_last": dram.end - 1,
            "limit_low": LAST_ADDRESS if nothing else launch.limit_low,
            "limit_last": 0 if nothing else last,
            "insn_base": launch.insn_base,
            "insn_count": launch.insn_count,
            "profile": int(launch.profile),
            "finished": LAST_ADDRESS,  # RUNNING as an unsigned word
        }
        values |= {f"base_{memory.name}": launch.base(memory) for memory in Memory}
        values |= {f"register_{register.name}": 0 for register in ConfigRegister}
        values |= {name: array.ctypes.data for name, array in arrays.items()}
        values |= {name: array.ctypes.data for name, array in self.shadows.items()}
        values |= {f"queue_{s.name}": queue.ctypes.data for s, queue in self.queues.items()}
        words = np.zeros(len(SLOTS), np.uint64)
        for name, value in values.items():
            words[slot(name)] = value
        return words

    def _outcome(self, launch: Launch, words: npt.NDArray[np.uint64]) -> Outcome:
        signed = words.view(np.int64)
        state = {name: int(signed[number]) for number, name in enumerate(SLOTS)}
        insns = state["insns"]
        if state["cause"]:
            return Outcome(Cause(state["cause"]), state["index"], insns=insns)
        if state["finished"] != RUNNING:
            left = any(state[f"token_{giver.name}_{taker.name}"] for giver, taker in TOKENS)
            cause, index = (Cause.TOKENS_LEFT, state["finished"]) if left else (Cause.NONE, 0)
            return Outcome(cause, index, insns=insns)
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
