"""The load stage."""

from vitral.compiler.cycles.commands import Commands
from vitral.compiler.cycles.engine import LoadEngine
from vitral.compiler.cycles.queues import Queue, Tokens
from vitral.compiler.cycles.reads import NEVER
from vitral.compiler.cycles.stage import Stage
from vitral.compiler.cycles.timing import Timing
from vitral.isa import Instruction

__all__ = ["LoadStage"]


class LoadStage(Stage):
    """LOADs of INP and WGT; a CONFIG passes through the engine like a LOAD of nothing."""

    def __init__(
        self,
        timing: Timing,
        queue: Queue,
        following: tuple[Tokens, Tokens],
        engine: LoadEngine,
        commands: Commands,
    ) -> None:
        super().__init__(timing, queue, None, following)
        self._engine = engine
        self._commands = commands

    def able(self, insn: Instruction) -> tuple[int, int] | None:
        ready = self._engine.ready
        return None if ready == NEVER else (ready, 0)

    def begin(self, insn: Instruction, time: int) -> None:
        self._engine.take(time, self._commands.of(insn))

    def retire(self) -> None:
        done, queue = self._engine.done, self.queue
        while len(queue.retired) < len(done):
            number = len(queue.retired)
            self.push(queue.insns[number], done[number] + self.timing.beat_to_token)
