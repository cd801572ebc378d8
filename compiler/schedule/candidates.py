"""All tilings of a convolution that fit, as arrays, with a rough estimate of their cycles.

A search looks at thousands of tilings, so what `buffers_of` says of one is computed here for all of
them at once. Axes of the arrays: input blocks, columns, output blocks, rows, loop order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from vitral.compiler.schedule.cost import LATENCY, row_beats
from vitral.compiler.schedule.geometry import Geometry, blocks_of, split
from vitral.compiler.schedule.tiling import (
    INPUT_SLOTS,
    ITER_MAX,
    WEIGHT_SLOTS,
    Buffers,
    Tiling,
    buffers_of,
    longest,
)
from vitral.config import INSN_BYTES, CoreConfig

__all__ = ["Candidates", "candidates", "parts"]

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_MOST_ROWS = 6
_MOST_COLUMN_SPLITS = 6
_GEMM_OVERHEAD = 2
_STORE_OVERHEAD = 8
_INSNS_PER_STEP = 5


@dataclass(frozen=True, eq=False)
class Candidates:
    """Tilings that fit, in the order of `parts` along each axis.

    `cycles` are rough estimates, int64 (number of tilings,).
    """

    cycles: Counts
    _geometry: Geometry
    _config: CoreConfig
    _taps: int
    _axes: tuple[Sequence[int], ...]
    _places: tuple[Counts, ...]

    def __len__(self) -> int:
        return self.cycles.size

    def __getitem__(self, number: int) -> tuple[Tiling, Buffers]:
        """A tiling and its buffers."""
        ins, cols, outs, rows, order = (
            axis[int(place[number])] for axis, place in zip(self._axes, self._places, strict=True)
        )
        tiling = Tiling(
            rows=rows, cols=cols, outs=outs, ins=ins, taps=self._taps, outs_outer=order == 1
        )
        buffers = buffers_of(self._geometry, tiling, self._config.layout)
        assert buffers is not None, f"{tiling} was said to fit"
        return tiling, buffers


def candidates(geometry: Geometry, config: CoreConfig) -> Candidates | None:
    """Tilings with the widest and highest tiles that fit, of whole kernels unless none of those
    fits; None when not one output fits."""
    for taps in parts(geometry.y.kernel):
        found = _of_taps(geometry, config, taps)
        if len(found):
            return found
    return None


def parts(count: int) -> list[int]:
    """Lengths that cut `count` into 1, 2, 3, ... parts of about equal length, longest first."""
    return sorted({blocks_of(count, pieces) for pieces in range(1, count + 1)}, reverse=True)


def _of_taps(geometry: Geometry, config: CoreConfig, taps: int) -> Candidates:
    axes = (
        parts(max(task.ins for task in geometry.tasks)),
        parts(geometry.x.out),
        parts(max(task.outs for task in geometry.tasks)),
        parts(geometry.y.out),
        (0, 1),
    )
    grid = _Grid(geometry, config, taps, axes)
    places = np.nonzero(grid.chosen())
    return Candidates(grid.cycles()[places], geometry, config, taps, axes, places)


class _Grid:
    """All combinations of the lengths along the axes; arrays broadcast against each other."""

    def __init__(
        self, geometry: Geometry, config: CoreConfig, taps: int, axes: tuple[Sequence[int], ...]
    ) -> None:
        self._geometry, self._config, self._axes, self._taps = geometry, config, axes, taps
        y, x = geometry.y, geometry.x
        self._most_outs = axes[2][0]
        self._ins, self._cols, self._outs, self._rows = (self._of(n, int) for n in range(4))
        self._outer = self._of(4, int) == 1
        self._in_rows = self._of(3, lambda rows: longest(geometry, True, rows, taps))
        self._weights = taps * x.kernel * geometry.planes  # elements per input block
        self._inp_size = (
            self._ins * self._in_rows * self._of(1, lambda n: longest(geometry, False, n, x.kernel))
        )
        self._wgt_size = self._ins * self._weights
        self._acc_size = self._outs * self._rows * self._cols
        tap_parts = blocks_of(y.kernel, taps)
        self._chunks = _ceil(axes[0][0], self._ins) * tap_parts
        self._tiles = geometry.batches * _ceil(y.out, self._rows) * _ceil(x.out, self._cols)
        pieces = sum(task.outs * _ceil(task.ins, self._ins) for task in geometry.tasks)
        self._weight_chunks = pieces * tap_parts

    def _of(self, axis: int, value: Callable[[int], int]) -> Counts:
        """`value` of each length along an axis."""
        shape = [1] * len(self._axes)
        shape[axis] = -1
        return np.array([value(length) for length in self._axes[axis]], np.int64).reshape(shape)

    def chosen(self) -> Flags:
        """Which to consider: those that fit, of the widest tiles the highest."""
        layout = self._config.layout
        fits = (
            (self._inp_size <= layout.inp_depth)
            & (self._wgt_size <= layout.wgt_depth)
            & (self._acc_size <= layout.acc_depth)
            & (np.maximum(self._rows, self._cols) <= ITER_MAX)
        )
        flat = fits[:, :, -1:, -1:, :]  # one output block, one row
        fits = fits & flat & (np.cumsum(flat, axis=1) <= _MOST_COLUMN_SPLITS)
        fits = fits & (np.cumsum(fits, axis=3) <= _MOST_ROWS)
        return fits & (~self._outer | (self._outs < self._most_outs))

    def cycles(self) -> Counts:
        """The busiest of array, read and write channel, and what nothing overlaps with: the wait
        for the first operands, the last STORE, and loads into the only slot."""
        geometry, layout = self._geometry, self._config.layout
        inp_slots, wgt_slots = self._inp_slots(), self._wgt_slots()
        passes = self._input_passes(inp_slots)
        weight = layout.wgt_bytes // layout.beat_bytes or 1  # beats
        inputs = self._input_beats() * passes
        weights = geometry.block_pairs * geometry.taps * weight * self._weight_passes(wgt_slots)
        write = self._write_beats() + _STORE_OVERHEAD * self._tiles * self._blocks(outputs=True)
        steps = self._tiles * self._weight_chunks
        gemm = geometry.gemm_cycles + 2 * _GEMM_OVERHEAD * steps
        fetch = steps * _INSNS_PER_STEP * INSN_BYTES // layout.beat_bytes
        exposed = self._ends(weight)
        exposed = exposed + ((inp_slots == 1) & (passes * self._tiles * self._chunks > 1)) * inputs
        exposed = exposed + ((wgt_slots == 1) & (self._weight_chunks > 1)) * weights
        acc_slots = np.minimum(2, layout.acc_depth // self._acc_size)
        exposed = exposed + (acc_slots * self._outs == 1) * write
        busiest = np.maximum(np.maximum(gemm, inputs + weights + fetch), write)
        return np.broadcast_to(busiest + exposed, tuple(map(len, self._axes)))

    def _ends(self, weight: int) -> Counts:
        """Cycles of the first operands and of the last STORE."""
        x, config, layout = self._geometry.x, self._config, self._config.layout

        def widest(cols: int) -> int:
            runs = split(x.out, cols)
            return max(x.span(first, count, 0, x.kernel, 1).real for first, count in runs)

        row = self._of(1, lambda cols: row_beats(widest(cols), layout.inp_bytes, config))
        piece = weight * self._weights + self._in_rows * row
        hidden = self._weights * self._rows * self._cols
        out_row = self._of(1, lambda cols: row_beats(cols, layout.out_bytes, config))
        late = (self._ins - 1) * np.maximum(0, piece - hidden)
        return 2 * LATENCY + piece + late + self._rows * out_row

    def _blocks(self, *, outputs: bool) -> int:
        return sum(task.outs if outputs else task.ins for task in self._geometry.tasks)

    def _write_beats(self) -> Counts:
        """Cycles that all outputs need on the write channel, in rows of tiles."""
        geometry, config = self._geometry, self._config
        rows = geometry.batches * geometry.y.out * self._blocks(outputs=True)

        def beats(cols: int) -> int:
            runs = split(geometry.x.out, cols)
            return sum(row_beats(n, config.layout.out_bytes, config) for _, n in runs)

        return rows * self._of(1, beats)

    def _input_beats(self) -> Counts:
        """Cycles to load the input of all tiles once."""
        x, y, config = self._geometry.x, self._geometry.y, self._config

        def loaded(rows: int) -> int:
            step = y.step(rows, self._taps)
            runs = product(split(y.out, rows), split(y.kernel, self._taps))
            return sum(y.span(*run, *taps, step).real for run, taps in runs)

        def per_row(cols: int) -> int:
            widths = (x.span(*run, 0, x.kernel, 1).real for run in split(x.out, cols))
            return sum(row_beats(width, config.layout.inp_bytes, config) for width in widths)

        blocks = self._geometry.batches * self._blocks(outputs=False)
        return blocks * self._of(3, loaded) * self._of(1, per_row)

    def _inp_slots(self) -> Counts:
        distinct = self._tiles * self._chunks * len(self._geometry.tasks)
        streams = (distinct > INPUT_SLOTS) & (self._chunks == 1)
        wanted = np.where(streams, 2, INPUT_SLOTS)
        room = self._config.layout.inp_depth // self._inp_size
        return np.minimum(np.maximum(2, np.minimum(distinct, wanted)), room)

    def _wgt_slots(self) -> Counts:
        room = self._config.layout.wgt_depth // self._wgt_size
        tile = self._outs * self._chunks
        few = np.minimum(room, WEIGHT_SLOTS)
        for count in range(2, WEIGHT_SLOTS + 1):
            few = np.where((count <= room) & (tile % count == 0), count, few)
        twice = np.where(2 * tile <= room, 2 * tile, room)
        streamed = np.where(self._outer & (tile <= room), twice, few)
        return np.where(self._weight_chunks <= room, self._weight_chunks, streamed)

    def _input_passes(self, slots: Counts) -> Counts:
        """How often each input chunk is loaded: once per output tile that finds it replaced."""
        resident = self._chunks * np.where(self._outer, self._tiles, 1)
        return np.where(resident <= slots, 1, _ceil(self._most_outs, self._outs))

    def _weight_passes(self, slots: Counts) -> Counts:
        """How often each weight chunk is loaded: once per tile that finds it replaced."""
        outs = np.where(self._outer, self._outs, self._most_outs)
        return np.where(outs * self._chunks <= slots, 1, self._tiles)


def _ceil(count: int, size: Counts) -> Counts:
    return -(-count // size)
