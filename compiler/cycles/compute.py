"""The compute stage: loops of element operations, LOADs of micro-ops and accumulators."""

from vitral.compiler.cycles.commands import Commands, is_empty
from vitral.compiler.cycles.engine import LoadEngine
from vitral.compiler.cycles.queues import Queue, Tokens
from vitral.compiler.cycles.reads import NEVER
from vitral.compiler.cycles.stage import Stage
from vitral.compiler.cycles.timing import Timing
from vitral.isa import Alu, Config, ConfigRegister, Finish, Gemm, Instruction, Load, Memory, Window

__all__ = ["ComputeStage", "elements_of"]

_WINDOW = ConfigRegister.WINDOW - ConfigRegister.ACC_PAD  # its number within the stage


def elements_of(insn: "Gemm | Alu | Window") -> int:
    """Element operations of a loop instruction."""
    return insn.iter_out * insn.iter_in * max(0, insn.uop_end - insn.uop_bgn)


class ComputeStage(Stage):
    """Runs one element operation per cycle, from one instruction to the next without a gap.

    `busy` counts them. FINISH begins when all `others` have retired everything.
    """

    def __init__(
        self,
        timing: Timing,
        queue: Queue,
        prev: tuple[Tokens, Tokens],
        following: tuple[Tokens, Tokens],
        engine: LoadEngine,
        commands: Commands,
        others: tuple[Queue, Queue],
    ) -> None:
        super().__init__(timing, queue, prev, following)
        self._engine = engine
        self._commands = commands
        self._others = others
        self._free = 0  # first cycle in which the sequencer takes a command
        self._drained = 0  # cycle from which on the units are idle
        self._in_alu = False
        self._uops = (0, 0)  # those of the running loop
        self._loads = self._loads_retired = 0  # LOADs begun, retired
        self._ends: list[int | None] = []  # by instruction; None: by the engine
        self._end = 0
        self.busy = 0

    def able(self, insn: Instruction) -> tuple[int, int] | None:
        number = len(self.queue.begun)
        room = 0
        if number >= self.timing.flights:
            if number - self.timing.flights >= len(self.queue.retired):
                return None
            room = self.queue.retired[number - self.timing.flights]
        if isinstance(insn, Gemm | Alu | Window):
            return self._able_loop(room)
        if isinstance(insn, Load) and not is_empty(insn):
            return self._able_load(insn, room)
        if isinstance(insn, Finish):
            return self._able_finish()
        if isinstance(insn, Config) and insn.register == _WINDOW:
            return max(room, self._last + 1, self._free + self.timing.window_wait), 0
        return max(room, self._last + 1), 0

    @property
    def _last(self) -> int:
        return self.queue.begun[-1] if self.queue.begun else 0

    def _able_loop(self, room: int) -> tuple[int, int] | None:
        if len(self._engine.done) < self._loads:
            return None
        loaded = 0
        if self._loads:
            loaded = self._engine.done[-1] + self.timing.beat_to_units
        return max(self._free, room, self._last + 1), loaded

    def _able_load(self, insn: Load, room: int) -> tuple[int, int] | None:
        if self._engine.ready == NEVER:
            return None
        others = insn.memory is Memory.UOP and (
            insn.sram_base + insn.x_size * insn.y_size <= self._uops[0]
            or insn.sram_base >= self._uops[1]
        )
        units = self._last + 1 if others else self._drained
        return max(room, units, self._last + 1), self._engine.ready

    def _able_finish(self) -> tuple[int, int] | None:
        if len(self.queue.retired) < len(self.queue.begun):
            return None
        if any(len(queue.retired) < len(queue.insns) for queue in self._others):
            return None
        ends = [queue.retired[-1] for queue in (self.queue, *self._others) if queue.retired]
        return max([self._last + 1, *ends]), 0

    def begin(self, insn: Instruction, time: int) -> None:
        if isinstance(insn, Gemm | Alu | Window):
            count = elements_of(insn)
            self.busy += count
            if isinstance(insn, Alu) and not insn.use_imm:
                count *= self.timing.alu_pair
            if isinstance(insn, Alu) != self._in_alu:
                count += max(0, self._free + self.timing.unit_switch - time)
            self._in_alu = isinstance(insn, Alu)
            self._uops = (insn.uop_bgn, insn.uop_end)
            self._free = time + max(1, count)
            self._ends.append(self._free + self.timing.loop_to_retire)
            self._drained = self._free + self.timing.loop_to_retire - 1
        elif isinstance(insn, Load) and not is_empty(insn):
            self._engine.take(time, self._commands.of(insn))
            self._loads += 1
            self._ends.append(None)
        else:
            self._ends.append(time + self.timing.turn_to_token)

    def retire(self) -> None:
        queue = self.queue
        while len(queue.retired) < len(queue.begun):
            number = len(queue.retired)
            end = self._ends[number]
            if end is None:
                if self._loads_retired >= len(self._engine.done):
                    break
                end = self._engine.done[self._loads_retired] + self.timing.beat_to_units + 1
                self._loads_retired += 1
            self._end = max(end, self._end + 1)
            self.push(queue.insns[number], self._end)
