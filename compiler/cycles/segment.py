"""Predicted cycles of a compiled program, layer by layer."""

from itertools import pairwise

from vitral.compiler.cycles.model import Prediction, predict
from vitral.config import INSN_BYTES
from vitral.isa import Instruction, InstructionSet
from vitral.program import MemoryModel
from vitral.runtime.module import Module, Segment
from vitral.runtime.profile import layer_marks
from vitral.verify.image import Image

__all__ = ["instructions_of", "layer_cycles", "predict_segment"]


def instructions_of(module: Module, segment: Segment) -> list[Instruction]:
    """The instructions of a program of a module."""
    isa = InstructionSet.of(module.config)
    data = Image(module.image).read(segment.insn_offset, segment.insn_count * INSN_BYTES)
    raw = b"" if data is None else data.tobytes()
    words = (raw[n : n + INSN_BYTES] for n in range(0, len(raw), INSN_BYTES))
    return [isa.decode(int.from_bytes(word, "little")) for word in words]


def predict_segment(
    module: Module, segment: Segment, memory: MemoryModel | None = None
) -> Prediction:
    """What a program is expected to cost; the yardstick memory where none is given."""
    return predict(instructions_of(module, segment), module.config, memory=memory)


def layer_cycles(module: Module, segment: Segment, prediction: Prediction) -> list[int]:
    """The share of each layer, cut where the profile of a run cuts it: at the end of its last
    instruction that computes, for the last layer at the end of the program."""
    ends = [prediction.retired[mark] for mark in layer_marks(segment, module)]
    return [end - start for start, end in pairwise([0, *ends[:-1], prediction.cycles])]
