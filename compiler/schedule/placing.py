"""Where the values of a segment lie in the arena, with the padding that must be part of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vitral.compiler.codegen.arena import Arena
from vitral.compiler.codegen.tensors import tensor_bytes
from vitral.compiler.schedule.layer import AddLayer, PoolLayer
from vitral.compiler.schedule.plan import LayerPlan
from vitral.compiler.schedule.regions import Join, Region, region_of, regions_of
from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.runtime.module import ArenaTensor

__all__ = ["memory_pads", "pad_value", "place_tensors"]

Pads = tuple[int, int, int, int]
Shape = tuple[int, int, int, int]

_NO_PADS: Pads = (0, 0, 0, 0)
_LOWEST = -128


@dataclass(frozen=True)
class _Border:
    """Padding of a tensor in DRAM and its value."""

    pads: Pads = _NO_PADS
    value: int = 0


def pad_value(plan: LayerPlan) -> int:
    """int8 value of a layer's padding: for a maximum the one that never wins."""
    match plan.layer:
        case PoolLayer():
            return _LOWEST
        case AddLayer():
            return 0
        case layer:
            return layer.pad_value


def memory_pads(plan: LayerPlan) -> Pads:
    """(top, left, bottom, right) of a layer's padding that lie in DRAM."""
    layer, geometry = plan.layer, plan.geometry
    if isinstance(layer, AddLayer):
        return _NO_PADS
    _, _, height, width = layer.in_shape
    top, left = layer.pads[0] - geometry.y.before, layer.pads[1] - geometry.x.before
    bottom, right = geometry.y.size - height - top, geometry.x.size - width - left
    return top, left, bottom, right


def place_tensors(
    plans: Sequence[LayerPlan],
    config: CoreConfig,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    arena: Arena,
    joins: Sequence[Join] = (),
) -> dict[str, ArenaTensor]:
    """Where each value lies: inputs, outputs and padded ones for good, others while they live.

    A value that dies in a layer lives on while the layer that is joined to this one runs. The
    parts of `joins` lie in their results, and live as long as these.

    Raises
    ------
    CompileError
        When two layers want borders of different values around one tensor.
    """
    placer = _Placer(plans, config, inputs, outputs, arena, joins)
    last_use = {region.root: n for n, plan in enumerate(plans) for region in plan.reads}
    dead: list[str] = []
    for number, plan in enumerate(plans):
        layer = plan.layer
        if not plan.joined:
            placer.release(dead)
            dead = []
        for source, shape in zip(layer.sources, layer.source_shapes, strict=True):
            placer.place(source, shape, live=True)
        placer.place(layer.result, layer.out_shape, live=plan.writes.root in last_use)
        roots = dict.fromkeys(region.root for region in plan.reads)
        dead += [root for root in roots if last_use[root] == number]
    placer.release(dead)
    for join in joins:
        for value, shape in ((join.result, join.shape), *join.part_shapes):
            placer.place(value, shape, live=True)
    return placer.tensors


class _Placer:
    def __init__(
        self,
        plans: Sequence[LayerPlan],
        config: CoreConfig,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        arena: Arena,
        joins: Sequence[Join],
    ) -> None:
        self.tensors: dict[str, ArenaTensor] = {}
        self._regions = regions_of(joins, config.block) or {}
        self._shapes = {join.result: join.shape for join in joins}
        self._borders = _borders(plans, self._regions)
        self._borrowed: dict[str, int] = {}
        self._config = config
        self._inputs, self._outputs = (
            {region_of(self._regions, value).root for value in values}
            for values in (inputs, outputs)
        )
        self._arena = arena

    def place(self, value: str, shape: Shape, *, live: bool) -> None:
        """Give a value its place, if it has none; `live`: a layer reads it later on."""
        if value in self.tensors:
            return
        region = region_of(self._regions, value)
        if region.root != value:
            self.place(region.root, self._shapes[region.root], live=live)
            root = self.tensors[region.root]
            plane = tensor_bytes((1, 1, *shape[2:]), root.pads, self._config)
            offset = root.offset + region.first * plane
            self.tensors[value] = replace(root, name=value, offset=offset, shape=shape)
            return
        border = self._borders.get(value, _Border())
        size = tensor_bytes(shape, border.pads, self._config)
        if value in self._inputs:
            offset = self._arena.reserve(size)
        elif any(border.pads):
            offset = self._arena.place(np.full(size, border.value, np.int8))
        elif value in self._outputs or not live:
            offset = self._arena.reserve(size)
        else:
            offset = self._borrowed[value] = self._arena.borrow(size)
        self.tensors[value] = ArenaTensor(
            name=value, offset=offset, shape=shape, pads=border.pads, pad_value=border.value
        )

    def release(self, values: Iterable[str]) -> None:
        """Give the space of dead values back, where it is not their own for good."""
        for value in values:
            if value in self._borrowed:
                self._arena.release(self._borrowed.pop(value))


def _borders(plans: Sequence[LayerPlan], regions: Mapping[str, Region]) -> dict[str, _Border]:
    """The widest padding that any reader of a tensor, or of a part of it, needs in DRAM."""
    borders: dict[str, _Border] = {}
    for plan in plans:
        pads, value = memory_pads(plan), pad_value(plan)
        if not any(pads):
            continue
        source = region_of(regions, plan.layer.sources[0]).root
        border = borders.get(source, _Border(value=value))
        if border.value != value:
            raise CompileError(
                f"{plan.layer.name}: pads {source} with {value}, another layer with"
                f" {border.value}; borders wider than 15 must have one value"
            )
        wide = [max(pair) for pair in zip(border.pads, pads, strict=True)]
        borders[source] = _Border((wide[0], wide[1], wide[2], wide[3]), value)
    return borders
