"""What memory costs, and what a convolution takes at least."""

from vitral.compiler.schedule.geometry import Geometry, blocks_of
from vitral.config import CoreConfig

__all__ = ["LATENCY", "least_cycles", "row_beats"]

LATENCY = 64
"""Cycles from a read's address to its first data, as the memory of the yardstick has."""

_OUTSTANDING = 8


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
