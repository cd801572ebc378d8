"""Unrolls a tiled convolution into steps, each with the place of its operands on chip."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from vitral.compiler.schedule.geometry import Geometry, Task, split
from vitral.compiler.schedule.slots import assign_slots
from vitral.compiler.schedule.steps import Chunk, InputChunk, Run, Step, Tile, WeightChunk
from vitral.compiler.schedule.tiling import Buffers, Tiling, span_of_rows

__all__ = ["Placement", "task_chunks", "unroll"]

_STORED_TOGETHER = 64  # elements: below, one STORE for a whole tile costs less than it delays


@dataclass(frozen=True)
class Placement:
    """Where a layer's buffers lie, and the slots that it takes first: halves taken in turn let
    layers overlap."""

    inp_slot: int = 0
    wgt_base: int = 0
    acc_slot: int = 0
    inp_base: int = 0
    acc_base: int = 0


class _Visit(NamedTuple):
    """One turn of the loop nest: task, tile, first and number of output blocks, chunk, block.

    Small numbers, which serve as keys.
    """

    task: int
    tile: int
    out_tile: Run
    chunk: int
    out: int


def unroll(
    layer: int, geometry: Geometry, tiling: Tiling, buffers: Buffers, place: Placement
) -> list[Step]:
    """The steps of a layer, in order of execution."""
    return _Unroller(layer, geometry, tiling, buffers, place).steps()


def task_chunks(geometry: Geometry, tiling: Tiling, task: Task) -> list[Chunk]:
    """The parts of a task's reduction, in order."""
    first, chunks = 0, []
    for ins in split(task.ins, tiling.ins):
        for taps in split(geometry.y.kernel, tiling.taps):
            chunks.append(Chunk(ins, taps, first))
            first += ins[1] * taps[1] * geometry.x.kernel * geometry.planes
    return chunks


class _Unroller:
    def __init__(
        self, layer: int, geometry: Geometry, tiling: Tiling, buffers: Buffers, place: Placement
    ) -> None:
        self._layer = layer
        self._geometry = geometry
        self._tiling = tiling
        self._buffers = buffers
        self._place = place
        rows, cols = split(geometry.y.out, tiling.rows), split(geometry.x.out, tiling.cols)
        self._tiles = [Tile(*where) for where in product(range(geometry.batches), rows, cols)]
        self._chunks = [task_chunks(geometry, tiling, task) for task in geometry.tasks]
        self._weights = _weight_bases(geometry)
        self._step_rows = geometry.y.step(tiling.rows, tiling.taps)
        self._inputs: dict[tuple[int, int, int, int], InputChunk] = {}

    def steps(self) -> list[Step]:
        visits, rings, place = list(self._visits()), self._buffers, self._place
        inputs = assign_slots(
            [(v.task, v.tile, v.chunk) for v in visits], rings.inp.slots, place.inp_slot
        )
        weights = assign_slots([(v.task, v.chunk, v.out) for v in visits], rings.wgt.slots)
        accs = assign_slots(
            [(v.task, v.tile, v.out_tile) for v in visits], rings.acc.slots, place.acc_slot
        )
        return [
            self._step(visit, inputs[n], weights[n], accs[n][0], cold=n == 0)
            for n, visit in enumerate(visits)
        ]

    def _visits(self) -> Iterator[_Visit]:
        for number, task in enumerate(self._geometry.tasks):
            outs, tiles = split(task.outs, self._tiling.outs), range(len(self._tiles))
            order = (
                product(outs, tiles)
                if self._tiling.outs_outer
                else ((out, tile) for tile in tiles for out in outs)
            )
            for out_tile, tile in order:
                for chunk in range(len(self._chunks[number])):
                    for out in range(sum(out_tile))[out_tile[0] :]:
                        yield _Visit(number, tile, out_tile, chunk, out)

    def _step(
        self,
        visit: _Visit,
        inp: tuple[int, bool],
        wgt: tuple[int, bool],
        acc_slot: int,
        *,
        cold: bool,
    ) -> Step:
        geometry, tile = self._geometry, self._tiles[visit.tile]
        task, chunk = geometry.tasks[visit.task], self._chunks[visit.task][visit.chunk]
        weight = WeightChunk(
            first=self._weights[visit.task] + visit.out * task.ins * geometry.taps + chunk.first,
            count=chunk.ins[1] * chunk.taps[1] * geometry.x.kernel * geometry.planes,
            base=self._place.wgt_base + self._buffers.wgt.base(wgt[0]),
        )
        local = visit.out - visit.out_tile[0]
        return Step(
            layer=self._layer,
            tile=tile,
            chunk=chunk,
            out_block=task.first_out + visit.out,
            input=self._input(visit, inp[0]),
            weight=weight,
            acc=self._place.acc_base + self._buffers.acc.base(acc_slot) + local * tile.positions,
            load_input=inp[1],
            load_weight=wgt[1],
            first=visit.chunk == 0,
            store_blocks=self._stored(visit, tile, local),
            cold=cold,
        )

    def _input(self, visit: _Visit, slot: int) -> InputChunk:
        key = (visit.task, visit.tile, visit.chunk, slot)
        if key not in self._inputs:
            tile, chunk = self._tiles[visit.tile], self._chunks[visit.task][visit.chunk]
            x = self._geometry.x
            cols = x.span(*tile.cols, 0, x.kernel, 1)
            first = self._geometry.tasks[visit.task].first_in + chunk.ins[0]
            self._inputs[key] = InputChunk(
                batch=tile.batch,
                ins=(first, chunk.ins[1]),
                rows=span_of_rows(self._geometry, self._tiling, *tile.rows, chunk.taps[0]),
                cols=cols,
                step=self._step_rows,
                base=self._place.inp_base + self._buffers.inp.base(slot),
                plane=self._buffers.plane_rows * cols.loaded,
            )
        return self._inputs[key]

    def _stored(self, visit: _Visit, tile: Tile, local: int) -> int:
        """Output channel blocks to store after a visit: none, one, or those of a whole tile."""
        if visit.chunk + 1 < len(self._chunks[visit.task]):
            return 0
        outs = visit.out_tile[1]
        whole = tile.positions == self._geometry.y.out * self._geometry.x.out
        if whole and outs * tile.positions <= _STORED_TOGETHER:
            return outs if local == outs - 1 else 0
        return 1


def _weight_bases(geometry: Geometry) -> list[int]:
    """First packed weight element of each task."""
    bases = [0]
    for task in geometry.tasks:
        bases.append(bases[-1] + task.outs * task.ins * geometry.taps)
    return bases
