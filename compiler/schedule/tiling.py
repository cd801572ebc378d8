"""Tilings of a convolution, and the on-chip buffers that one needs."""

from dataclasses import dataclass
from functools import lru_cache

from vitral.compiler.schedule.geometry import Geometry, Span, blocks_of, split
from vitral.config import CoreConfig, CoreLayout
from vitral.isa import InstructionSet

__all__ = [
    "INPUT_SLOTS",
    "ITER_MAX",
    "WEIGHT_SLOTS",
    "Buffers",
    "Ring",
    "Tiling",
    "buffers_of",
    "chunks_of",
    "input_chunk",
    "longest",
    "span_of_rows",
    "tiles_of",
    "weight_chunks",
]

ITER_MAX = InstructionSet.of(CoreConfig()).gemm["iter_in"].range[1]
"""Largest count of a loop of an instruction."""

WEIGHT_SLOTS = 16  # when weights stream: enough to bridge the load of an input chunk
INPUT_SLOTS = 4


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """How the loops of a convolution are cut.

    A tile is `rows` x `cols` outputs of `outs` channel blocks, whose sums stay in ACC while the
    reduction runs in chunks of `ins` input channel blocks and `taps` kernel rows. Tiles run with
    the output channels outermost when `outs_outer`, else with the position outermost.
    """

    rows: int
    cols: int
    outs: int
    ins: int
    taps: int
    outs_outer: bool


@dataclass(frozen=True)
class Ring:
    """Slots of equal size in an on-chip memory, in elements."""

    size: int
    slots: int
    spacing: int

    def base(self, slot: int) -> int:
        return slot * self.spacing


@dataclass(frozen=True)
class Buffers:
    """The slots of each memory. `plane_rows` rows are set aside per input channel block."""

    inp: Ring
    wgt: Ring
    acc: Ring
    plane_rows: int


@lru_cache(maxsize=4096)
def longest(geometry: Geometry, vertical: bool, part: int, taps: int) -> int:
    """Most positions that any tile loads along an axis."""
    axis = geometry.y if vertical else geometry.x
    step = axis.step(part, taps) if vertical else 1
    return max(
        axis.span(first, length, tap, tap_count, step).loaded
        for first, length in split(axis.out, part)
        for tap, tap_count in split(axis.kernel, taps)
    )


def input_chunk(geometry: Geometry, tiling: Tiling) -> tuple[int, int]:
    """Rows and columns that are set aside for an input channel block of a tile."""
    rows = longest(geometry, True, tiling.rows, tiling.taps)
    cols = longest(geometry, False, tiling.cols, geometry.x.kernel)
    return rows, cols


def buffers_of(geometry: Geometry, tiling: Tiling, layout: CoreLayout) -> Buffers | None:
    """The buffers of a tiling, or None when a single tile does not fit."""
    rows, cols = input_chunk(geometry, tiling)
    inp = _input_ring(geometry, tiling, tiling.ins * rows * cols, layout.inp_depth)
    weights = tiling.ins * tiling.taps * geometry.x.kernel * geometry.planes
    wgt = _weight_ring(geometry, tiling, weights, layout.wgt_depth)
    acc = _ring(tiling.outs * tiling.rows * tiling.cols, 2, layout.acc_depth)
    if inp is None or wgt is None or acc is None or max(tiling.rows, tiling.cols) > ITER_MAX:
        return None
    return Buffers(inp, wgt, acc, rows)


def chunks_of(geometry: Geometry, tiling: Tiling) -> int:
    """Parts of the reduction of the widest task."""
    ins = max(task.ins for task in geometry.tasks)
    return blocks_of(ins, tiling.ins) * blocks_of(geometry.y.kernel, tiling.taps)


def tiles_of(geometry: Geometry, tiling: Tiling) -> int:
    """Tiles of positions, over the whole batch."""
    rows, cols = blocks_of(geometry.y.out, tiling.rows), blocks_of(geometry.x.out, tiling.cols)
    return geometry.batches * rows * cols


def weight_chunks(geometry: Geometry, tiling: Tiling) -> int:
    """Weight chunks of the whole layer: one per output channel block and part of the reduction."""
    parts = sum(task.outs * blocks_of(task.ins, tiling.ins) for task in geometry.tasks)
    return parts * blocks_of(geometry.y.kernel, tiling.taps)


def _ring(size: int, slots: int, depth: int) -> Ring | None:
    """Up to `slots` slots; two of them lie in the halves of the memory, more side by side."""
    if size > depth:
        return None
    slots = min(slots, depth // size)
    return Ring(size, slots, depth // 2 if slots == 2 else size)


def _input_ring(geometry: Geometry, tiling: Tiling, size: int, depth: int) -> Ring | None:
    chunks = chunks_of(geometry, tiling)
    distinct = tiles_of(geometry, tiling) * chunks * len(geometry.tasks)
    wanted = 2 if distinct > INPUT_SLOTS and chunks == 1 else INPUT_SLOTS
    return _ring(size, max(2, min(distinct, wanted)), depth)


def _weight_ring(geometry: Geometry, tiling: Tiling, size: int, depth: int) -> Ring | None:
    """All weights when they fit, else twice those of an output tile, else a few that stream."""
    if size > depth:
        return None
    room = depth // size
    tile = tiling.outs * chunks_of(geometry, tiling)
    everything = weight_chunks(geometry, tiling)
    if everything <= room:
        return Ring(size, everything, size)
    if tiling.outs_outer and tile <= room:
        return _ring(size, 2 * tile if 2 * tile <= room else room, depth)
    slots = min(room, WEIGHT_SLOTS)
    even = [count for count in range(slots, 1, -1) if tile % count == 0]
    return _ring(size, even[0] if even else slots, depth)


def span_of_rows(geometry: Geometry, tiling: Tiling, first: int, count: int, tap: int) -> Span:
    """Input rows of a tile's chunk from kernel row `tap` on."""
    taps = min(tiling.taps, geometry.y.kernel - tap)
    step = geometry.y.step(tiling.rows, tiling.taps)
    return geometry.y.span(first, count, tap, taps, step)
