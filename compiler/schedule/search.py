"""Chooses the tiling of a convolution: of those that fit, the best by estimate and trial.

A rough estimate ranks all candidates, a timeline of steps the best of these, and the last few are
tried: their instructions go through the cycle model.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from vitral.compiler.schedule.cost import Estimator, least_cycles
from vitral.compiler.schedule.geometry import Geometry, blocks_of
from vitral.compiler.schedule.tiling import (
    Buffers,
    Tiling,
    buffers_of,
    input_chunk,
    tiles_of,
    weight_chunks,
)
from vitral.compiler.schedule.timeline import timeline_cycles
from vitral.config import CoreConfig
from vitral.errors import CompileError

__all__ = ["Trial", "choose_tiling", "first_good", "tilings"]

_Geometry = TypeVar("_Geometry", contravariant=True)
Trial = Callable[[_Geometry, Tiling, Buffers, CoreConfig], int]
"""Cycles of a layer alone with a tiling."""

_FINALISTS = 12
_STEPS = 3000  # of all finalists: bounds the time of the search for layers of many tiles
_TRIED = 3
_TRIED_STEPS = 400
_GOOD = 1.004  # a tiling so close to what no other can beat ends the search
_MOST_ROWS = 6
_MOST_COLUMN_SPLITS = 6


def choose_tiling(
    geometry: Geometry, config: CoreConfig, name: str, trial: "Trial[Geometry]"
) -> tuple[Tiling, Buffers]:
    """The tiling with the lowest cost among the finalists; its buffers.

    Raises
    ------
    CompileError
        When not even one output of one channel block fits, with `name` and the numbers.
    """
    try:
        return _choose(geometry, config, trial)
    except CompileError as error:
        raise CompileError(f"{name}: {error}") from None


@lru_cache(maxsize=1024)
def _choose(
    geometry: Geometry, config: CoreConfig, trial: "Trial[Geometry]"
) -> tuple[Tiling, Buffers]:
    found = list(tilings(geometry, config))
    if not found:
        raise CompileError(_too_large(geometry, config))
    estimator = Estimator(geometry, config)
    rough = [(estimator(*candidate).cycles, n) for n, candidate in enumerate(found)]
    finalists = _within(_STEPS, geometry, [found[n] for _, n in sorted(rough)[:_FINALISTS]])
    timed = [
        (timeline_cycles(geometry, *candidate, config), n) for n, candidate in enumerate(finalists)
    ]
    ranked = [finalists[n] for _, n in sorted(timed)[:_TRIED]]
    ranked = _within(_TRIED_STEPS, geometry, ranked)
    return first_good(
        ranked,
        lambda candidate: trial(geometry, *candidate, config),
        least_cycles(geometry, config),
    )


def first_good(
    candidates: Sequence[tuple[Tiling, Buffers]],
    trial: Callable[[tuple[Tiling, Buffers]], int],
    least: int,
) -> tuple[Tiling, Buffers]:
    """The best of some candidates; those after one that is nearly at `least` are not tried."""
    best, fewest = candidates[0], None
    if len(candidates) == 1:
        return best
    for candidate in candidates:
        cycles = trial(candidate)
        if fewest is None or cycles < fewest:
            best, fewest = candidate, cycles
        if fewest <= least * _GOOD:
            break
    return best


def _within(
    budget: int, geometry: Geometry, candidates: Sequence[tuple[Tiling, Buffers]]
) -> list[tuple[Tiling, Buffers]]:
    """Those whose steps fit the budget together; at least one."""
    kept: list[tuple[Tiling, Buffers]] = []
    for candidate in candidates:
        steps = tiles_of(geometry, candidate[0]) * weight_chunks(geometry, candidate[0])
        if steps <= budget or not kept:
            kept.append(candidate)
            budget -= steps
    return kept


def tilings(geometry: Geometry, config: CoreConfig) -> Iterator[tuple[Tiling, Buffers]]:
    """Candidates that fit, with their buffers; whole kernels unless none of those does."""
    for taps in _parts(geometry.y.kernel):
        found = False
        for candidate in _of_taps(geometry, config, taps):
            found = True
            yield candidate
        if found:
            return


def _parts(count: int) -> list[int]:
    """Lengths that cut `count` into 1, 2, 3, ... parts of about equal length, longest first."""
    return sorted({blocks_of(count, parts) for parts in range(1, count + 1)}, reverse=True)


def _of_taps(geometry: Geometry, config: CoreConfig, taps: int) -> Iterator[tuple[Tiling, Buffers]]:
    most_outs = max(task.outs for task in geometry.tasks)
    most_ins = max(task.ins for task in geometry.tasks)
    for ins in _parts(most_ins):
        for cols in _fitting_cols(geometry, config, ins, taps):
            for outs in _parts(most_outs):
                yield from _of_rows(geometry, config, (cols, outs, ins, taps), outs < most_outs)


def _fitting_cols(geometry: Geometry, config: CoreConfig, ins: int, taps: int) -> list[int]:
    """The widest tiles of one row whose input fits."""

    def fits(cols: int) -> bool:
        tiling = Tiling(rows=1, cols=cols, outs=1, ins=ins, taps=taps, outs_outer=False)
        return buffers_of(geometry, tiling, config.layout) is not None

    found: list[int] = []
    for cols in _parts(geometry.x.out):
        if len(found) < _MOST_COLUMN_SPLITS and fits(cols):
            found.append(cols)
    return found


def _of_rows(
    geometry: Geometry, config: CoreConfig, shape: tuple[int, int, int, int], partial: bool
) -> Iterator[tuple[Tiling, Buffers]]:
    """Tiles of the largest numbers of rows that fit."""
    cols, outs, ins, taps = shape
    count = 0
    for rows in _parts(geometry.y.out):
        for outs_outer in (False, True) if partial else (False,):
            tiling = Tiling(
                rows=rows, cols=cols, outs=outs, ins=ins, taps=taps, outs_outer=outs_outer
            )
            buffers = buffers_of(geometry, tiling, config.layout)
            if buffers is not None:
                count += not outs_outer
                yield tiling, buffers
        if count == _MOST_ROWS:
            return


def _too_large(geometry: Geometry, config: CoreConfig) -> str:
    layout = config.layout
    smallest = Tiling(rows=1, cols=1, outs=1, ins=1, taps=1, outs_outer=False)
    rows, cols = input_chunk(geometry, smallest)
    weights = geometry.x.kernel * geometry.planes
    return (
        f"one output of one channel block needs {rows * cols} input and {weights} weight elements"
        f" at a time, the core holds {layout.inp_depth} and {layout.wgt_depth}; use larger buffers"
    )
