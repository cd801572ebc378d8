"""A program written as text, placed in a small DRAM together with its data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.assembly import assemble
from vitral.config import CoreConfig
from vitral.isa import InstructionSet, Memory, Profile
from vitral.program import Dram, Launch

__all__ = ["DATA", "OUT", "Case", "assembled", "words_as_bytes"]

BASE = 0x10000
DATA = 0x14000
"""Where the data of a case starts."""
OUT = 0x18000
"""Where its results go: three pages, 0xA5 like everything that nobody wrote."""
SIZE = 0x10000


@dataclass
class Case:
    """Launch registers and memory of one program."""

    launch: Launch
    dram: Dram

    def out(self, size: int, kind: Any = np.int8) -> npt.NDArray[Any]:
        """The first `size` bytes of the results as elements of `kind`."""
        return self.dram.view(OUT, size).view(kind)


def words_as_bytes(words: list[int]) -> bytes:
    return b"".join(word.to_bytes(16, "little") for word in words)


def assembled(
    program: str | list[int],
    *,
    config: CoreConfig | None = None,
    profile: Profile = Profile.VITRAL,
    data: bytes | npt.NDArray[Any] = b"",
    **launch: Any,
) -> Case:
    """Place a program's instructions at the start and `data` at `DATA`.

    OUT's base register holds `OUT`, all others `DATA`. Further arguments go to `Launch`.
    """
    isa = InstructionSet.of(config or CoreConfig())
    words = assemble(program, isa, profile) if isinstance(program, str) else program
    dram = Dram.filled(BASE, SIZE, 0xA5)
    dram.write(BASE, words_as_bytes(words))
    dram.write(DATA, data)
    bases: Mapping[Memory, int] = dict.fromkeys(Memory, DATA) | {Memory.OUT: OUT}
    values = {"insn_base": BASE, "insn_count": len(words), "profile": profile, "bases": bases}
    return Case(Launch(**(values | launch)), dram)
