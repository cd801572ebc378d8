"""Small modules written by hand: y = 2 * x, modulo 256, on the accelerator."""

from dataclasses import replace

import numpy as np

from vitral.config import CoreConfig
from vitral.isa import (
    Alu,
    AluOp,
    Finish,
    Instruction,
    InstructionSet,
    Load,
    Memory,
    Store,
    Uop,
)
from vitral.runtime.module import (
    ArenaTensor,
    CpuStep,
    Layer,
    Module,
    Segment,
    TensorInfo,
)
from vitral.runtime.packing import packed_bytes

__all__ = [
    "RESULT",
    "SOURCE",
    "double_instructions",
    "double_module",
    "image_of",
    "mixed_module",
]

Shape = tuple[int, int, int, int]
Pads = tuple[int, int, int, int]
UOPS, SOURCE, RESULT = 0x1000, 0x2000, 0x8000
ARENA = 0x10000


def double_module(
    config: CoreConfig | None = None,
    shape: Shape = (1, 16, 2, 3),
    pads: Pads = (0, 0, 0, 0),
    instructions: tuple[Instruction, ...] | None = None,
) -> Module:
    """A module of one program that doubles `x`; other `instructions` in its place when given."""
    core = config or CoreConfig()
    source = ArenaTensor(name="x", offset=SOURCE, shape=shape, pads=pads, pad_value=3)
    result = replace(source, name="y", offset=RESULT)
    count = packed_bytes(source, core) // core.layout.out_bytes
    program = instructions or double_instructions(core, count)
    layer = Layer(
        name="twice",
        op="double",
        macs=count,
        first=0,
        last=len(program) - 2,
        read_bytes=packed_bytes(source, core),
        write_bytes=packed_bytes(source, core),
    )
    segment = Segment(
        name="double",
        insn_offset=0,
        insn_count=len(program),
        inputs=(source,),
        outputs=(result,),
        layers=(layer,),
    )
    return Module(
        config=core,
        inputs=(TensorInfo(name="x", shape=shape, dtype="int8", scale=0.5, zero_point=3),),
        outputs=(TensorInfo(name="y", shape=shape, dtype="int8"),),
        steps=(segment,),
        arrays={},
        arena_bytes=ARENA,
        image={0: image_of(core, program), UOPS: micro_ops(core)},
        macs=count,
    )


def double_instructions(config: CoreConfig, count: int) -> tuple[Instruction, ...]:
    size = config.layout.out_bytes
    return (
        Load(memory=Memory.UOP, dram_base=UOPS // 4, y_size=1, x_size=1, x_stride=1),
        Load(
            memory=Memory.ACC_8BIT,
            dram_base=SOURCE // size,
            y_size=1,
            x_size=count,
            x_stride=count,
        ),
        Alu(
            alu_opcode=AluOp.ADD,
            uop_end=1,
            iter_out=1,
            iter_in=count,
            dst_factor_in=1,
            src_factor_in=1,
            push_next=True,
        ),
        Store(
            dram_base=RESULT // size,
            y_size=1,
            x_size=count,
            x_stride=count,
            pop_prev=True,
            push_prev=True,
        ),
        Finish(pop_next=True),
    )


def image_of(config: CoreConfig, program: tuple[Instruction, ...]) -> np.ndarray:
    isa = InstructionSet.of(config)
    words = b"".join(isa.encode(insn).to_bytes(16, "little") for insn in program)
    return np.frombuffer(words, np.uint8)


def micro_ops(config: CoreConfig) -> np.ndarray:
    word = InstructionSet.of(config).encode_uop(Uop(), alu=True)
    return np.frombuffer(word.to_bytes(4, "little"), np.uint8)


def mixed_module() -> Module:
    """The doubling program between two CPU steps with attributes and constants."""
    module = double_module()
    before = CpuStep(
        name="before",
        op="reshape",
        inputs=("x",),
        outputs=("x1",),
        attributes={"shape": (1, 16, 2, 3), "scale": 0.1, "nested": {"a": (1, 2)}, "flag": True},
        macs=7,
    )
    after = CpuStep(
        name="after",
        op="lookup",
        inputs=("y1",),
        outputs=("y",),
        constants=("table",),
        exact=False,
    )
    segment = module.segments[0]
    inner = replace(
        segment,
        inputs=(replace(segment.inputs[0], name="x1"),),
        outputs=(replace(segment.outputs[0], name="y1"),),
    )
    return replace(
        module,
        steps=(before, inner, after),
        arrays={
            "table": np.arange(256, dtype=np.int8),
            "other": np.array([[1.5], [2]], np.float32),
        },
        notices=("after runs on the CPU: it is a table",),
    )
