"""Plans layers of the plain VTA profile.

ACC holds the sums at its start and, at equal distance behind each sum, the other operand of the
ALU: `Room`. The tiles of a layer are those of a core whose ACC has only the part for the sums. A
pool keeps its input as the other operand, so INP of that core is as large.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.layer_plan import LayerPlan, Tiled
from vitral.compiler.schedule.regions import Region
from vitral.compiler.schedule.search import choose_tiling
from vitral.compiler.schedule.unroll import Placement
from vitral.compiler.schedule.vta_layer import VtaConv, VtaLayer, VtaPool
from vitral.compiler.schedule.window_tiling import choose_window_tiling
from vitral.compiler.schedule.windows import WindowGeometry
from vitral.config import CoreConfig
from vitral.errors import CompileError, ConfigError

__all__ = ["Room", "plan_vta_layers", "room_of"]


@dataclass(frozen=True)
class Room:
    """How a layer divides ACC, in elements: `sums` of it, as many other operands from there on,
    and biases from `biases` on."""

    sums: int
    biases: int


def room_of(layer: VtaLayer, config: CoreConfig) -> Room:
    """A half for sums, or a quarter where both a bias and a tensor are added."""
    depth = config.layout.acc_depth
    both = isinstance(layer, VtaConv) and layer.added and layer.bias is not None
    sums = depth // 4 if both else depth // 2
    return Room(sums, 2 * sums if both else sums)


def plan_vta_layers(
    layers: Sequence[VtaLayer],
    config: CoreConfig,
    regions: Mapping[str, Region] | None = None,
    told: Callable[[int], None] | None = None,
) -> list[LayerPlan]:
    """Plans in order, as of `plan_layers`; tilings are chosen by estimate.

    Raises
    ------
    CompileError
        For a layer that is malformed or of which not one output fits on chip.
    """
    plans: list[LayerPlan] = []
    place = Placement()
    for number, layer in enumerate(layers):
        if told is not None:
            told(number)
        part = _part(layer, config)
        plans.append(_plan(number, _tiled(layer, part), place, regions or {}))
        if isinstance(layer, VtaConv):
            place = _next(plans[-1], part)
    return plans


def _part(layer: VtaLayer, config: CoreConfig) -> CoreConfig:
    """The core that the tiles of a layer have to fit."""
    layout, sums = config.layout, room_of(layer, config).sums
    sizes = {"acc_buffer": sums * layout.acc_bytes}
    if isinstance(layer, VtaPool):
        sizes["inp_buffer"] = sums * layout.inp_bytes
    try:
        return replace(config, **sizes)
    except ConfigError:
        raise CompileError(
            f"{layer.name}: an ACC of {layout.acc_depth} elements is too small for sums and other"
            " operands; use a larger one"
        ) from None


def _tiled(layer: VtaLayer, part: CoreConfig) -> Tiled:
    if isinstance(layer, VtaPool):
        window = WindowGeometry.of(layer, part)
        window = window.in_memory() if window.pads_in_memory else window
        return Tiled(layer, window, *choose_window_tiling(window, part, layer.name, _no_trial))
    geometry = Geometry.of(layer, part)
    geometry = geometry.in_memory() if geometry.pads_in_memory else geometry
    return Tiled(layer, geometry, *choose_tiling(geometry, part, layer.name, _no_trial))


def _no_trial(*_: object) -> int:
    return 0


def _plan(number: int, tiled: Tiled, place: Placement, regions: Mapping[str, Region]) -> LayerPlan:
    rings = tiled.buffers
    place = replace(
        place,
        inp_slot=place.inp_slot % rings.inp.slots,
        acc_slot=place.acc_slot % rings.acc.slots,
    )
    steps = tiled.steps(number, place)
    if isinstance(tiled.layer, VtaPool):  # its LOADs are in the compute queue, beside the ALU
        steps = tuple(step._replace(load_input=False, load_weight=False) for step in steps)
    return LayerPlan(
        tiled.layer,
        tiled.geometry,
        tiled.tiling,
        rings,
        place,
        steps,
        regions=regions,
    )


def _next(plan: LayerPlan, part: CoreConfig) -> Placement:
    """The halves of INP and ACC that the last step of a layer does not use."""
    last = plan.steps[-1]
    return Placement(
        inp_slot=0 if last.input.base >= part.layout.inp_depth // 2 else 1,
        acc_slot=0 if last.acc >= part.layout.acc_depth // 2 else 1,
    )
