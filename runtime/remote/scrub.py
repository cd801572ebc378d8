"""A program that fills the core's memories with zeros, for between two clients.

A core keeps what is in its memories from one program to the next, where the next could store it.
"""

import numpy as np
import numpy.typing as npt

from vitral.config import INSN_BYTES, CoreConfig
from vitral.isa import Finish, InstructionSet, Load, Memory
from vitral.program import PAGE, Launch

__all__ = ["SCRUB_BYTES", "scrub_image", "scrub_launch"]

SCRUB_BYTES = 2 * PAGE
"""A page of zeros, and a page for the program."""

_MEMORIES = (Memory.UOP, Memory.WGT, Memory.INP, Memory.ACC, Memory.PARAM)


def scrub_image(config: CoreConfig) -> npt.NDArray[np.uint8]:
    """What the program needs in device memory: uint8 (SCRUB_BYTES,)."""
    isa = InstructionSet.of(config)
    words = [isa.encode(insn) for insn in (*_loads(config), Finish())]
    program = b"".join(word.to_bytes(INSN_BYTES, "little") for word in words)
    image = np.zeros(SCRUB_BYTES, np.uint8)
    image[PAGE : PAGE + len(program)] = np.frombuffer(program, np.uint8)
    return image


def scrub_launch(address: int) -> Launch:
    """How to start it when its image lies at byte `address`."""
    return Launch(
        insn_base=address + PAGE,
        insn_count=len(_MEMORIES) + 1,
        bases=dict.fromkeys(Memory, address),
        limit_low=address,
        limit_high=address + SCRUB_BYTES,
    )


def _loads(config: CoreConfig) -> list[Load]:
    """Every memory in rows of one page, each row the same zeros."""
    layout = config.layout
    sizes = {
        Memory.UOP: (layout.uop_depth, layout.uop_bytes),
        Memory.WGT: (layout.wgt_depth, layout.wgt_bytes),
        Memory.INP: (layout.inp_depth, layout.inp_bytes),
        Memory.ACC: (layout.acc_depth, layout.acc_bytes),
        Memory.PARAM: (layout.param_depth, layout.param_bytes),
    }
    rows = {memory: min(depth, PAGE // size) for memory, (depth, size) in sizes.items()}
    return [
        Load(
            memory=memory,
            y_size=sizes[memory][0] // rows[memory],
            x_size=rows[memory],
            x_stride=0,
        )
        for memory in _MEMORIES
    ]
