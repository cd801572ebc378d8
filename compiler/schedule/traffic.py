"""Cycles that a layer's steps keep the compute stage and each memory channel busy."""

from collections.abc import Sequence
from dataclasses import dataclass

from vitral.compiler.schedule.cost import row_beats
from vitral.compiler.schedule.geometry import Geometry, blocks_of
from vitral.compiler.schedule.steps import Step
from vitral.compiler.schedule.windows import WindowGeometry, WindowKind
from vitral.config import INSN_BYTES, CoreConfig

__all__ = ["Traffic", "traffic_of"]

_INSNS_PER_STEP = 5


@dataclass(frozen=True)
class Traffic:
    compute: int
    read: int
    write: int

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(
            self.compute + other.compute, self.read + other.read, self.write + other.write
        )

    @property
    def longest(self) -> int:
        """Cycles when all three overlap completely."""
        return max(self.compute, self.read, self.write)


def traffic_of(
    steps: Sequence[Step], geometry: Geometry | WindowGeometry, config: CoreConfig
) -> Traffic:
    """The sums over all steps."""
    return Traffic(
        sum(_operations(step, geometry) for step in steps),
        sum(_read(step, config) for step in steps),
        sum(_written(step, config) for step in steps),
    )


def _operations(step: Step, geometry: Geometry | WindowGeometry) -> int:
    if not isinstance(geometry, WindowGeometry):
        return step.tile.positions * step.weight.count
    per_output = step.chunk.taps[1] * geometry.row_operations
    if geometry.kind is WindowKind.ADD:
        per_output += geometry.planes - 1  # the shift between two passes
    return step.blocks * step.tile.positions * per_output


def _read(step: Step, config: CoreConfig) -> int:
    layout = config.layout
    beats = _INSNS_PER_STEP * INSN_BYTES // layout.beat_bytes
    if step.load_weight:
        beats += step.weight.count * blocks_of(layout.wgt_bytes, layout.beat_bytes)
    if step.load_input:
        for chunk in step.inputs:
            row = row_beats(chunk.cols.real, layout.inp_bytes, config)
            beats += chunk.ins[1] * chunk.rows.real * row
    return beats


def _written(step: Step, config: CoreConfig) -> int:
    row = row_beats(step.tile.cols[1], config.layout.out_bytes, config)
    return step.store_blocks * step.tile.rows[1] * row
