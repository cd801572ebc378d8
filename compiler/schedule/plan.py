"""Schedules the layers of a segment one after the other: tilings, buffers in turn, and steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.layer import ConvLayer
from vitral.compiler.schedule.search import choose_tiling
from vitral.compiler.schedule.steps import Step
from vitral.compiler.schedule.tiling import Buffers, Ring, Tiling
from vitral.compiler.schedule.unroll import Placement, unroll
from vitral.config import CoreConfig

__all__ = ["LayerPlan", "Prefetch", "plan_layers"]


@dataclass(frozen=True)
class LayerPlan:
    """A layer with its geometry (padding in memory where that is needed), tiling and steps."""

    layer: ConvLayer
    geometry: Geometry
    tiling: Tiling
    buffers: Buffers
    steps: tuple[Step, ...]


def plan_layers(layers: Sequence[ConvLayer], config: CoreConfig) -> list[LayerPlan]:
    """Plans in order; each layer starts in the part of the buffers that the last one left free.

    Raises
    ------
    CompileError
        For a layer that is malformed or of which not one output fits on chip.
    """
    plans: list[LayerPlan] = []
    place = Placement()
    for number, layer in enumerate(layers):
        geometry = Geometry.of(layer, config)
        if geometry.pads_in_memory:
            geometry = geometry.in_memory()
        tiling, buffers = choose_tiling(geometry, config, layer.name)
        place = _fit_place(place, buffers, config)
        steps = tuple(unroll(number, geometry, tiling, buffers, place))
        plans.append(LayerPlan(layer, geometry, tiling, buffers, steps))
        place = _next_place(place, plans[-1], config)
    return plans


def _extent(ring: Ring) -> int:
    return (ring.slots - 1) * ring.spacing + ring.size


def _fit_place(place: Placement, buffers: Buffers, config: CoreConfig) -> Placement:
    fits = place.wgt_base + _extent(buffers.wgt) <= config.layout.wgt_depth
    return Placement(
        inp_slot=place.inp_slot % buffers.inp.slots,
        wgt_base=place.wgt_base if fits else 0,
        acc_slot=place.acc_slot % buffers.acc.slots,
    )


def _next_place(place: Placement, plan: LayerPlan, config: CoreConfig) -> Placement:
    """The half of each memory that the last step of a layer does not use."""
    last, depth = plan.steps[-1], config.layout.wgt_depth
    upper = place.wgt_base + _extent(plan.buffers.wgt) <= depth // 2
    return Placement(
        inp_slot=0 if last.input.base >= config.layout.inp_depth // 2 else 1,
        wgt_base=depth // 2 if upper else 0,
        acc_slot=0 if last.acc >= config.layout.acc_depth // 2 else 1,
    )


class Prefetch:
    """Tells how early the LOADs of each step may stand in the program.

    A step's LOADs come before the instructions of an earlier step as soon as the data they
    replace has been used and the tensor they read has been stored, `REACH` steps ahead at most.
    """

    REACH = 24

    def __init__(self, plans: Sequence[LayerPlan], config: CoreConfig) -> None:
        self.steps = [step for plan in plans for step in plan.steps]
        self._names = [(plan.layer.source, plan.layer.result) for plan in plans]
        self._inp = np.full(config.layout.inp_depth, -1, np.int64)
        self._wgt = np.full(config.layout.wgt_depth, -1, np.int64)
        self._stored: dict[str, dict[tuple[int, int], int]] = {}
        self._ready = [self._visit(number, step) for number, step in enumerate(self.steps)]
        self._next = 0

    def due(self, current: int) -> list[Step]:
        """The steps whose LOADs come right before the instructions of step `current`."""
        found: list[Step] = []
        while self._next < len(self.steps) and self._next <= current + self.REACH:
            if self._next > current and self._ready[self._next] >= current:
                break
            step = self.steps[self._next]
            if step.load_input or step.load_weight:
                found.append(step)
            self._next += 1
        return found

    def _visit(self, number: int, step: Step) -> int:
        """The last step that must come before the LOADs of this one."""
        inp = step.input.elements(0, step.chunk.ins[1])
        wgt = slice(step.weight.base, step.weight.base + step.weight.count)
        ready = -1
        source, result = self._names[step.layer]
        if step.load_input:
            ready = max(ready, int(self._inp[inp].max()), self._source_ready(source, step))
        if step.load_weight:
            ready = max(ready, int(self._wgt[wgt].max()))
        self._inp[inp] = number
        self._wgt[wgt] = number
        stored = self._stored.setdefault(result, {})
        for block in range(step.out_block - step.store_blocks + 1, step.out_block + 1):
            for row in range(*_bounds(step.tile.rows)):
                stored[block, row] = number
        return ready

    def _source_ready(self, source: str, step: Step) -> int:
        """One step after the input was stored, so that the wait for the store is short."""
        stored = self._stored.get(source)
        if stored is None:
            return -1
        chunk = step.input
        rows = range(chunk.rows.first, chunk.rows.first + (chunk.rows.real - 1) * chunk.step + 1)
        blocks = range(*_bounds(chunk.ins))
        latest = (stored.get((block, row), -1) for block in blocks for row in rows)
        return max(latest, default=-1) + 1


def _bounds(run: tuple[int, int]) -> tuple[int, int]:
    return run[0], run[0] + run[1]
