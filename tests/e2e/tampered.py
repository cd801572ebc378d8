"""Compiled programs with one mistake put into them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from vitral.config import INSN_BYTES, CoreConfig
from vitral.isa import (
    Finish,
    Gemm,
    Instruction,
    InstructionSet,
    Load,
    Memory,
    Store,
)
from vitral.runtime.module import Module
from vitral.verify.image import Image

__all__ = [
    "ISA",
    "MISTAKES",
    "Mistake",
    "as_bytes",
    "instructions_of",
    "is_data",
    "tampered_words",
]

Words = list[int]
ISA = InstructionSet.of(CoreConfig())
"""Of the core that the modules are compiled for."""


@dataclass(frozen=True)
class Mistake:
    """`change` makes it, in a program for the default core; `text` is what a run then says.

    In `text`, ``{at}`` stands for the number of the changed instruction, ``{count}`` for that of
    all instructions, and ``{last_pop}`` for that of the last one that waits for load.
    """

    change: Callable[[Words], tuple[int, int]]
    text: str


def instructions_of(module: Module) -> Words:
    """The words of a module's first program."""
    segment = module.segments[0]
    data = Image(module.image).read(segment.insn_offset, segment.insn_count * INSN_BYTES)
    assert data is not None, "a module's image holds its instructions"
    raw = data.tobytes()
    return [
        int.from_bytes(raw[at : at + INSN_BYTES], "little") for at in range(0, len(raw), INSN_BYTES)
    ]


def as_bytes(words: Words) -> npt.NDArray[np.uint8]:
    raw = b"".join(word.to_bytes(INSN_BYTES, "little") for word in words)
    return np.frombuffer(raw, np.uint8)


def tampered_words(words: Words, name: str) -> tuple[Words, str]:
    """The program with the mistake of that name, and the text of its end."""
    mistake = MISTAKES[name]
    at, word = mistake.change(words)
    assert word != words[at], "a mistake changes something"
    changed = [word if number == at else old for number, old in enumerate(words)]
    pops = [n for n, i in _decoded(words) if isinstance(i, Gemm) and i.pop_prev]
    return changed, mistake.text.format(at=at, count=len(words), last_pop=pops[-1])


def _decoded(words: Words) -> Iterator[tuple[int, Instruction]]:
    return ((at, ISA.decode(word)) for at, word in enumerate(words))


def _first(words: Words, wanted: Callable[[Instruction], bool]) -> int:
    return next(at for at, insn in _decoded(words) if wanted(insn))


def _set(words: Words, at: int, name: str, value: int) -> tuple[int, int]:
    insn = ISA.decode(words[at])
    return at, ISA.encode(replace(insn, **{name: value}))


def is_data(insn: Instruction) -> bool:
    """Whether it loads activations."""
    return isinstance(insn, Load) and insn.memory is Memory.INP


def _far(words: Words) -> tuple[int, int]:
    return _set(words, _first(words, is_data), "dram_base", 0xFFFFFF)


def _far_store(words: Words) -> tuple[int, int]:
    return _set(words, _first(words, lambda i: isinstance(i, Store)), "dram_base", 0xFFFFFF)


def _past_the_end(words: Words) -> tuple[int, int]:
    return _set(words, _first(words, is_data), "sram_base", ISA.config.layout.inp_depth - 1)


def _lost_push(words: Words) -> tuple[int, int]:
    """The last push of load: all that come before still balance."""
    pushing = [at for at, i in _decoded(words) if isinstance(i, Load) and i.push_next]
    return _set(words, pushing[-1], "push_next", False)


def _spare_push(words: Words) -> tuple[int, int]:
    """A push of compute that nobody takes."""
    idle = [at for at, i in _decoded(words) if isinstance(i, Gemm) and not i.push_prev]
    return _set(words, idle[-1], "push_prev", True)


def _index(words: Words) -> tuple[int, int]:
    at = _first(words, lambda i: isinstance(i, Gemm))
    return _set(words, at, "uop_end", ISA.config.layout.uop_depth + 1)


MISTAKES: dict[str, Mistake] = {
    "undefined opcode": Mistake(
        lambda words: (3, words[3] | 7), "undefined opcode at instruction {at}"
    ),
    "no FINISH": Mistake(
        lambda words: (len(words) - 1, ISA.encode(Gemm())),
        "program ends without FINISH at instruction {count}",
    ),
    "early FINISH": Mistake(
        lambda words: (4, ISA.encode(Finish())), "FINISH is not the last instruction at"
    ),
    "far load": Mistake(_far, "outside the limits at instruction {at}"),
    "far store": Mistake(_far_store, "outside the limits at instruction {at}"),
    "past the end": Mistake(_past_the_end, "at instruction {at}"),
    "index": Mistake(_index, "at instruction {at}"),
    "left token": Mistake(_spare_push, "dependency tokens left at FINISH at instruction"),
    "lost token": Mistake(
        _lost_push, "deadlock: compute waits for load at instruction {last_pop}; store waits for"
    ),
}
