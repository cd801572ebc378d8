"""Unrolls a tiled window layer into steps: `unroll_window`."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from vitral.compiler.schedule.geometry import split
from vitral.compiler.schedule.slots import assign_slots
from vitral.compiler.schedule.steps import Chunk, InputChunk, Run, Step, Tile, WeightChunk
from vitral.compiler.schedule.tiling import Buffers, Tiling
from vitral.compiler.schedule.unroll import Placement
from vitral.compiler.schedule.window_tiling import weight_runs, window_distance
from vitral.compiler.schedule.windows import WindowGeometry

__all__ = ["kernel_parts", "unroll_window"]


class _Visit(NamedTuple):
    """One turn of the loop nest: numbers of tile, run of channel blocks, part of the kernel."""

    tile: int
    run: int
    part: int


def unroll_window(
    layer: int, geometry: WindowGeometry, tiling: Tiling, buffers: Buffers, place: Placement
) -> list[Step]:
    """The steps of a layer, in order of execution.

    Tiles are outermost, so that the first rows of all channels are there early for the next
    layer; runs of channel blocks are when weights do not fit, so that these are loaded once.
    """
    return _Unroller(layer, geometry, tiling, buffers, place).steps()


def kernel_parts(geometry: WindowGeometry, tiling: Tiling) -> list[Run]:
    """The kernel rows that are summed in one step each."""
    return split(geometry.y.kernel, tiling.taps)


class _Unroller:
    def __init__(
        self,
        layer: int,
        geometry: WindowGeometry,
        tiling: Tiling,
        buffers: Buffers,
        place: Placement,
    ) -> None:
        self._layer = layer
        self._geometry = geometry
        self._tiling = tiling
        self._buffers = buffers
        self._place = place
        rows, cols = split(geometry.y.out, tiling.rows), split(geometry.x.out, tiling.cols)
        self._tiles = [Tile(*where) for where in product(range(geometry.batches), rows, cols)]
        self._runs = split(geometry.blocks, tiling.outs)
        self._parts = kernel_parts(geometry, tiling)

    def steps(self) -> list[Step]:
        visits, rings, place = list(self._visits()), self._buffers, self._place
        inputs = assign_slots(
            [(v.tile, v.run, v.part) for v in visits], rings.inp.slots, place.inp_slot
        )
        shared = self._geometry.shared
        weights = assign_slots([(0 if shared else v.run, v.part) for v in visits], rings.wgt.slots)
        accs = assign_slots([(v.tile, v.run) for v in visits], rings.acc.slots, place.acc_slot)
        return [
            self._step(visit, inputs[n], weights[n], accs[n][0]) for n, visit in enumerate(visits)
        ]

    def _visits(self) -> Iterator[_Visit]:
        tiles, runs = range(len(self._tiles)), range(len(self._runs))
        resident = self._buffers.wgt.slots >= weight_runs(self._geometry, self._tiling)
        order = (
            product(tiles, runs) if resident else ((tile, run) for run in runs for tile in tiles)
        )
        for tile, run in order:
            for part in range(len(self._parts)):
                yield _Visit(tile, run, part)

    def _step(
        self, visit: _Visit, inp: tuple[int, bool], wgt: tuple[int, bool], acc_slot: int
    ) -> Step:
        tile, run = self._tiles[visit.tile], self._runs[visit.run]
        weight = self._weight(visit, wgt[0])
        last = visit.part + 1 == len(self._parts)
        chunk = Chunk(run, self._parts[visit.part], weight.first)
        base = self._place.inp_base + self._buffers.inp.base(inp[0])
        other = None
        if self._geometry.sources == 2:
            distance = window_distance(self._geometry, self._tiling)
            other = self._input(tile, chunk, base + distance, 1)
        return Step(
            layer=self._layer,
            tile=tile,
            chunk=chunk,
            out_block=run[0],
            blocks=run[1],
            input=self._input(tile, chunk, base, 0),
            other=other,
            weight=weight,
            acc=self._place.acc_base + self._buffers.acc.base(acc_slot),
            load_input=inp[1],
            load_weight=wgt[1] and weight.count > 0,
            first=visit.part == 0,
            store_blocks=run[1] if last else 0,
            cold=False,
        )

    def _weight(self, visit: _Visit, slot: int) -> WeightChunk:
        """Packed by run of channel blocks, then part of the kernel, then channel block."""
        geometry, run, part = self._geometry, self._runs[visit.run], self._parts[visit.part]
        base = self._place.wgt_base + self._buffers.wgt.base(slot)
        if geometry.shared:
            return WeightChunk(part[0] * geometry.row_weights, part[1] * geometry.row_weights, base)
        first = run[0] * geometry.block_weights + run[1] * part[0] * geometry.row_weights
        return WeightChunk(first, run[1] * part[1] * geometry.row_weights, base)

    def _input(self, tile: Tile, chunk: Chunk, base: int, source: int) -> InputChunk:
        geometry, tiling = self._geometry, self._tiling
        y, x = geometry.y, geometry.x
        step = y.step(tiling.rows, tiling.taps)
        cols = x.span(*tile.cols, 0, x.kernel, 1)
        return InputChunk(
            batch=tile.batch,
            ins=chunk.ins,
            rows=y.span(*tile.rows, *chunk.taps, step),
            cols=cols,
            step=step,
            base=base,
            plane=self._buffers.plane_rows * cols.loaded,
            source=source,
        )
