"""Estimates the cycles of a tiled convolution: the busiest of array, read and write channel."""

from dataclasses import dataclass
from functools import cache

from vitral.compiler.schedule.geometry import Geometry, blocks_of, split
from vitral.compiler.schedule.tiling import (
    Buffers,
    Tiling,
    chunks_of,
    tiles_of,
    weight_chunks,
)
from vitral.config import INSN_BYTES, CoreConfig

__all__ = ["LATENCY", "Estimate", "Estimator", "estimate", "least_cycles", "row_beats"]

LATENCY = 64
"""Cycles from a read's address to its first data, as the memory of the yardstick has."""

_OUTSTANDING = 8
_GEMM_OVERHEAD = 2
_STORE_OVERHEAD = 8
_INSNS_PER_STEP = 5


@dataclass(frozen=True)
class Estimate:
    """Cycles of the array and of both channels, and what nothing overlaps with.

    `exposed` is the wait for the first operands, the last STORE, and loads into the only slot.
    """

    gemm: int
    read: int
    write: int
    exposed: int

    @property
    def cycles(self) -> int:
        return max(self.gemm, self.read, self.write) + self.exposed


def estimate(geometry: Geometry, tiling: Tiling, buffers: Buffers, config: CoreConfig) -> Estimate:
    """Cycles of a layer on its own, at the yardstick memory."""
    return Estimator(geometry, config)(tiling, buffers)


class Estimator:
    """Estimates tilings of one layer; what several of them share is computed once."""

    def __init__(self, geometry: Geometry, config: CoreConfig) -> None:
        self._geometry = geometry
        self._config = config
        layout = config.layout
        self._weight = layout.wgt_bytes // layout.beat_bytes or 1
        self._task_ins = sum(task.ins for task in geometry.tasks)
        self._task_outs = sum(task.outs for task in geometry.tasks)
        self._most_outs = max(task.outs for task in geometry.tasks)
        self._parts = cache(self._count_parts)
        self._rows = cache(self._input_rows)
        self._written = cache(self._write_beats)

    def __call__(self, tiling: Tiling, buffers: Buffers) -> Estimate:
        geometry, layout, config = self._geometry, self._config.layout, self._config
        chunks, tiles = chunks_of(geometry, tiling), tiles_of(geometry, tiling)
        row_cost, widest, rows = self._rows(tiling.rows, tiling.cols, tiling.taps)
        passes = self._input_passes(tiling, buffers, chunks, tiles)
        inputs = row_cost * self._task_ins * passes
        weights = geometry.block_pairs * geometry.taps * self._weight
        weights *= self._weight_passes(tiling, buffers, chunks, tiles)
        steps = tiles * self._parts(tiling.ins) * blocks_of(geometry.y.kernel, tiling.taps)
        write = self._written(tiling.cols) + _STORE_OVERHEAD * tiles * self._task_outs
        gemm = geometry.gemm_cycles + 2 * _GEMM_OVERHEAD * steps
        weight_elements = tiling.taps * geometry.x.kernel * geometry.planes
        piece = self._weight * weight_elements + rows * row_beats(widest, layout.inp_bytes, config)
        hidden = weight_elements * tiling.rows * tiling.cols
        exposed = 2 * LATENCY + piece + (tiling.ins - 1) * max(0, piece - hidden)
        exposed += tiling.rows * row_beats(tiling.cols, layout.out_bytes, config)
        if buffers.inp.slots == 1 and passes * tiles * chunks > 1:
            exposed += inputs
        if buffers.wgt.slots == 1 and weight_chunks(geometry, tiling) > 1:
            exposed += weights
        if buffers.acc.slots * tiling.outs == 1:
            exposed += write
        fetch = steps * _INSNS_PER_STEP * INSN_BYTES // layout.beat_bytes
        return Estimate(gemm, inputs + weights + fetch, write, exposed)

    def _count_parts(self, ins: int) -> int:
        """Output channel blocks times chunks of their input channel blocks, of all tasks."""
        return sum(task.outs * blocks_of(task.ins, ins) for task in self._geometry.tasks)

    def _write_beats(self, cols: int) -> int:
        """Cycles that all outputs need on the write channel, in rows of tiles."""
        geometry, config = self._geometry, self._config
        rows = geometry.batches * geometry.y.out * self._task_outs
        runs = split(geometry.x.out, cols)
        return rows * sum(row_beats(n, config.layout.out_bytes, config) for _, n in runs)

    def _input_rows(self, rows: int, cols: int, taps: int) -> tuple[int, int, int]:
        """Cycles to load an input channel block for all tiles; widest and most rows of a tile."""
        x, y, inp = self._geometry.x, self._geometry.y, self._config.layout.inp_bytes
        runs = split(x.out, cols)
        widths = [x.span(first, count, 0, x.kernel, 1).real for first, count in runs]
        step = y.step(rows, taps)
        spans = [
            y.span(first, count, tap, tap_count, step)
            for first, count in split(y.out, rows)
            for tap, tap_count in split(y.kernel, taps)
        ]
        per_row = sum(row_beats(width, inp, self._config) for width in widths)
        loaded = sum(span.real for span in spans)
        most = max(span.loaded for span in spans)
        return self._geometry.batches * loaded * per_row, max(widths), most

    def _input_passes(self, tiling: Tiling, buffers: Buffers, chunks: int, tiles: int) -> int:
        """How often each input chunk is loaded: once per output tile that finds it replaced."""
        resident = chunks * (tiles if tiling.outs_outer else 1)
        return 1 if resident <= buffers.inp.slots else blocks_of(self._most_outs, tiling.outs)

    def _weight_passes(self, tiling: Tiling, buffers: Buffers, chunks: int, tiles: int) -> int:
        """How often each weight chunk is loaded: once per tile that finds it replaced."""
        outs = tiling.outs if tiling.outs_outer else self._most_outs
        return 1 if outs * chunks <= buffers.wgt.slots else tiles


def least_cycles(geometry: Geometry, config: CoreConfig) -> int:
    """Cycles that no tiling can beat: products, or needed bytes of the busier channel."""
    layout = config.layout
    ins = max(task.first_in + task.ins for task in geometry.tasks)
    rows = {
        out * geometry.y.stride + tap * geometry.y.dilation - geometry.y.before
        for out in range(geometry.y.out)
        for tap in range(geometry.y.kernel)
    }
    elements = len(rows & set(range(geometry.y.size))) * geometry.x.size
    read = geometry.batches * ins * elements * layout.inp_bytes
    read += geometry.block_pairs * geometry.taps * layout.wgt_bytes
    write = geometry.positions * sum(task.outs for task in geometry.tasks) * layout.out_bytes
    return max(geometry.gemm_cycles, max(read, write) // layout.beat_bytes)


def row_beats(elements: int, element_bytes: int, config: CoreConfig) -> int:
    """Cycles of one row on its channel: its beats, or its share of the latency if that is more."""
    beats = blocks_of(elements * element_bytes, config.layout.beat_bytes)
    bursts = blocks_of(beats, config.burst_beats)
    return max(beats, bursts * (LATENCY // _OUTSTANDING))
