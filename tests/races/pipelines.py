"""A double-buffered pipeline of loads, products and stores, small enough to take apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vitral.assembly import assemble, assemble_uops
from vitral.config import CoreConfig
from vitral.isa import Instruction, InstructionSet, Memory
from vitral.program import Dram, Launch
from vitral.verify import Image, Report, verify_program

__all__ = ["Program", "pipeline"]

BASE = 0x4000
SIZE = 0x10000
UOPS, INPUTS, OUTPUTS = 0x1000, 0x2000, 0xC000

_START = """
LOAD UOP sram=0 dram=0x400 y=1 x=4 stride=4
LOAD WGT sram=0 dram=0x40 y=1 x=1 stride=1
LOAD PARAM sram=0 dram=0x60 y=1 x=1 stride=1
"""
_TILE = """
LOAD INP sram={sram} dram={source:#x} y=1 x=4 stride=4 {inp_free} push_next
GEMM overwrite uop={half}:{half_end} iter=1,4 dst=0,1 src=0,1 wgt=0,0 {acc_free} pop_prev {inp_done}
ALU ADD imm=1 uop={alu}:{alu_end} iter=1,4 dst=0,1 src=0,1 push_next
STORE OUT requant sram={sram} dram={target:#x} y=1 x=4 stride=4 pop_prev push_prev
"""
_AGAIN = """
LOAD UOP sram=0 dram=0 y=0 x=0 stride=0 pop_next
LOAD UOP sram=0 dram=0 y=0 x=0 stride=0 pop_next push_prev
LOAD INP sram=0 dram={source:#x} y=1 x=4 stride=4 pop_next push_next
GEMM overwrite uop=0:1 iter=1,4 dst=0,1 src=0,1 wgt=0,0 pop_prev push_next
STORE OUT requant sram=0 dram={target:#x} y=1 x=4 stride=4 pop_prev push_prev
FINISH pop_next
"""


@dataclass(frozen=True)
class Program:
    """Instructions in a memory of known contents."""

    instructions: tuple[Instruction, ...]
    config: CoreConfig

    def with_change(self, index: int, **fields: object) -> "Program":
        program = list(self.instructions)
        program[index] = replace(program[index], **fields)  # pyright: ignore[reportArgumentType]
        return replace(self, instructions=tuple(program))

    def dram(self) -> Dram:
        isa = InstructionSet.of(self.config)
        dram = Dram(BASE, np.zeros(SIZE, np.uint8))
        dram.data[:] = np.random.default_rng(5).integers(0, 256, SIZE, np.uint8)
        for index, insn in enumerate(self.instructions):
            dram.write(BASE + 16 * index, isa.encode(insn).to_bytes(16, "little"))
        text = "UOP dst=0 src=0 wgt=0\nUOP dst=4 src=4 wgt=0\nALUOP dst=0 src=0\nALUOP dst=4 src=4"
        dram.write(BASE + UOPS, np.array(assemble_uops(text, isa), np.uint32))
        return dram

    @property
    def launch(self) -> Launch:
        return Launch(
            insn_base=BASE,
            insn_count=len(self.instructions),
            bases=dict.fromkeys(Memory, BASE),
            limit_low=BASE,
            limit_high=BASE + SIZE,
        )

    def verify(self, filled: Sequence[tuple[int, int]] | None = None) -> Report:
        """The verifier's report; only `filled` and the program hold something, when given."""
        data = self.dram().data
        if filled is None:
            return verify_program(self.launch, self.config, Image({BASE: data}))
        image = Image({BASE: data[:INPUTS]}, filled)
        return verify_program(self.launch, self.config, image)


def pipeline(tiles: int = 4, config: CoreConfig | None = None) -> Program:
    """Tile n uses half n % 2 of INP and ACC; an even number of them.

    Each tile is loaded, multiplied, incremented and stored. The last one's result is then loaded
    as input of one more product.
    """
    core = config or CoreConfig()
    text = _START + "".join(_tile(tile, tiles) for tile in range(tiles))
    text += _AGAIN.format(source=_row(OUTPUTS, tiles - 1), target=_row(OUTPUTS, tiles))
    isa = InstructionSet.of(core)
    return Program(tuple(isa.decode(word) for word in assemble(text, isa)), core)


def _row(area: int, tile: int) -> int:
    return area // 16 + 4 * tile


def _tile(tile: int, tiles: int) -> str:
    half = tile % 2
    return _TILE.format(
        sram=4 * half,
        source=_row(INPUTS, tile),
        target=_row(OUTPUTS, tile),
        half=half,
        half_end=half + 1,
        alu=2 + half,
        alu_end=3 + half,
        inp_free="pop_next" if tile >= 2 else "",
        acc_free="pop_next" if tile >= 2 else "",
        inp_done="push_prev" if tile < tiles - 2 else "",
    )
