"""Chooses the tiling of a convolution: of those that fit, the best by estimate and trial.

A rough estimate ranks all candidates, a timeline of steps the best of these, and the last few are
tried: their instructions go through the cycle model.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from vitral.compiler.schedule.candidates import candidates
from vitral.compiler.schedule.cost import least_cycles
from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.tiling import Buffers, Tiling, input_chunk, tiles_of, weight_chunks
from vitral.compiler.schedule.timeline import timeline_cycles
from vitral.config import CoreConfig
from vitral.errors import CompileError

__all__ = ["Trial", "choose_tiling", "first_good"]

_Geometry = TypeVar("_Geometry", contravariant=True)
Trial = Callable[[_Geometry, Tiling, Buffers, CoreConfig], int]
"""Cycles of a layer alone with a tiling."""

_FINALISTS = 20
_STEPS = 3000  # of all finalists: bounds the time of the search for layers of many tiles
_TRIED = 3
_TRIED_STEPS = 400
_NEAR = 1.006  # only tilings whose timelines are so close to the best one's are tried
_GOOD = 1.004  # a tiling so close to what no other can beat ends the search


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
    found = candidates(geometry, config)
    if found is None:
        raise CompileError(_too_large(geometry, config))
    best = np.argsort(found.cycles, kind="stable")[:_FINALISTS]
    finalists = _within(_STEPS, geometry, [found[int(number)] for number in best])
    timed = [timeline_cycles(geometry, *candidate, config) for candidate in finalists]
    near = [n for n in range(len(finalists)) if timed[n] <= min(timed) * _NEAR]
    near.sort(key=lambda n: timed[n])
    return first_good(
        _within(_TRIED_STEPS, geometry, [finalists[n] for n in near[:_TRIED]]),
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


def _too_large(geometry: Geometry, config: CoreConfig) -> str:
    layout = config.layout
    smallest = Tiling(rows=1, cols=1, outs=1, ins=1, taps=1, outs_outer=False)
    rows, cols = input_chunk(geometry, smallest)
    weights = geometry.x.kernel * geometry.planes
    return (
        f"one output of one channel block needs {rows * cols} input and {weights} weight elements"
        f" at a time, the core holds {layout.inp_depth} and {layout.wgt_depth}; use larger buffers"
    )
