"""Tells how early the LOADs of each step may stand in the program: `Prefetch`."""

from collections.abc import Sequence

import numpy as np

from vitral.compiler.schedule.layer_plan import LayerPlan
from vitral.compiler.schedule.steps import InputChunk, Step
from vitral.config import CoreConfig

__all__ = ["Prefetch"]


class Prefetch:
    """The steps in their order, and when to load for which.

    A step's LOADs come before the instructions of an earlier step as soon as the data they
    replace has been used and the tensor they read has been stored, `REACH` steps ahead at most.
    """

    REACH = 24

    def __init__(
        self, plans: Sequence[LayerPlan], order: Sequence[tuple[int, int]], config: CoreConfig
    ) -> None:
        self.steps = [plans[layer].steps[number] for layer, number in order]
        self._reads = [plan.reads for plan in plans]
        self._writes = [plan.writes for plan in plans]
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
                ready = max(
                    ready, int(np.maximum.reduce(self._inp[inp])), self._source_ready(step, chunk)
                )
            self._inp[inp] = number
        if step.load_weight:
            ready = max(ready, int(np.maximum.reduce(self._wgt[wgt])))
        self._wgt[wgt] = number
        result = self._writes[step.layer]
        stored = self._stored.setdefault(result.root, {})
        for block in range(*_bounds(step.stored)):
            for row in range(*_bounds(step.tile.rows)):
                stored[result.first + block, row] = number
        return ready

    def _source_ready(self, step: Step, chunk: InputChunk) -> int:
        """One step after the input was stored, so that the wait for the store is short."""
        source = self._reads[step.layer][chunk.source]
        stored = self._stored.get(source.root)
        if stored is None:
            return -1
        rows = range(chunk.rows.first, chunk.rows.first + (chunk.rows.real - 1) * chunk.step + 1)
        blocks = range(*_bounds(chunk.ins))
        latest = (stored.get((source.first + block, row), -1) for block in blocks for row in rows)
        return max(latest, default=-1) + 1


def _bounds(run: tuple[int, int]) -> tuple[int, int]:
    return run[0], run[0] + run[1]
