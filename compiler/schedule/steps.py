"""Unrolls a tiled convolution into steps: one chunk of the reduction of one output channel block.

A step is data; codegen turns it into LOAD, GEMM and STORE instructions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from vitral.compiler.schedule.geometry import Geometry, Span, Task, split
from vitral.compiler.schedule.slots import assign_slots
from vitral.compiler.schedule.tiling import Buffers, Tiling, span_of_rows

__all__ = [
    "Chunk",
    "InputChunk",
    "Placement",
    "Run",
    "Step",
    "Tile",
    "WeightChunk",
    "task_chunks",
    "unroll",
]

Run = tuple[int, int]
"""First and number of consecutive positions."""


@dataclass(frozen=True)
class Tile:
    """Output positions: element `batch` along N, runs of rows and columns."""

    batch: int
    rows: Run
    cols: Run

    @property
    def positions(self) -> int:
        return self.rows[1] * self.cols[1]


@dataclass(frozen=True)
class Chunk:
    """A part of a task's reduction: input channel blocks and kernel rows; `first` weight element
    among those of an output channel block."""

    ins: Run
    taps: Run
    first: int


@dataclass(frozen=True)
class InputChunk:
    """Input of a tile and chunk, and where it lies in INP.

    Channel block n of the chunk starts at element `base` + n · `plane`; its rows are `pitch`
    elements apart and `step` rows apart in the tensor.
    """

    batch: int
    ins: Run
    rows: Span
    cols: Span
    step: int
    base: int
    plane: int

    @property
    def pitch(self) -> int:
        return self.cols.loaded

    def elements(self, first: int, count: int) -> slice:
        """INP elements of some of the channel blocks."""
        return slice(self.base + first * self.plane, self.base + (first + count) * self.plane)


@dataclass(frozen=True)
class WeightChunk:
    """`count` packed weight elements from `first` of the layer's on, at `base` in WGT."""

    first: int
    count: int
    base: int


@dataclass(frozen=True)
class Step:
    """Sums one chunk of the reduction into one output channel block of a tile.

    `load_input` and `load_weight` tell that the operands are not in place yet. `acc` is the first
    ACC element. With `first`, sums start here; with `store_blocks`, that many output channel
    blocks, ending with this one, are complete. `cold` asks for operands in small pieces, because
    nothing else can run meanwhile.
    """

    layer: int
    tile: Tile
    chunk: Chunk
    out_block: int
    input: InputChunk
    weight: WeightChunk
    acc: int
    load_input: bool
    load_weight: bool
    first: bool
    store_blocks: int
    cold: bool


@dataclass(frozen=True)
class _Visit:
    """One turn of the loop nest, before anything has a place."""

    number: int
    task: Task
    tile: Tile
    out_tile: Run
    chunk: Chunk
    out: int


@dataclass(frozen=True)
class Placement:
    """Where a layer's rings start: halves taken in turn let layers overlap."""

    inp_slot: int = 0
    wgt_base: int = 0
    acc_slot: int = 0


def unroll(
    layer: int, geometry: Geometry, tiling: Tiling, buffers: Buffers, place: Placement
) -> list[Step]:
    """The steps of a layer, in order of execution."""
    visits = list(_visits(geometry, tiling))
    inputs = assign_slots(
        [(v.number, v.tile, v.chunk) for v in visits], buffers.inp.slots, place.inp_slot
    )
    weights = assign_slots([(v.number, v.chunk, v.out) for v in visits], buffers.wgt.slots)
    accs = assign_slots(
        [(v.number, v.tile, v.out_tile) for v in visits], buffers.acc.slots, place.acc_slot
    )
    bases = _weight_bases(geometry)
    return [
        _step(
            (layer, geometry, tiling, buffers, place),
            visit,
            (inputs[n], weights[n], accs[n][0]),
            bases[visit.number],
            cold=n == 0,
        )
        for n, visit in enumerate(visits)
    ]


def _visits(geometry: Geometry, tiling: Tiling) -> Iterator[_Visit]:
    for number, task in enumerate(geometry.tasks):
        chunks = task_chunks(geometry, tiling, task)
        for tile, out_tile in _tiles(geometry, tiling, task):
            for chunk in chunks:
                for out in range(sum(out_tile))[out_tile[0] :]:
                    yield _Visit(number, task, tile, out_tile, chunk, out)


def _tiles(geometry: Geometry, tiling: Tiling, task: Task) -> Iterator[tuple[Tile, Run]]:
    rows, cols = split(geometry.y.out, tiling.rows), split(geometry.x.out, tiling.cols)
    tiles = [Tile(*where) for where in product(range(geometry.batches), rows, cols)]
    outs = split(task.outs, tiling.outs)
    if tiling.outs_outer:
        return ((tile, out) for out in outs for tile in tiles)
    return ((tile, out) for tile in tiles for out in outs)


def task_chunks(geometry: Geometry, tiling: Tiling, task: Task) -> list[Chunk]:
    """The parts of a task's reduction, in order."""
    first, chunks = 0, []
    for ins in split(task.ins, tiling.ins):
        for taps in split(geometry.y.kernel, tiling.taps):
            chunks.append(Chunk(ins, taps, first))
            first += ins[1] * taps[1] * geometry.x.kernel * geometry.planes
    return chunks


def _weight_bases(geometry: Geometry) -> list[int]:
    """First packed weight element of each task."""
    bases = [0]
    for task in geometry.tasks:
        bases.append(bases[-1] + task.outs * task.ins * geometry.taps)
    return bases


_Context = tuple[int, Geometry, Tiling, Buffers, Placement]
_Slots = tuple[tuple[int, bool], tuple[int, bool], int]


def _step(context: _Context, visit: _Visit, slots: _Slots, base: int, *, cold: bool) -> Step:
    layer, geometry, tiling, buffers, place = context
    (inp_slot, load_input), (wgt_slot, load_weight), acc_slot = slots
    chunk, task, out_tile = visit.chunk, visit.task, visit.out_tile
    weight = WeightChunk(
        first=base + visit.out * task.ins * geometry.taps + chunk.first,
        count=chunk.ins[1] * chunk.taps[1] * geometry.x.kernel * geometry.planes,
        base=place.wgt_base + buffers.wgt.base(wgt_slot),
    )
    local = visit.out - out_tile[0]
    last = chunk.ins[0] + chunk.ins[1] == task.ins
    last = last and sum(chunk.taps) == geometry.y.kernel
    return Step(
        layer=layer,
        tile=visit.tile,
        chunk=chunk,
        out_block=task.first_out + visit.out,
        input=_input(geometry, tiling, buffers, visit, inp_slot),
        weight=weight,
        acc=buffers.acc.base(acc_slot) + local * visit.tile.positions,
        load_input=load_input,
        load_weight=load_weight,
        first=chunk.first == 0,
        store_blocks=_stored(geometry, visit, local) if last else 0,
        cold=cold,
    )


def _input(
    geometry: Geometry, tiling: Tiling, buffers: Buffers, visit: _Visit, slot: int
) -> InputChunk:
    tile, chunk = visit.tile, visit.chunk
    cols = geometry.x.span(*tile.cols, 0, geometry.x.kernel, 1)
    return InputChunk(
        batch=tile.batch,
        ins=(visit.task.first_in + chunk.ins[0], chunk.ins[1]),
        rows=span_of_rows(geometry, tiling, *tile.rows, chunk.taps[0]),
        cols=cols,
        step=geometry.y.step(tiling.rows, tiling.taps),
        base=buffers.inp.base(slot),
        plane=buffers.plane_rows * cols.loaded,
    )


_STORED_TOGETHER = 64  # elements: below, one STORE for a whole tile costs less than it delays


def _stored(geometry: Geometry, visit: _Visit, local: int) -> int:
    """Blocks to store after the last chunk of the `local`-th one of an output tile."""
    outs = visit.out_tile[1]
    whole = visit.tile.positions == geometry.y.out * geometry.x.out
    if whole and outs * visit.tile.positions <= _STORED_TOGETHER:
        return outs if local == outs - 1 else 0
    return 1
