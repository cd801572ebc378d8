"""What a run cost, layer by layer."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any

from vitral.config import CoreConfig
from vitral.program import Outcome
from vitral.runtime.module import CpuStep, Layer, Segment

__all__ = ["LayerProfile", "cpu_profile", "roofline_cycles", "segment_profile", "stalls_of"]

_STALLS = ("wait_prev", "wait_next", "wait_push", "wait_memory")


@dataclass(frozen=True, kw_only=True)
class LayerProfile:
    """Cost of one layer in one run.

    Parameters
    ----------
    name, op : str
        The model's node and what it was compiled to.
    device : str
        The device's name, or "cpu".
    macs : int
        Multiply-accumulates of the float graph.
    read_bytes, write_bytes : int
        What must be moved at least: each needed byte once.
    roofline_cycles : int or None
        Cycles that no implementation on this core can beat; None on the CPU.
    cycles : int or None
        Measured, from the end of the layer before to the end of this one; None when the device
        counts none.
    stalls : mapping
        Cycles by stage and cause, of the whole program when it has several layers; empty when not
        counted.
    seconds : float
        On the host; of the whole program, given at its first layer.
    """

    name: str
    op: str
    device: str
    macs: int
    read_bytes: int = 0
    write_bytes: int = 0
    roofline_cycles: int | None = None
    cycles: int | None = None
    utilisation: float | None = None
    stalls: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values by field name, for JSON."""
        return asdict(self) | {"stalls": dict(self.stalls)}


def roofline_cycles(layer: Layer, config: CoreConfig) -> int:
    """max(MACs / array size, bytes per direction / bus bytes), rounded up."""
    layout = config.layout
    return max(
        ceil(layer.macs / layout.macs_per_cycle),
        ceil(layer.read_bytes / layout.beat_bytes),
        ceil(layer.write_bytes / layout.beat_bytes),
    )


def stalls_of(counters: Mapping[str, int]) -> dict[str, int]:
    """The waiting cycles among a device's counters."""
    return {name: value for name, value in counters.items() if name.endswith(_STALLS)}


def cpu_profile(step: CpuStep, seconds: float) -> LayerProfile:
    return LayerProfile(name=step.name, op=step.op, device="cpu", macs=step.macs, seconds=seconds)


def segment_profile(
    segment: Segment, outcome: Outcome, config: CoreConfig, device: str, seconds: float
) -> list[LayerProfile]:
    """One entry per layer; the first layer's cycles begin at the launch, the last one's end it."""
    stalls = stalls_of(outcome.counters)
    measured = _layer_cycles(segment, outcome)
    return [
        LayerProfile(
            name=layer.name,
            op=layer.op,
            device=device,
            macs=layer.macs,
            read_bytes=layer.read_bytes,
            write_bytes=layer.write_bytes,
            roofline_cycles=roofline_cycles(layer, config),
            cycles=cycles,
            utilisation=_utilisation(layer.macs, cycles, config),
            stalls=stalls,
            seconds=seconds if number == 0 else 0.0,
        )
        for number, (layer, cycles) in enumerate(zip(segment.layers, measured, strict=True))
    ]


def _utilisation(macs: int, cycles: int | None, config: CoreConfig) -> float | None:
    return macs / (config.layout.macs_per_cycle * cycles) if cycles else None


def _layer_cycles(segment: Segment, outcome: Outcome) -> Iterable[int | None]:
    if outcome.cycles is None:
        return [None] * len(segment.layers)
    ends = [outcome.marks.get(layer.last) for layer in segment.layers]
    ends[-1:] = [outcome.cycles]
    if any(end is None for end in ends):
        return [None] * len(segment.layers)
    known = [end for end in ends if end is not None]
    return [end - start for start, end in zip([0, *known], known, strict=False)]
