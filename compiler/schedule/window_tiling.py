"""Chooses tiles of window layers: those that fit, by the busiest of compute, read and write."""

from collections.abc import Iterator
from functools import lru_cache

from vitral.compiler.schedule.cost import LATENCY, row_beats
from vitral.compiler.schedule.geometry import blocks_of, split
from vitral.compiler.schedule.search import Trial, first_good
from vitral.compiler.schedule.tiling import ITER_MAX, Buffers, Ring, Tiling
from vitral.compiler.schedule.windows import WindowGeometry, WindowKind
from vitral.config import INSN_BYTES, CoreConfig
from vitral.errors import CompileError

__all__ = ["choose_window_tiling", "weight_runs", "window_distance"]

_STEP_OVERHEAD = 12  # cycles of a step's instructions on the compute stage
_STORE_OVERHEAD = 8
_INSNS_PER_STEP = 5
_MOST_SIZES = 12
_MOST_WIDTHS = 4
_TRIED = 3


def choose_window_tiling(
    geometry: WindowGeometry,
    config: CoreConfig,
    name: str,
    trial: "Trial[WindowGeometry]",
) -> tuple[Tiling, Buffers]:
    """The tiling of lowest estimated cycles, and its buffers. `outs` and `ins` are equal.

    The best of a rough estimate go through `trial`.

    Raises
    ------
    CompileError
        When not even one output of one channel block fits, with `name` and the numbers.
    """
    found = _choose(geometry, config, trial)
    if found is None:
        smallest = Tiling(rows=1, cols=1, outs=1, ins=1, taps=1, outs_outer=False)
        rows, cols = _extents(geometry, smallest)
        raise CompileError(
            f"{name}: one output of one channel block needs {rows * cols * geometry.sources} input"
            f" and {geometry.row_weights} weight elements at a time, the core holds"
            f" {config.layout.inp_depth} and {config.layout.wgt_depth}; use larger buffers"
        )
    return found


@lru_cache(maxsize=1024)
def _choose(
    geometry: WindowGeometry, config: CoreConfig, trial: "Trial[WindowGeometry]"
) -> tuple[Tiling, Buffers] | None:
    found = list(_tilings(geometry, config))
    if not found:
        return None
    rough = sorted((_cycles(geometry, *pair, config), number) for number, pair in enumerate(found))
    ranked = [found[number] for _, number in rough[:_TRIED]]
    least = _least_cycles(geometry, config)
    return first_good(ranked, lambda pair: trial(geometry, *pair, config), least)


def window_distance(geometry: WindowGeometry, tiling: Tiling) -> int:
    """INP elements between the taps of an operation, odd; for additions between both inputs."""
    if geometry.kind is WindowKind.ADD:
        return tiling.outs * tiling.rows * tiling.cols | 1
    return geometry.x.dilation if geometry.taps > 1 else 1


def _tilings(geometry: WindowGeometry, config: CoreConfig) -> Iterator[tuple[Tiling, Buffers]]:
    """Candidates that fit; whole kernels unless none of those does."""
    for taps in _parts(geometry.y.kernel):
        found = False
        for candidate in _of_taps(geometry, config, taps):
            found = True
            yield candidate
        if found:
            return


def _of_taps(
    geometry: WindowGeometry, config: CoreConfig, taps: int
) -> Iterator[tuple[Tiling, Buffers]]:
    """Runs of channel blocks of the whole plane, and parts of the plane of one block."""
    widths = 0
    for cols in _parts(geometry.x.out):
        fitting = 0
        for rows, blocks in _shapes(geometry, cols):
            tiling = Tiling(
                rows=rows, cols=cols, outs=blocks, ins=blocks, taps=taps, outs_outer=False
            )
            buffers = _buffers(geometry, tiling, config)
            if buffers is not None:
                fitting += 1
                yield tiling, buffers
            if fitting == _MOST_SIZES:
                break
        widths += fitting > 0
        if widths == _MOST_WIDTHS:
            return


def _shapes(geometry: WindowGeometry, cols: int) -> Iterator[tuple[int, int]]:
    """Rows and channel blocks of a tile, largest first; several blocks only of whole planes."""
    if cols == geometry.x.out:
        for blocks in _parts(geometry.blocks)[:-1]:
            yield geometry.y.out, blocks
    for rows in _parts(geometry.y.out):
        yield rows, 1


def _parts(count: int) -> list[int]:
    """Lengths that cut `count` into 1, 2, 3, ... parts of about equal length, longest first."""
    return sorted({blocks_of(count, parts) for parts in range(1, count + 1)}, reverse=True)


def _buffers(geometry: WindowGeometry, tiling: Tiling, config: CoreConfig) -> Buffers | None:
    """Two slots of INP and ACC where they fit; all weights, or two slots of them."""
    layout = config.layout
    rows, cols = _extents(geometry, tiling)
    inputs = tiling.outs * rows * cols
    if geometry.kind is WindowKind.ADD:
        inputs += window_distance(geometry, tiling)
    weights = tiling.taps * geometry.row_weights * (1 if geometry.shared else tiling.outs)
    everything = weight_runs(geometry, tiling)
    sums = tiling.outs * tiling.rows * tiling.cols
    if inputs > layout.inp_depth or weights > layout.wgt_depth or sums > layout.acc_depth:
        return None
    if (
        max(sums if geometry.kind is WindowKind.ADD else tiling.outs, tiling.rows, tiling.cols)
        > ITER_MAX
    ):
        return None
    if everything * weights > layout.wgt_depth:
        everything = min(2, layout.wgt_depth // weights)
    return Buffers(
        inp=_halves(inputs, layout.inp_depth),
        wgt=Ring(weights, everything, weights),
        acc=_halves(sums, layout.acc_depth),
        plane_rows=rows,
    )


def _halves(size: int, depth: int) -> Ring:
    return Ring(size, 2 if 2 * size <= depth else 1, depth // 2)


def weight_runs(geometry: WindowGeometry, tiling: Tiling) -> int:
    """Parts in which the weights are loaded: one per run of channel blocks, unless these share
    them, and part of the kernel's rows."""
    runs = 1 if geometry.shared else blocks_of(geometry.blocks, tiling.outs)
    return runs * blocks_of(geometry.y.kernel, tiling.taps)


def _extents(geometry: WindowGeometry, tiling: Tiling) -> tuple[int, int]:
    """Most rows and columns that a tile of one channel block loads."""
    y, x = geometry.y, geometry.x
    step = y.step(tiling.rows, tiling.taps)
    rows = max(
        y.span(*run, *taps, step).loaded
        for run in split(y.out, tiling.rows)
        for taps in split(y.kernel, tiling.taps)
    )
    cols = max(x.span(*run, 0, x.kernel, 1).loaded for run in split(x.out, tiling.cols))
    return rows, cols


def _cycles(geometry: WindowGeometry, tiling: Tiling, buffers: Buffers, config: CoreConfig) -> int:
    """Estimated cycles of a layer on its own: the busiest resource, and the ends."""
    layout, y, x = config.layout, geometry.y, geometry.x
    planes = geometry.batches * geometry.blocks
    tiles = blocks_of(y.out, tiling.rows) * blocks_of(x.out, tiling.cols)
    steps = planes * tiles * blocks_of(y.kernel, tiling.taps)
    steps = blocks_of(steps, tiling.outs)
    per_output = y.kernel * geometry.row_operations
    if geometry.kind is WindowKind.ADD and geometry.planes > 1:
        per_output += 1
    compute = planes * y.out * x.out * per_output + _STEP_OVERHEAD * steps
    inputs = planes * geometry.sources * _plane_beats(geometry, tiling, config)
    weight = blocks_of(layout.wgt_bytes, layout.beat_bytes)
    weights = geometry.blocks * geometry.block_weights * weight
    fetch = steps * (_INSNS_PER_STEP + tiling.outs) * INSN_BYTES // layout.beat_bytes
    out_row = sum(row_beats(n, layout.out_bytes, config) for _, n in split(x.out, tiling.cols))
    write = planes * y.out * out_row + _STORE_OVERHEAD * steps
    ends = 2 * LATENCY + (inputs + write) // steps
    if buffers.inp.slots == 1:
        ends += min(inputs, compute)
    if buffers.acc.slots == 1:
        ends += min(write, compute)
    return max(compute, inputs + weights + fetch, write) + ends


def _least_cycles(geometry: WindowGeometry, config: CoreConfig) -> int:
    """Cycles that no tiling can beat: operations, or needed bytes of the busier channel."""
    y, x, layout = geometry.y, geometry.x, config.layout
    planes = geometry.batches * geometry.blocks
    inputs = planes * geometry.sources * min(y.size, y.out * y.kernel) * x.size
    outputs = planes * y.out * x.out
    return max(
        outputs * y.kernel * geometry.row_operations,
        inputs * layout.inp_bytes // layout.beat_bytes,
        outputs * layout.out_bytes // layout.beat_bytes,
    )


def _plane_beats(geometry: WindowGeometry, tiling: Tiling, config: CoreConfig) -> int:
    """Cycles of the read channel for one channel block of one source."""
    y, x = geometry.y, geometry.x
    step = y.step(tiling.rows, tiling.taps)
    rows = sum(
        y.span(*run, *taps, step).real
        for run in split(y.out, tiling.rows)
        for taps in split(y.kernel, tiling.taps)
    )
    return rows * sum(
        row_beats(x.span(*run, 0, x.kernel, 1).real, config.layout.inp_bytes, config)
        for run in split(x.out, tiling.cols)
    )
