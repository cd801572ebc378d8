"""Schedules the layers of a segment one after the other: tilings, buffers in turn, and steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.layer import AccelLayer, ConvLayer
from vitral.compiler.schedule.search import Trial, choose_tiling
from vitral.compiler.schedule.steps import InputChunk, Step
from vitral.compiler.schedule.tiling import Buffers, Ring, Tiling
from vitral.compiler.schedule.unroll import Placement, unroll
from vitral.compiler.schedule.window_steps import unroll_window
from vitral.compiler.schedule.window_tiling import choose_window_tiling
from vitral.compiler.schedule.windows import WindowGeometry, is_window
from vitral.config import CoreConfig

__all__ = ["LayerPlan", "Prefetch", "plan_layers"]


@dataclass(frozen=True)
class LayerPlan:
    """A layer with its geometry (padding in memory where that is needed), tiling and steps."""

    layer: AccelLayer
    geometry: Geometry | WindowGeometry
    tiling: Tiling
    buffers: Buffers
    place: Placement
    steps: tuple[Step, ...]


def plan_layers(
    layers: Sequence[AccelLayer],
    config: CoreConfig,
    trial: "Trial[Geometry | WindowGeometry]",
) -> list[LayerPlan]:
    """Plans in order; each layer starts in the part of the buffers that the last one left free.

    `trial` decides between the tilings that estimates leave over.

    Raises
    ------
    CompileError
        For a layer that is malformed or of which not one output fits on chip.
    """
    plans: list[LayerPlan] = []
    place = Placement()
    for number, layer in enumerate(layers):
        plan = _plan_layer(number, layer, config, place, trial)
        plans.append(plan)
        place = _next_place(plan, config)
    return plans


def _plan_layer(
    number: int,
    layer: AccelLayer,
    config: CoreConfig,
    place: Placement,
    trial: "Trial[Geometry | WindowGeometry]",
) -> LayerPlan:
    geometry: Geometry | WindowGeometry
    if isinstance(layer, ConvLayer) and not is_window(layer):
        geometry = Geometry.of(layer, config)
    else:
        geometry = WindowGeometry.of(layer, config)
    if geometry.pads_in_memory:
        geometry = geometry.in_memory()
    if isinstance(geometry, WindowGeometry):
        tiling, buffers = choose_window_tiling(geometry, config, layer.name, trial)
        place = _fit_place(place, buffers, config)
        steps = unroll_window(number, geometry, tiling, buffers, place)
    else:
        tiling, buffers = choose_tiling(geometry, config, layer.name, trial)
        place = _fit_place(place, buffers, config)
        steps = unroll(number, geometry, tiling, buffers, place)
    return LayerPlan(layer, geometry, tiling, buffers, place, tuple(steps))


def _extent(ring: Ring) -> int:
    return (ring.slots - 1) * ring.spacing + ring.size


def _fit_place(place: Placement, buffers: Buffers, config: CoreConfig) -> Placement:
    fits = place.wgt_base + _extent(buffers.wgt) <= config.layout.wgt_depth
    return Placement(
        inp_slot=place.inp_slot % buffers.inp.slots,
        wgt_base=place.wgt_base if fits else 0,
        acc_slot=place.acc_slot % buffers.acc.slots,
    )


def _next_place(plan: LayerPlan, config: CoreConfig) -> Placement:
    """The half of each memory that the last step of a layer does not use."""
    place, last, depth = plan.place, plan.steps[-1], config.layout.wgt_depth
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
        self._sources = [plan.layer.sources for plan in plans]
        self._results = [plan.layer.result for plan in plans]
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
        wgt = slice(step.weight.base, step.weight.base + step.weight.count)
        ready = -1
        for chunk in step.inputs:
            inp = chunk.elements(0, step.chunk.ins[1])
            if step.load_input:
                ready = max(ready, int(self._inp[inp].max()), self._source_ready(step, chunk))
            self._inp[inp] = number
        if step.load_weight:
            ready = max(ready, int(self._wgt[wgt].max()))
        self._wgt[wgt] = number
        stored = self._stored.setdefault(self._results[step.layer], {})
        for block in range(*_bounds(step.stored)):
            for row in range(*_bounds(step.tile.rows)):
                stored[block, row] = number
        return ready

    def _source_ready(self, step: Step, chunk: InputChunk) -> int:
        """One step after the input was stored, so that the wait for the store is short."""
        stored = self._stored.get(self._sources[step.layer][chunk.source])
        if stored is None:
            return -1
        rows = range(chunk.rows.first, chunk.rows.first + (chunk.rows.real - 1) * chunk.step + 1)
        blocks = range(*_bounds(chunk.ins))
        latest = (stored.get((block, row), -1) for block in blocks for row in rows)
        return max(latest, default=-1) + 1


def _bounds(run: tuple[int, int]) -> tuple[int, int]:
    return run[0], run[0] + run[1]
