"""A module's programs as instructions with their layers: what timelines are labelled with."""

from dataclasses import dataclass

from vitral.assembly import disassemble
from vitral.config import INSN_BYTES
from vitral.errors import ModuleError
from vitral.isa import InstructionSet, Profile
from vitral.program import Outcome
from vitral.runtime.module import Layer, Module, Segment
from vitral.runtime.profile import layer_marks
from vitral.verify.image import Image

__all__ = ["LayerSpan", "instruction_texts", "layer_of", "layer_spans"]


@dataclass(frozen=True)
class LayerSpan:
    """The cycles of a program that count as one layer's."""

    name: str
    start: int
    end: int


def instruction_texts(segment: Segment, module: Module) -> list[str]:
    """Each instruction of a program as assembly text."""
    size = segment.insn_count * INSN_BYTES
    data = Image(module.image).read(segment.insn_offset, size)
    if data is None:
        raise ModuleError(f"{segment.name}: the module's image does not hold its instructions")
    isa = InstructionSet.of(module.config)
    words = data.tobytes()
    return [
        disassemble(
            int.from_bytes(words[place : place + INSN_BYTES], "little"), Profile.VITRAL, isa
        )
        for place in range(0, size, INSN_BYTES)
    ]


def layer_of(segment: Segment, index: int) -> Layer | None:
    """The layer that an instruction belongs to; None for those before the first and FINISH."""
    return next((x for x in segment.layers if x.first <= index <= x.last), None)


def layer_spans(segment: Segment, module: Module, outcome: Outcome) -> list[LayerSpan]:
    """The layers of a run, one after the other, as the profile counts them."""
    marks = layer_marks(segment, module)[:-1]
    ends = [*(outcome.marks.get(mark, 0) for mark in marks), outcome.cycles or 0]
    starts = [0, *ends[:-1]]
    return [
        LayerSpan(layer.name, start, end)
        for layer, start, end in zip(segment.layers, starts, ends, strict=True)
    ]
