"""Estimates a layer's cycles by running its steps through the three queues, step by step.

LOADs take the read channel in order, each once its slot is free; a step's products run when its
operands are there and its accumulators are stored; STOREs take the write channel in order.
"""

from vitral.compiler.schedule.cost import LATENCY, row_beats
from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.steps import Step
from vitral.compiler.schedule.tiling import Buffers, Tiling
from vitral.compiler.schedule.unroll import Placement, unroll
from vitral.config import INSN_BYTES, CoreConfig

__all__ = ["timeline_cycles"]

_GEMM_OVERHEAD = 2
_STORE_OVERHEAD = 8
_RELOAD = 2 * LATENCY  # a LOAD of micro-ops between two GEMMs


def timeline_cycles(
    geometry: Geometry, tiling: Tiling, buffers: Buffers, config: CoreConfig
) -> int:
    """Cycles of a layer on its own at the yardstick memory."""
    steps = unroll(0, geometry, tiling, buffers, Placement())
    timeline = _Timeline(geometry, config)
    timeline.load_uops(_micro_ops(steps, geometry))
    for step in steps:
        timeline.run(step)
    return timeline.end


def _micro_ops(steps: list[Step], geometry: Geometry) -> int:
    """Micro-ops of all steps; those that a loop replaces count too, but as one."""
    rows, cols = steps[0].tile.rows[1], steps[0].tile.cols[1]
    looped = geometry.taps == 1 and (1 in (rows, cols) or steps[0].input.pitch == cols)
    distinct = {
        (step.input.base, step.weight.base, step.acc, step.input.plane): step.weight.count
        for step in steps
    }
    return len(distinct) if looped else sum(distinct.values())


class _Timeline:
    """Times, in cycles, at which each resource is free again."""

    def __init__(self, geometry: Geometry, config: CoreConfig) -> None:
        self._geometry = geometry
        self._config = config
        self._weight = -(-config.layout.wgt_bytes // config.layout.beat_bytes)
        self._per_insn = INSN_BYTES // config.layout.beat_bytes or 1
        self._read = 0
        self._gemm = 0
        self._write = 0
        self._reload = 0
        self._used: dict[tuple[str, int], int] = {}

    def load_uops(self, count: int) -> None:
        """Micro-ops come first; when they do not fit, every step waits for some."""
        layout = self._config.layout
        self._read = self._gemm = LATENCY + count * layout.uop_bytes // layout.beat_bytes
        if count > layout.uop_depth:
            self._read = self._gemm = LATENCY
            self._reload = _RELOAD

    @property
    def end(self) -> int:
        return max(self._gemm, self._write) + LATENCY

    def run(self, step: Step) -> None:
        pieces = step.chunk.ins[1] if step.cold else 1
        cycles = step.tile.positions * step.weight.count
        start = max(self._gemm + self._reload, self._used.get(("acc", step.acc), 0))
        for piece in range(pieces):
            ready = self._load(step, piece, pieces)
            start = max(start, ready) + cycles // pieces + _GEMM_OVERHEAD
        self._gemm = start + (_GEMM_OVERHEAD if step.first else 0)
        self._used["inp", step.input.base] = self._gemm
        self._used["wgt", step.weight.base] = self._gemm
        if step.store_blocks:
            self._store(step)

    def _load(self, step: Step, piece: int, pieces: int) -> int:
        """When an equal share of the operands is there; 0 when nothing is loaded."""
        ready = 0
        if step.load_weight:
            beats = step.weight.count * self._weight
            ready = self._transfer(("wgt", step.weight.base), beats, piece, pieces)
        if step.load_input:
            chunk = step.input
            row = row_beats(chunk.cols.real, self._config.layout.inp_bytes, self._config)
            beats = step.chunk.ins[1] * (chunk.rows.real * row + self._per_insn)
            ready = self._transfer(("inp", chunk.base), beats, piece, pieces)
        return ready

    def _transfer(self, slot: tuple[str, int], beats: int, piece: int, pieces: int) -> int:
        free = self._used.get(slot, 0) + LATENCY if piece == 0 else 0
        share = (piece + 1) * beats // pieces - piece * beats // pieces
        self._read = max(self._read, free) + share + self._per_insn
        return self._read

    def _store(self, step: Step) -> None:
        row = row_beats(step.tile.cols[1], self._config.layout.out_bytes, self._config)
        beats = step.store_blocks * step.tile.rows[1] * row + _STORE_OVERHEAD
        self._write = max(self._write, self._gemm) + beats
        self._read += 3 * self._per_insn  # fetching the step's instructions
        self._used["acc", step.acc] = self._write + LATENCY
