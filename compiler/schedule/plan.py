"""Schedules the layers of a segment: tilings, buffers in turn, steps, and which layers join."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.joining import choose_pairs
from vitral.compiler.schedule.layer import AccelLayer, ConvLayer
from vitral.compiler.schedule.layer_plan import LayerPlan, Tiled
from vitral.compiler.schedule.regions import Region
from vitral.compiler.schedule.search import Trial, choose_tiling
from vitral.compiler.schedule.tiling import Buffers, Ring
from vitral.compiler.schedule.unroll import Placement
from vitral.compiler.schedule.window_tiling import choose_window_tiling
from vitral.compiler.schedule.windows import WindowGeometry, is_window
from vitral.config import CoreConfig

__all__ = ["LayerPlan", "plan_layers"]


def plan_layers(
    layers: Sequence[AccelLayer],
    config: CoreConfig,
    trial: "Trial[Geometry | WindowGeometry]",
    regions: Mapping[str, Region] | None = None,
    told: Callable[[int], None] | None = None,
) -> list[LayerPlan]:
    """Plans in order; each layer starts in the part of the buffers that the last one left free.

    `trial` decides between the tilings that estimates leave over; `regions` place values that are
    parts of others; `told` is called with the number of each layer before its search.

    Raises
    ------
    CompileError
        For a layer that is malformed or of which not one output fits on chip.
    """

    tiled: list[Tiled] = []
    for number, layer in enumerate(layers):
        if told is not None:
            told(number)
        tiled.append(_tiled(layer, _geometry(layer, config), config, trial))
    places = regions or {}
    pairs = choose_pairs(tiled, config, _retile, places)
    plans: list[LayerPlan] = []
    place = Placement()
    while len(plans) < len(layers):
        number = len(plans)
        if number in pairs:
            plans += _joined(number, pairs[number], place, config)
            place = _place_after_pair(place, config)
        else:
            plans.append(_placed(number, tiled[number], place, config))
            place = _next_place(plans[-1], config)
    return [replace(plan, regions=places) for plan in plans]


def _retile(tiled: Tiled, config: CoreConfig) -> Tiled:
    """The tiling that estimates find best: trials of a layer alone say little about a pair."""
    return _tiled(tiled.layer, tiled.geometry, config, _by_estimate)


def _by_estimate(*_: object) -> int:
    return 0


def _geometry(layer: AccelLayer, config: CoreConfig) -> Geometry | WindowGeometry:
    geometry: Geometry | WindowGeometry
    if isinstance(layer, ConvLayer) and not is_window(layer):
        geometry = Geometry.of(layer, config)
    else:
        geometry = WindowGeometry.of(layer, config)
    return geometry.in_memory() if geometry.pads_in_memory else geometry


def _tiled(
    layer: AccelLayer,
    geometry: Geometry | WindowGeometry,
    config: CoreConfig,
    trial: "Trial[Geometry | WindowGeometry]",
) -> Tiled:
    if isinstance(geometry, WindowGeometry):
        tiling, buffers = choose_window_tiling(geometry, config, layer.name, trial)
    else:
        tiling, buffers = choose_tiling(geometry, config, layer.name, trial)
    return Tiled(layer, geometry, tiling, buffers)


def _placed(
    number: int, tiled: Tiled, place: Placement, config: CoreConfig, *, joined: bool = False
) -> LayerPlan:
    place = _fit_place(place, tiled.buffers, config)
    return LayerPlan(
        tiled.layer,
        tiled.geometry,
        tiled.tiling,
        tiled.buffers,
        place,
        tiled.steps(number, place),
        joined,
    )


def _joined(
    number: int, pair: tuple[Tiled, Tiled], place: Placement, config: CoreConfig
) -> Iterator[LayerPlan]:
    """Two layers in one half of each memory each, the first in those that are free earlier."""
    layout = config.layout
    for second, tiled in enumerate(pair):
        half = Placement(
            inp_base=(place.inp_slot ^ second) % 2 * (layout.inp_depth // 2),
            wgt_base=((place.wgt_base > 0) ^ second) * (layout.wgt_depth // 2),
            acc_base=(place.acc_slot ^ second) % 2 * (layout.acc_depth // 2),
        )
        yield _placed(number + second, tiled, half, config, joined=second == 1)


def _place_after_pair(place: Placement, config: CoreConfig) -> Placement:
    """The halves of the first layer of a pair, which ends earlier."""
    return Placement(
        inp_slot=place.inp_slot % 2,
        wgt_base=(place.wgt_base > 0) * (config.layout.wgt_depth // 2),
        acc_slot=place.acc_slot % 2,
    )


def _extent(ring: Ring) -> int:
    return (ring.slots - 1) * ring.spacing + ring.size


def _fit_place(place: Placement, buffers: Buffers, config: CoreConfig) -> Placement:
    fits = place.wgt_base + _extent(buffers.wgt) <= config.layout.wgt_depth
    return replace(
        place,
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
