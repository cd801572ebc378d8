"""The vocabulary of the instruction set: opcodes, memories, causes and instructions as data.

`vitral.isa` has the encodings and exports all of this; import from there.
"""

from dataclasses import dataclass
from enum import IntEnum

from vitral.errors import IsaError

__all__ = [
    "Advance",
    "Alu",
    "AluOp",
    "Cause",
    "Config",
    "ConfigRegister",
    "DecodeError",
    "Finish",
    "Gemm",
    "Instruction",
    "Load",
    "Memory",
    "Opcode",
    "Profile",
    "Rounding",
    "Stage",
    "Store",
    "Uop",
    "Window",
    "queue_of",
]


class Opcode(IntEnum):
    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4
    CONFIG = 5
    WINDOW = 6


class Memory(IntEnum):
    """Memory ids; the base-address registers are numbered alike."""

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC_8BIT = 5
    PARAM = 6


class AluOp(IntEnum):
    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


class Stage(IntEnum):
    LOAD = 0
    COMPUTE = 1
    STORE = 2


class ConfigRegister(IntEnum):
    """Registers a CONFIG instruction can write, as stage * 128 + number. All are 0 at launch."""

    INP_PAD = Stage.LOAD * 128 + 0
    WGT_PAD = Stage.LOAD * 128 + 1
    ACC_PAD = Stage.COMPUTE * 128 + 0
    WINDOW = Stage.COMPUTE * 128 + 1


class Rounding(IntEnum):
    """How a requantising STORE rounds; `vitral.sim.reference.requantize` is the definition."""

    HALF_EVEN = 0
    HALF_UP = 1
    DOUBLE = 2
    FLOAT32 = 3


class Advance(IntEnum):
    """When a requantising STORE moves on to the next parameter entry."""

    NONE = 0
    ROW = 1
    ELEMENT = 2


class Profile(IntEnum):
    VTA = 0
    VITRAL = 1


class Cause(IntEnum):
    """Error status. The texts of `Cause.text` say what happened in a few words."""

    NONE = 0
    UNDEFINED_OPCODE = 1
    UNDEFINED_FIELD = 2
    RESERVED_BITS = 3
    SRAM_BOUNDS = 4
    DRAM_BOUNDS = 5
    INDEX_OVERFLOW = 6
    PARAM_BOUNDS = 7
    BUS_READ = 8
    BUS_WRITE = 9
    TOKENS_LEFT = 10
    NO_FINISH = 11
    FINISH_NOT_LAST = 12
    EMPTY_PROGRAM = 13
    BUS_HUNG = 14

    @property
    def text(self) -> str:
        return _CAUSE_TEXT[self]


_CAUSE_TEXT = {
    Cause.NONE: "no error",
    Cause.UNDEFINED_OPCODE: "undefined opcode",
    Cause.UNDEFINED_FIELD: "undefined memory, ALU operation, rounding or register",
    Cause.RESERVED_BITS: "reserved bits set",
    Cause.SRAM_BOUNDS: "on-chip memory range out of bounds",
    Cause.DRAM_BOUNDS: "DRAM address outside the limits",
    Cause.INDEX_OVERFLOW: "micro-op or element index out of bounds",
    Cause.PARAM_BOUNDS: "parameter index out of bounds",
    Cause.BUS_READ: "bus error on a read",
    Cause.BUS_WRITE: "bus error on a write",
    Cause.TOKENS_LEFT: "dependency tokens left at FINISH",
    Cause.NO_FINISH: "program ends without FINISH",
    Cause.FINISH_NOT_LAST: "FINISH is not the last instruction",
    Cause.EMPTY_PROGRAM: "empty program",
    Cause.BUS_HUNG: "memory bus does not answer",
}


class DecodeError(IsaError):
    """A word that is no instruction; `cause` is the status the core reports for it."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause = cause


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """Flags common to all: tokens popped before and pushed after, from or to the neighbours."""

    pop_prev: bool = False
    pop_next: bool = False
    push_prev: bool = False
    push_next: bool = False


@dataclass(frozen=True, kw_only=True)
class Load(Instruction):
    """2-D copy from DRAM to an on-chip memory, padded on four sides. Sizes in elements.

    Writes ``(y_pad_0 + y_size + y_pad_1) * (x_pad_0 + x_size + x_pad_1)`` elements from
    `sram_base` on. `x_size` or `y_size` 0 is a NOP that moves tokens. `pad_value` selects the
    pad register of that memory instead of 0.
    """

    memory: Memory
    sram_base: int = 0
    dram_base: int = 0
    y_size: int = 0
    x_size: int = 0
    x_stride: int = 0
    y_pad_0: int = 0
    y_pad_1: int = 0
    x_pad_0: int = 0
    x_pad_1: int = 0
    pad_value: bool = False


@dataclass(frozen=True, kw_only=True)
class Store(Instruction):
    """2-D copy from ACC to DRAM: low 8 bits (OUT), requantised to 8 bits (OUT), or int32 (ACC)."""

    memory: Memory = Memory.OUT
    sram_base: int = 0
    dram_base: int = 0
    y_size: int = 0
    x_size: int = 0
    x_stride: int = 0
    requant: bool = False
    rounding: Rounding = Rounding.HALF_EVEN
    advance: Advance = Advance.NONE
    param_base: int = 0


@dataclass(frozen=True, kw_only=True)
class Gemm(Instruction):
    """``acc[dst] += inp[src] . wgt[wgt]^T`` over two loops and a range of micro-ops.

    `reset` writes 0 instead; `overwrite` writes the product instead of adding it (`reset` wins).
    """

    reset: bool = False
    uop_bgn: int = 0
    uop_end: int = 0
    iter_out: int = 0
    iter_in: int = 0
    dst_factor_out: int = 0
    dst_factor_in: int = 0
    src_factor_out: int = 0
    src_factor_in: int = 0
    wgt_factor_out: int = 0
    wgt_factor_in: int = 0
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True)
class Window(Instruction):
    """``acc[dst] += sum over taps of inp[src + tap * distance] * row tap of wgt[wgt]``, lane-wise.

    Lane l of a sum takes lane l of inputs and weights only. `maximum` takes the largest input
    instead of the sum of products and looks at no weights; `overwrite` writes the result instead
    of combining it with acc[dst]. Taps and distance come from ConfigRegister.WINDOW.
    """

    maximum: bool = False
    uop_bgn: int = 0
    uop_end: int = 0
    iter_out: int = 0
    iter_in: int = 0
    dst_factor_out: int = 0
    dst_factor_in: int = 0
    src_factor_out: int = 0
    src_factor_in: int = 0
    wgt_factor_out: int = 0
    wgt_factor_in: int = 0
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True)
class Alu(Instruction):
    """``acc[dst] = op(acc[dst], imm or acc[src])`` over two loops and a range of micro-ops."""

    uop_bgn: int = 0
    uop_end: int = 0
    iter_out: int = 0
    iter_in: int = 0
    dst_factor_out: int = 0
    dst_factor_in: int = 0
    src_factor_out: int = 0
    src_factor_in: int = 0
    alu_opcode: AluOp = AluOp.MIN
    use_imm: bool = False
    imm: int = 0


@dataclass(frozen=True, kw_only=True)
class Finish(Instruction):
    """Last instruction: waits until every stage is idle and every write acknowledged."""


@dataclass(frozen=True, kw_only=True)
class Config(Instruction):
    """Writes a 32-bit register of a stage, in that stage's queue."""

    stage: Stage = Stage.LOAD
    register: int = 0
    value: int = 0


@dataclass(frozen=True)
class Uop:
    """One micro-op: element indices, to which the loops add their factors. ALU has no `wgt`."""

    dst: int = 0
    src: int = 0
    wgt: int = 0


def queue_of(insn: Instruction) -> Stage:
    """The stage whose queue an instruction goes to."""
    match insn:
        case Load(memory=Memory.INP | Memory.WGT):
            return Stage.LOAD
        case Load(memory=Memory.PARAM) | Store():
            return Stage.STORE
        case Config(stage=stage):
            return stage
        case _:
            return Stage.COMPUTE
