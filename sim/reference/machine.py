"""Fetch, stage queues and dependency tokens: the order in which instructions may execute."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.isa import (
    Alu,
    Cause,
    Config,
    ConfigRegister,
    DecodeError,
    Finish,
    Gemm,
    Instruction,
    InstructionSet,
    Load,
    Stage,
    Store,
    Window,
    queue_of,
)
from vitral.program import Dram, Launch, OnChip, Outcome, Wait, WaitReason
from vitral.sim.reference.memory import Fault, MemoryPort
from vitral.sim.reference.tensor import alu, gemm, window
from vitral.sim.reference.transfer import load, store

__all__ = ["Reference"]

Channel = tuple[Stage, Stage]
CHANNELS: tuple[Channel, ...] = (
    (Stage.LOAD, Stage.COMPUTE),
    (Stage.COMPUTE, Stage.LOAD),
    (Stage.COMPUTE, Stage.STORE),
    (Stage.STORE, Stage.COMPUTE),
)
_REGISTER_STRIDE = 128


class Reference:
    """A core of one configuration, with memories that keep their contents between runs.

    Parameters
    ----------
    config : CoreConfig
        The core's parameters.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        self.isa = InstructionSet.of(config)
        self.onchip = OnChip.zeros(config)

    def run(
        self,
        launch: Launch,
        dram: Dram,
        *,
        onchip: OnChip | None = None,
        order_seed: int | None = None,
        max_steps: int | None = None,
    ) -> Outcome:
        """Run a program to its end, fault or deadlock, changing `dram` in place.

        `onchip`, when given, is used and changed instead of the core's own memories. With
        `order_seed` the next stage to go on is drawn at random, fetch being one of them; without,
        they take turns. A well-formed program gives the same bytes in every order.

        Raises
        ------
        DeviceError
            When more than `max_steps` steps (an instruction fetched or executed) were taken.
        """
        if onchip is not None:
            onchip.check(self.config)
        port = MemoryPort(self.config, launch, dram)
        run = _Run(self.config, self.isa, launch, port, onchip or self.onchip)
        return run.to_end(None if order_seed is None else random.Random(order_seed), max_steps)


@dataclass
class _Slot:
    """An instruction in its queue; it leaves when it has executed and pushed all its tokens."""

    index: int
    insn: Instruction
    executed: bool = False
    pushes: list[Channel] = field(default_factory=list)


class _Run:
    """State of one launch."""

    def __init__(
        self,
        config: CoreConfig,
        isa: InstructionSet,
        launch: Launch,
        port: MemoryPort,
        onchip: OnChip,
    ) -> None:
        self.config = config
        self.isa = isa
        self.launch = launch
        self.port = port
        self.onchip = onchip
        self.registers = dict.fromkeys(ConfigRegister, 0)
        self.queues: dict[Stage, deque[_Slot]] = {stage: deque() for stage in Stage}
        self.tokens = dict.fromkeys(CHANNELS, 0)
        self.fetched = 0
        self.fetch_next: _Slot | None = None
        self.insns = 0
        self.finished: int | None = None
        self.at = 0

    def to_end(self, rng: random.Random | None, max_steps: int | None) -> Outcome:
        try:
            self._until_still(rng, max_steps)
            return self._outcome()
        except Fault as fault:
            return Outcome(fault.cause, self.at, insns=self.insns)

    def _until_still(self, rng: random.Random | None, max_steps: int | None) -> None:
        if not self.launch.insn_count:
            raise Fault(Cause.EMPTY_PROGRAM)
        actors: list[Callable[[], bool]] = [self._fetch]
        actors += [lambda stage=stage: self._advance(stage) for stage in Stage]
        steps = 0
        while self.finished is None:
            if rng is not None:
                rng.shuffle(actors)
            # in shuffled order only the first actor that can go on does, so any order is possible
            moved = any(step() for step in actors) if rng else sum(step() for step in actors) > 0
            if not moved:
                return
            steps += 1
            if max_steps is not None and steps > max_steps:
                raise DeviceError(f"program takes more than {max_steps} steps; raise max_steps")

    def _outcome(self) -> Outcome:
        if self.finished is not None:
            left = any(self.tokens.values())
            cause, index = (Cause.TOKENS_LEFT, self.finished) if left else (Cause.NONE, 0)
            return Outcome(cause, index, insns=self.insns)
        if self.fetched == self.launch.insn_count and not any(self.queues.values()):
            return Outcome(Cause.NO_FINISH, self.launch.insn_count, insns=self.insns)
        return Outcome(Cause.NONE, 0, self._waits(), insns=self.insns)

    def _fetch(self) -> bool:
        """Append the next instruction to its queue, unless that is full."""
        if self.fetched == self.launch.insn_count:
            return False
        if self.fetch_next is None:
            self.fetch_next = self._read_instruction()
        queue = self.queues[queue_of(self.fetch_next.insn)]
        if len(queue) >= self.config.queue_depth:
            return False
        queue.append(self.fetch_next)
        self.fetched += 1
        self.fetch_next = None
        return True

    def _read_instruction(self) -> _Slot:
        self.at = self.fetched
        try:
            insn = self.isa.decode(self.port.instruction(self.fetched), self.launch.profile)
        except DecodeError as error:
            raise Fault(error.cause) from None
        if isinstance(insn, Finish) and self.fetched != self.launch.insn_count - 1:
            raise Fault(Cause.FINISH_NOT_LAST)
        stage = queue_of(insn)
        return _Slot(self.fetched, insn, pushes=[(stage, to) for to in _pushes(insn, stage)])

    def _advance(self, stage: Stage) -> bool:
        """Execute, or push what is still to be pushed for, the head of a queue."""
        if not self.queues[stage]:
            return False
        slot = self.queues[stage][0]
        if slot.executed:
            return self._push(slot, stage)
        if self._blocked(slot, stage) is not None:
            return False
        for source in _pops(slot.insn, stage):
            self.tokens[source, stage] -= 1
        self.at = slot.index
        self._execute(slot.insn)
        self.insns += 1
        slot.executed = True
        self._push(slot, stage)
        return True

    def _blocked(self, slot: _Slot, stage: Stage) -> WaitReason | None:
        """Why the head of a queue cannot execute; it takes its tokens only when all are there."""
        for source in _pops(slot.insn, stage):
            if not self.tokens[source, stage]:
                return WaitReason.POP_PREV if source < stage else WaitReason.POP_NEXT
        others = self.queues[Stage.LOAD] or self.queues[Stage.STORE]
        if isinstance(slot.insn, Finish) and others:
            return WaitReason.DRAIN
        return None

    def _push(self, slot: _Slot, stage: Stage) -> bool:
        """Push each token that has room; the instruction leaves after its last one."""
        ready = [c for c in slot.pushes if self.tokens[c] < self.config.token_capacity]
        for channel in ready:
            self.tokens[channel] += 1
            slot.pushes.remove(channel)
        if slot.pushes:
            return bool(ready)
        self.queues[stage].popleft()
        if isinstance(slot.insn, Finish):
            self.finished = slot.index
        return True

    def _execute(self, insn: Instruction) -> None:
        match insn:
            case Load():
                load(insn, self.onchip, self.port, self.registers)
            case Store():
                store(insn, self.onchip, self.port)
            case Gemm():
                gemm(insn, self.onchip, self.isa)
            case Window():
                window(insn, self.onchip, self.isa, self.registers[ConfigRegister.WINDOW])
            case Alu():
                alu(insn, self.onchip, self.isa)
            case Config(stage=stage, register=register, value=value):
                self.registers[ConfigRegister(stage * _REGISTER_STRIDE + register)] = value
            case _:
                pass

    def _waits(self) -> tuple[Wait, ...]:
        """Where fetch (when it is not done) and each stage with work stand."""
        waits = [
            Wait(stage, queue[0].index, self._reason(queue[0], stage))
            for stage, queue in self.queues.items()
            if queue
        ]
        if self.fetched < self.launch.insn_count:
            waits.insert(0, Wait(None, self.fetched, WaitReason.QUEUE))
        return tuple(waits)

    def _reason(self, slot: _Slot, stage: Stage) -> WaitReason:
        if slot.executed:
            _, neighbour = slot.pushes[0]
            return WaitReason.PUSH_PREV if neighbour < stage else WaitReason.PUSH_NEXT
        return self._blocked(slot, stage) or WaitReason.BUSY


def _pops(insn: Instruction, stage: Stage) -> list[Stage]:
    flags = ((insn.pop_prev, stage - 1), (insn.pop_next, stage + 1))
    return [Stage(neighbour) for flag, neighbour in flags if flag]


def _pushes(insn: Instruction, stage: Stage) -> list[Stage]:
    flags = ((insn.push_prev, stage - 1), (insn.push_next, stage + 1))
    return [Stage(neighbour) for flag, neighbour in flags if flag]
