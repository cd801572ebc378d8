"""LOAD instructions as the engines take them."""

from vitral.compiler.cycles.bursts import transfer
from vitral.compiler.cycles.engine import Command
from vitral.compiler.cycles.padding import runs_of
from vitral.config import CoreConfig
from vitral.isa import Instruction, Load, Memory

__all__ = ["Commands", "is_empty"]


def is_empty(insn: Instruction) -> bool:
    """Whether a LOAD or STORE moves nothing but tokens."""
    return getattr(insn, "x_size", 0) == 0 or getattr(insn, "y_size", 0) == 0


class Commands:
    """Makes the commands of LOADs; `bases` are the byte addresses that DRAM counts from."""

    def __init__(self, config: CoreConfig, bases: dict[Memory, int]) -> None:
        layout = config.layout
        self._config = config
        self._bases = bases
        self._bytes = {
            Memory.UOP: layout.uop_bytes,
            Memory.WGT: layout.wgt_bytes,
            Memory.INP: layout.inp_bytes,
            Memory.ACC: layout.acc_bytes,
            Memory.OUT: layout.out_bytes,
            Memory.ACC_8BIT: layout.acc8_bytes,
            Memory.PARAM: layout.param_bytes,
        }

    def address(self, memory: Memory, element: int) -> int:
        """Byte address of a DRAM element."""
        return self._bases.get(memory, 0) + element * self._bytes[memory]

    def element_bytes(self, memory: Memory) -> int:
        return self._bytes[memory]

    def of(self, insn: Instruction) -> Command:
        """The command of an instruction that goes to an engine; of nothing if it is no LOAD."""
        if not isinstance(insn, Load) or is_empty(insn):
            return Command(None)
        size = self._bytes[insn.memory]
        width = insn.x_pad_0 + insn.x_size + insn.x_pad_1
        height = insn.y_pad_0 + insn.y_size + insn.y_pad_1
        moved = transfer(
            self.address(insn.memory, insn.dram_base),
            insn.x_size * size,
            insn.x_stride * size,
            insn.y_size,
            width == insn.x_size,
            self._config,
        )
        target = Memory.ACC if insn.memory is Memory.ACC_8BIT else insn.memory
        end = insn.sram_base + width * height
        return Command(moved, target, insn.sram_base, end, runs_of(insn))
