"""Token placement: makes every conflict between stages ordered, whatever their relative speed.

Instructions are placed in an order in which executing them one after the other is right. Where a
later one conflicts with an earlier one of another stage, tokens are added so that the later one
waits. All other orders of execution that the tokens allow then give the same result.
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.isa import Instruction, Load, Memory, Stage, Store, queue_of

__all__ = ["Access", "Placed", "TokenPlacer"]

Clock = dict[Stage, int]
Channel = tuple[Stage, Stage]
CHANNELS: tuple[Channel, ...] = (
    (Stage.LOAD, Stage.COMPUTE),
    (Stage.COMPUTE, Stage.LOAD),
    (Stage.COMPUTE, Stage.STORE),
    (Stage.STORE, Stage.COMPUTE),
)
EXTRA_PUSH = 0.3
EXTRA_POP = 0.4
PENDING_LIMIT = 4
ROOMY = 16
"""From this token capacity on, a push may be added to an instruction already placed."""

_NOP: dict[Stage, Instruction] = {
    Stage.LOAD: Load(memory=Memory.INP),
    Stage.COMPUTE: Load(memory=Memory.UOP),
    Stage.STORE: Store(),
}


@dataclass(frozen=True)
class Access:
    """Elements (or DRAM bytes) of a shared resource that an instruction reads or writes."""

    resource: str
    where: npt.NDArray[np.int64] | slice
    write: bool


@dataclass
class Placed:
    """An instruction in program order; `knows` counts each stage's instructions surely done."""

    insn: Instruction
    stage: Stage
    knows: Clock = field(default_factory=dict)

    def set(self, flag: str) -> None:
        flags: dict[str, Any] = {flag: True}
        self.insn = replace(self.insn, **flags)


class TokenPlacer:
    """Places instructions one by one and adds the tokens that they need.

    Parameters
    ----------
    config : CoreConfig
        Sizes and token capacity.
    dram_size : int
        Bytes of DRAM that accesses can name.
    rng : random.Random
        Decides between the ways to hand a token over, and on extra tokens.
    """

    def __init__(self, config: CoreConfig, dram_size: int, rng: random.Random) -> None:
        layout = config.layout
        self.rng = rng
        self.capacity = config.token_capacity
        self.placed: list[Placed] = []
        self.last: dict[Stage, Placed] = {}
        self.count: Clock = dict.fromkeys(Stage, 0)
        self.clock: dict[Stage, Clock] = {s: dict.fromkeys(Stage, 0) for s in Stage}
        self.pending: dict[Channel, deque[Clock]] = {c: deque() for c in CHANNELS}
        sizes = {
            "dram": dram_size,
            "inp": layout.inp_depth,
            "wgt": layout.wgt_depth,
            "acc": layout.acc_depth,
        }
        self.touched = {
            (name, stage, write): np.zeros(size, np.int64)
            for name, size in sizes.items()
            for stage in Stage
            for write in (False, True)
        }

    def place(
        self, insn: Instruction, accesses: Sequence[Access] = (), *, own_pop: bool = False
    ) -> None:
        """Append an instruction, after what must come before it.

        With `own_pop` it takes the token that orders it after the other stage's writes itself,
        so that an implementation may start to read as soon as an instruction has its own tokens.
        """
        stage = queue_of(insn)
        needs = self._needs(stage, accesses)
        item = Placed(insn, stage)
        for other, count in needs.items():
            if self.clock[stage][other] < count or (own_pop and count):
                self._order(other, stage, count, item)
        self._extra_pops(item)
        self._append(item)
        self._extra_pushes(item)
        for access in accesses:
            self.touched[access.resource, stage, access.write][access.where] = self.count[stage]

    def drain(self, last: Instruction) -> None:
        """Take all tokens that are left, then append `last`, which may take some of them."""
        item = Placed(last, queue_of(last))
        for channel in CHANNELS:
            while self.pending[channel]:
                if channel[1] is item.stage and len(self.pending[channel]) == 1:
                    flag = _pop_flag(channel)
                    if not getattr(item.insn, flag) and self.rng.random() < 0.5:
                        self._pop(channel, item)
                        continue
                self._nop_pop(channel)
        self._append(item)

    def _needs(self, stage: Stage, accesses: Sequence[Access]) -> Clock:
        """How many instructions of each other stage must be done before these accesses.

        The farther stage comes first: the token by which it is waited for comes from the nearer.
        """
        others = sorted((s for s in Stage if s is not stage), key=lambda s: -abs(s - stage))
        needs: Clock = dict.fromkeys(others, 0)
        for access in accesses:
            for other in needs:
                for write in (False, True) if access.write else (True,):
                    earlier = self.touched[access.resource, other, write][access.where]
                    needs[other] = max(needs[other], int(earlier.max(initial=0)))
        return needs

    def _order(self, first: Stage, second: Stage, count: int, item: Placed) -> None:
        """Make `item` of stage `second` wait for the first `count` instructions of `first`."""
        if abs(first - second) == 2:
            if self.clock[Stage.COMPUTE][first] < count:
                relay = Placed(_NOP[Stage.COMPUTE], Stage.COMPUTE)
                self._order(first, Stage.COMPUTE, count, relay)
                self._append(relay)
            self._order(Stage.COMPUTE, second, self.count[Stage.COMPUTE], item)
            return
        channel = (first, second)
        knowing = [message[first] >= count for message in self.pending[channel]]
        if not any(knowing):
            while len(self.pending[channel]) >= self.capacity:
                self._nop_pop(channel)
            self._push_late(channel, item)
            knowing = [False] * (len(self.pending[channel]) - 1) + [True]
        for _ in range(knowing.index(True)):
            self._nop_pop(channel)
        if getattr(item.insn, _pop_flag(channel)):
            raise AssertionError(f"{item} already takes a token of {channel}")
        self._pop(channel, item)

    def _push_late(self, channel: Channel, item: Placed) -> None:
        """Push from the last instruction of a stage, or from an empty one added for it."""
        carrier = self.last.get(channel[0])
        free = carrier is not None and not getattr(carrier.insn, _push_flag(channel))
        if carrier is None or not free or self.capacity < ROOMY or self.rng.random() < 0.2:
            carrier = Placed(_NOP[channel[0]], channel[0])
            self._append(carrier)
        self._push(channel, carrier)

    def _push(self, channel: Channel, item: Placed) -> None:
        item.set(_push_flag(channel))
        self.pending[channel].append(item.knows)

    def _pop(self, channel: Channel, item: Placed) -> None:
        item.set(_pop_flag(channel))
        message = self.pending[channel].popleft()
        clock = self.clock[item.stage]
        for stage, count in message.items():
            clock[stage] = max(clock[stage], count)

    def _nop_pop(self, channel: Channel) -> None:
        item = Placed(_NOP[channel[1]], channel[1])
        self._pop(channel, item)
        self._append(item)

    def _append(self, item: Placed) -> None:
        self.count[item.stage] += 1
        self.clock[item.stage][item.stage] = self.count[item.stage]
        item.knows = dict(self.clock[item.stage])
        self.last[item.stage] = item
        self.placed.append(item)

    def _extra_pops(self, item: Placed) -> None:
        for channel in CHANNELS:
            free = channel[1] is item.stage and not getattr(item.insn, _pop_flag(channel))
            if free and self.pending[channel] and self.rng.random() < EXTRA_POP:
                self._pop(channel, item)

    def _extra_pushes(self, item: Placed) -> None:
        limit = min(self.capacity, PENDING_LIMIT)
        for channel in CHANNELS:
            room = len(self.pending[channel]) < limit
            if channel[0] is item.stage and room and self.rng.random() < EXTRA_PUSH:
                self._push(channel, item)


def _pop_flag(channel: Channel) -> str:
    return "pop_prev" if channel[0] < channel[1] else "pop_next"


def _push_flag(channel: Channel) -> str:
    return "push_next" if channel[0] < channel[1] else "push_prev"
