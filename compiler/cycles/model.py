"""The cycle model: stages, channels and queues put together; `predict` runs a program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vitral.compiler.cycles.commands import Commands
from vitral.compiler.cycles.compute import ComputeStage
from vitral.compiler.cycles.engine import LoadEngine
from vitral.compiler.cycles.fetch import Fetch
from vitral.compiler.cycles.load import LoadStage
from vitral.compiler.cycles.queues import Queue, Tokens
from vitral.compiler.cycles.reads import NEVER, ReadChannel
from vitral.compiler.cycles.store import StoreStage
from vitral.compiler.cycles.timing import CORE, ENGINE_DEPTHS, Timing
from vitral.compiler.cycles.writes import WriteChannel
from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.isa import Instruction, Memory, Stage, queue_of
from vitral.program import MemoryModel

__all__ = ["Prediction", "predict"]


@dataclass(frozen=True)
class Prediction:
    """What a program is expected to cost.

    Parameters
    ----------
    cycles : int
        From launch to done.
    retired : tuple of int
        For each instruction, the cycle in which it has pushed its tokens.
    operations, read_beats, write_beats : int
        Element operations of the compute stage, and beats of both channels.
    stalls : mapping
        Cycles by stage and cause, named like the core's counters, such as "compute_wait_prev".
    """

    cycles: int
    retired: tuple[int, ...]
    operations: int
    read_beats: int
    write_beats: int
    stalls: Mapping[str, int]


def predict(
    insns: Sequence[Instruction],
    config: CoreConfig,
    *,
    memory: MemoryModel | None = None,
    bases: Mapping[Memory, int] | None = None,
    timing: Timing = CORE,
) -> Prediction:
    """Cycles of a program on a core behind a memory that does not stall.

    `bases` are the launch's byte addresses (0 where none is given): only their place in a page
    of 4096 matters.

    Raises
    ------
    CompileError
        When the program cannot end: a token that nobody gives.
    """
    machine = _Machine(insns, config, memory or MemoryModel(), dict(bases or {}), timing)
    return machine.run()


class _Machine:
    """Each stage decides as much as is known; then the read channel grants the next bursts.

    A burst is granted to the client that asks first among those whose time is known. That is
    right because the others wait for something that only later bursts can lead to.
    """

    def __init__(
        self,
        insns: Sequence[Instruction],
        config: CoreConfig,
        memory: MemoryModel,
        bases: dict[Memory, int],
        timing: Timing,
    ) -> None:
        queues = {stage: Queue() for stage in Stage}
        order = [queues[queue_of(insn)] for insn in insns]
        for number, insn in enumerate(insns):
            order[number].add(number, insn)
        commands = Commands(config, bases)
        depths = ENGINE_DEPTHS
        load = LoadEngine(timing, depths[0], padded=Memory.INP)
        compute, store = LoadEngine(timing, depths[1]), LoadEngine(timing, depths[2])
        to_compute, to_load, to_store, back = Tokens(), Tokens(), Tokens(), Tokens()
        self._timing = timing
        self._insns = insns
        self._queues = queues
        self._engines = (load, compute, store)
        self._reads = ReadChannel(config, memory)
        self._writes = WriteChannel(config, memory, timing)
        self._fetch = Fetch(config, timing, order, queues[Stage.COMPUTE])
        self._compute = ComputeStage(
            timing,
            queues[Stage.COMPUTE],
            (to_compute, to_load),
            (back, to_store),
            compute,
            commands,
            (queues[Stage.LOAD], queues[Stage.STORE]),
        )
        self._stages = (
            LoadStage(timing, queues[Stage.LOAD], (to_load, to_compute), load, commands),
            self._compute,
            StoreStage(
                config,
                timing,
                queues[Stage.STORE],
                (to_store, back),
                store,
                commands,
                self._writes,
            ),
        )

    def run(self) -> Prediction:
        clients = [self._fetch, *self._engines]
        while True:
            self._advance(self._reads.horizon)
            if self._ended:
                return self._result()
            if not self._reads.serve(clients):
                self._advance(NEVER)
                if not self._ended and all(client.request == NEVER for client in clients):
                    raise CompileError("the program cannot end: a token is missing")

    @property
    def _ended(self) -> bool:
        return all(len(queue.retired) == len(queue.insns) for queue in self._queues.values())

    def _advance(self, horizon: int) -> None:
        moved = True
        while moved:
            moved = False
            for engine in self._engines:
                moved |= engine.settle(horizon)
            moved |= self._fetch.advance()
            for stage in self._stages:
                moved |= stage.advance()

    def _result(self) -> Prediction:
        retired = [0] * len(self._insns)
        for queue in self._queues.values():
            for number, end in zip(queue.numbers, queue.retired, strict=True):
                retired[number] = end
        last = max(queue.begun[-1] for queue in self._queues.values() if queue.begun)
        return Prediction(
            cycles=last + self._timing.finish,
            retired=tuple(retired),
            operations=self._compute.busy,
            read_beats=self._reads.beats,
            write_beats=self._writes.beats,
            stalls={
                f"{name.name.lower()}_{cause}": cycles
                for name, stage in zip(Stage, self._stages, strict=True)
                for cause, cycles in sorted(stage.stalls.items())
            },
        )
