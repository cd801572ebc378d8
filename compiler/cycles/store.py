"""The store stage."""

from collections import deque

from vitral.compiler.cycles.bursts import transfer
from vitral.compiler.cycles.commands import Commands, is_empty
from vitral.compiler.cycles.engine import LoadEngine
from vitral.compiler.cycles.queues import Queue, Tokens
from vitral.compiler.cycles.reads import NEVER
from vitral.compiler.cycles.stage import Stage
from vitral.compiler.cycles.timing import Timing
from vitral.compiler.cycles.writes import WriteChannel
from vitral.config import CoreConfig
from vitral.isa import Instruction, Load, Store

__all__ = ["StoreStage"]


class StoreStage(Stage):
    """STOREs, as fast as granules and the write channel go, and LOADs of parameters."""

    def __init__(
        self,
        config: CoreConfig,
        timing: Timing,
        queue: Queue,
        prev: tuple[Tokens, Tokens],
        engine: LoadEngine,
        commands: Commands,
        channel: WriteChannel,
    ) -> None:
        super().__init__(timing, queue, prev, None)
        self._config = config
        self._engine = engine
        self._commands = commands
        self._channel = channel
        layout = config.layout
        self._granule = layout.granule_bytes
        self._turns = layout.granule_bytes // layout.requant_lanes  # per requantised granule
        self._free = 0  # first cycle in which a STORE's address and ACC range can be taken
        self._jobs: deque[int] = deque([0] * timing.store_jobs, timing.store_jobs)
        self._ends: list[int | None] = []
        self._end = 0
        self._loads = self._loads_retired = 0

    @property
    def busy(self) -> int:
        return self._channel.beats

    def able(self, insn: Instruction) -> tuple[int, int] | None:
        queue, number = self.queue, len(self.queue.begun)
        timing = self.timing
        if len(self._engine.done) < self._loads:
            return None
        room = loaded = 0
        if self._loads:
            loaded = self._engine.done[-1] + timing.beat_to_units
        if number >= timing.store_flights:
            if number - timing.store_flights >= len(queue.retired):
                return None
            room = queue.retired[number - timing.store_flights]
        if queue.begun:
            room = max(room, queue.begun[-1] + timing.measure)
        room = max(room, queue.arrived[number] + 1)
        if isinstance(insn, Store) and not is_empty(insn):
            return max(room, self._free, self._jobs[0] + 1), loaded
        if isinstance(insn, Load) and not is_empty(insn):
            if self._engine.ready == NEVER:
                return None
            return max(room, self._jobs[-1] + timing.last_use), max(loaded, self._engine.ready)
        return room, loaded

    def begin(self, insn: Instruction, time: int) -> None:
        if isinstance(insn, Store) and not is_empty(insn):
            self._store(insn, time)
        elif isinstance(insn, Load) and not is_empty(insn):
            self._engine.take(time, self._commands.of(insn))
            self._loads += 1
            self._ends.append(None)
        else:
            self._ends.append(time + self.timing.turn_to_token)

    def _store(self, insn: Store, time: int) -> None:
        timing, size = self.timing, self._commands.element_bytes(insn.memory)
        count = insn.x_size * insn.y_size
        turns = self._turns if insn.requant else 1
        per_element = size // self._granule * turns
        first = max(time + timing.store_to_element, self._jobs[-1] + 1)
        to_bus = timing.requant_to_bus + turns - 1 if insn.requant else timing.granule_to_bus
        moved = transfer(
            self._commands.address(insn.memory, insn.dram_base),
            insn.x_size * size,
            insn.x_stride * size,
            insn.y_size,
            True,
            self._config,
        )
        address = time + timing.store_to_address
        row, end, ack = self._channel.send(moved.bursts, address, first + to_bus, moved.before_last)
        last = max(end - to_bus, first + count * per_element - 1)
        if turns > 1:  # data come slower than the bus takes them
            ack = max(ack, last + to_bus + ack - end)
        self._jobs.append(last)
        ahead = first + (count - timing.gather) * per_element
        self._free = max(time + count, ahead, row)
        self._ends.append(ack + timing.ack_to_token)

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
