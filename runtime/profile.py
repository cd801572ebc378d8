"""What a run cost, layer by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from math import ceil
from typing import Any

from vitral.config import INSN_BYTES, CoreConfig
from vitral.isa import Alu, Gemm, InstructionSet, Window
from vitral.program import Outcome
from vitral.runtime.module import CpuStep, Layer, Module, Segment
from vitral.verify.image import Image

__all__ = [
    "LayerProfile",
    "copy_profile",
    "cpu_profile",
    "layer_marks",
    "roofline_cycles",
    "segment_profile",
    "stalls_of",
]

_STALLS = ("wait_prev", "wait_next", "wait_push", "wait_memory")


@dataclass(frozen=True, kw_only=True)
class LayerProfile:
    """Cost of one layer in one run, or of a tensor moved between the host and the device.

    Parameters
    ----------
    name, op : str
        The model's node and what it was compiled to; the tensor and "device_copy".
    kernel : str
        What the model's operators compute: "nn_conv2d", "fused_nn_conv2d_nn_relu".
    device : str
        The device's name, or "cpu", which moves tensors, too.
    direction : str
        Of a copy: "cpu -> tsim", or the other way; else "".
    macs : int
        Multiply-accumulates of the float graph.
    read_bytes, write_bytes : int
        What must be moved at least: each needed byte once. Of a copy the bytes of the tensor in
        the accelerator's form, read or written by the accelerator.
    roofline_cycles : int or None
        Cycles that no implementation on this core can beat; None on the CPU.
    cycles : int or None
        Measured, from the last product of the layer before to the last one of this, of a
        program's last layer to the program's end; None when the device counts none.
    counters : mapping
        What was counted in these cycles, by names of `vitral.registers.COUNTERS`: cycles by stage
        and cause, beats. Of the whole program, at each of its layers, on a device that cannot tell
        them apart; empty when not counted.
    seconds : float
        On the host; of the whole program, given at its first layer.
    exact : bool
        False for float islands, which are outside the promise of equal bytes.
    """

    name: str
    op: str
    device: str
    macs: int
    kernel: str = ""
    direction: str = ""
    read_bytes: int = 0
    write_bytes: int = 0
    roofline_cycles: int | None = None
    cycles: int | None = None
    utilisation: float | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    exact: bool = True

    @property
    def stalls(self) -> dict[str, int]:
        """The waiting cycles among the counters."""
        return stalls_of(self.counters)

    def to_dict(self) -> dict[str, Any]:
        """Plain values by field name, for JSON."""
        return asdict(self) | {"counters": dict(self.counters), "stalls": self.stalls}


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
    return LayerProfile(
        name=step.name,
        op=step.op,
        kernel=step.kernel,
        device="cpu",
        macs=step.macs,
        seconds=seconds,
        exact=step.exact,
    )


def copy_profile(
    name: str, device: str, *, nbytes: int, seconds: float, to_device: bool
) -> LayerProfile:
    """A tensor that the host packs for a device, or unpacks."""
    return LayerProfile(
        name=name,
        op="device_copy",
        kernel="device_copy",
        device="cpu",
        direction=f"cpu -> {device}" if to_device else f"{device} -> cpu",
        macs=0,
        read_bytes=nbytes if to_device else 0,
        write_bytes=0 if to_device else nbytes,
        seconds=seconds,
    )


def layer_marks(segment: Segment, module: Module) -> list[int]:
    """For each layer its last instruction that computes, the end of its share of the cycles.

    Of layers that run together, one that ends before those listed before it ends with them.
    """
    isa = InstructionSet.of(module.config)
    data = Image(module.image).read(segment.insn_offset, segment.insn_count * INSN_BYTES)
    words = b"" if data is None else data.tobytes()

    def computes(index: int) -> bool:
        word = int.from_bytes(words[index * INSN_BYTES : (index + 1) * INSN_BYTES], "little")
        return isinstance(isa.decode(word), Gemm | Alu | Window)

    def mark(layer: Layer) -> int:
        found = (n for n in range(layer.last, layer.first - 1, -1) if computes(n))
        return next(found, layer.last)

    return list(accumulate(map(mark, segment.layers), max)) if words else []


def segment_profile(
    segment: Segment,
    outcome: Outcome,
    marks: Sequence[int],
    config: CoreConfig,
    device: str,
    seconds: float,
) -> list[LayerProfile]:
    """One entry per layer, from the outcome's cycles at the layers' `marks`."""
    measured = _layer_cycles(marks, outcome)
    counted = _layer_counters(marks, outcome)
    return [
        LayerProfile(
            name=layer.name,
            op=layer.op,
            kernel=layer.kernel,
            device=device,
            macs=layer.macs,
            read_bytes=layer.read_bytes,
            write_bytes=layer.write_bytes,
            roofline_cycles=roofline_cycles(layer, config),
            cycles=cycles,
            utilisation=_utilisation(layer.macs, cycles, config),
            counters=counters,
            seconds=seconds if number == 0 else 0.0,
        )
        for number, (layer, cycles, counters) in enumerate(
            zip(segment.layers, measured, counted, strict=True)
        )
    ]


def _utilisation(macs: int, cycles: int | None, config: CoreConfig) -> float | None:
    return macs / (config.layout.macs_per_cycle * cycles) if cycles else None


def _layer_cycles(marks: Sequence[int], outcome: Outcome) -> list[int | None]:
    ends = [outcome.marks.get(mark) for mark in marks]
    ends[-1:] = [outcome.cycles]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return [None] * len(ends)
    return [end - start for start, end in zip([0, *known], known, strict=False)]


def _layer_counters(marks: Sequence[int], outcome: Outcome) -> list[Mapping[str, int]]:
    """What was counted from the layer before's mark to its own, of the last one to the end."""
    known = [outcome.mark_counters[mark] for mark in marks[:-1] if mark in outcome.mark_counters]
    if not known or len(known) < len(marks) - 1:
        return [outcome.counters] * len(marks)
    names = [name for name in outcome.counters if name in known[0]]
    ends = [*known, outcome.counters]
    starts = [dict.fromkeys(names, 0), *known]
    return [
        {name: end[name] - start[name] for name in names}
        for start, end in zip(starts, ends, strict=True)
    ]
