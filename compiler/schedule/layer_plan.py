"""A layer with all decisions taken: `LayerPlan`; without its place on chip: `Tiled`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.layer import AccelLayer
from vitral.compiler.schedule.regions import Region, region_of
from vitral.compiler.schedule.steps import Step
from vitral.compiler.schedule.tiling import Buffers, Tiling
from vitral.compiler.schedule.unroll import Placement, unroll
from vitral.compiler.schedule.window_steps import unroll_window
from vitral.compiler.schedule.windows import WindowGeometry

__all__ = ["LayerPlan", "Tiled"]


@dataclass(frozen=True)
class Tiled:
    """A layer with its geometry (padding in memory where that is needed) and its tiling."""

    layer: AccelLayer
    geometry: Geometry | WindowGeometry
    tiling: Tiling
    buffers: Buffers

    def steps(self, number: int, place: Placement) -> tuple[Step, ...]:
        """The steps in order, as those of layer `number`."""
        geometry = self.geometry
        if isinstance(geometry, WindowGeometry):
            return tuple(unroll_window(number, geometry, self.tiling, self.buffers, place))
        return tuple(unroll(number, geometry, self.tiling, self.buffers, place))


@dataclass(frozen=True)
class LayerPlan:
    """A layer with its tiling, its place on chip, and its steps.

    The steps of a `joined` layer run among those of the layer before it. `regions` place values
    that are parts of others.
    """

    layer: AccelLayer
    geometry: Geometry | WindowGeometry
    tiling: Tiling
    buffers: Buffers
    place: Placement
    steps: tuple[Step, ...]
    joined: bool = False
    regions: Mapping[str, Region] = field(default_factory=dict)

    @property
    def reads(self) -> tuple[Region, ...]:
        """Where the sources lie."""
        return tuple(region_of(self.regions, source) for source in self.layer.sources)

    @property
    def writes(self) -> Region:
        """Where the result lies."""
        return region_of(self.regions, self.layer.result)
