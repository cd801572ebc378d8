"""Estimates the cycles of a tiled convolution: the busiest of array, read and write channel."""

from dataclasses import dataclass

from vitral.compiler.schedule.geometry import Geometry, blocks_of, split
from vitral.compiler.schedule.tiling import (
    Buffers,
    Tiling,
    chunks_of,
    input_chunk,
    span_of_rows,
    tiles_of,
    weight_chunks,
)
from vitral.config import INSN_BYTES, CoreConfig

__all__ = ["LATENCY", "Estimate", "estimate", "row_beats"]

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
    layout = config.layout
    chunks, tiles = chunks_of(geometry, tiling), tiles_of(geometry, tiling)
    row_cost, cols = _input_rows(geometry, tiling, config)
    passes = _input_passes(geometry, tiling, buffers, chunks)
    inputs = row_cost * sum(task.ins for task in geometry.tasks) * passes
    weight = layout.wgt_bytes // layout.beat_bytes or 1
    weights = geometry.block_pairs * geometry.taps * weight
    weights *= _weight_passes(geometry, tiling, buffers, chunks, tiles)
    steps = (
        tiles
        * sum(task.outs * blocks_of(task.ins, tiling.ins) for task in geometry.tasks)
        * blocks_of(geometry.y.kernel, tiling.taps)
    )
    outs = sum(task.outs for task in geometry.tasks)
    write = row_beats(geometry.x.out, layout.out_bytes, config) * geometry.batches * geometry.y.out
    write = write * outs + _STORE_OVERHEAD * tiles * outs
    gemm = geometry.gemm_cycles + 2 * _GEMM_OVERHEAD * steps
    first_rows = input_chunk(geometry, tiling)[0]
    weight_elements = tiling.taps * geometry.x.kernel * geometry.planes
    piece = weight * weight_elements + first_rows * row_beats(cols, layout.inp_bytes, config)
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


def row_beats(elements: int, element_bytes: int, config: CoreConfig) -> int:
    """Cycles of one row on its channel: its beats, or its share of the latency if that is more."""
    beats = blocks_of(elements * element_bytes, config.layout.beat_bytes)
    bursts = blocks_of(beats, config.burst_beats)
    return max(beats, bursts * (LATENCY // _OUTSTANDING))


def _input_rows(geometry: Geometry, tiling: Tiling, config: CoreConfig) -> tuple[int, int]:
    """Cycles to load one input channel block for all tiles, and the widest row in elements."""
    x, kernel = geometry.x, geometry.y.kernel
    widths = [
        x.span(first, count, 0, x.kernel, 1).real for first, count in split(x.out, tiling.cols)
    ]
    rows = sum(
        span_of_rows(geometry, tiling, first, count, tap).real
        for first, count in split(geometry.y.out, tiling.rows)
        for tap, _ in split(kernel, tiling.taps)
    )
    per_row = sum(row_beats(width, config.layout.inp_bytes, config) for width in widths)
    return geometry.batches * rows * per_row, max(widths)


def _input_passes(geometry: Geometry, tiling: Tiling, buffers: Buffers, chunks: int) -> int:
    """How often each input chunk is loaded: once per output tile that finds it replaced."""
    out_tiles = blocks_of(max(task.outs for task in geometry.tasks), tiling.outs)
    resident = chunks * (tiles_of(geometry, tiling) if tiling.outs_outer else 1)
    return 1 if resident <= buffers.inp.slots else out_tiles


def _weight_passes(
    geometry: Geometry, tiling: Tiling, buffers: Buffers, chunks: int, tiles: int
) -> int:
    """How often each weight chunk is loaded: once per tile of positions that finds it replaced."""
    outs = tiling.outs if tiling.outs_outer else max(task.outs for task in geometry.tasks)
    return 1 if outs * chunks <= buffers.wgt.slots else tiles
