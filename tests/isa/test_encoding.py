"""Encoding and decoding: published words, every field at its edges, and the order of checks."""

import random
from dataclasses import fields, replace
from typing import Any

import pytest
from vta_table import UOPS, WORDS, word_of

from vitral.config import CoreConfig
from vitral.errors import IsaError
from vitral.isa import (
    Advance,
    Alu,
    AluOp,
    Cause,
    Config,
    DecodeError,
    Finish,
    Gemm,
    Instruction,
    InstructionSet,
    Load,
    Memory,
    Opcode,
    Profile,
    Rounding,
    Stage,
    Store,
    Uop,
    Window,
    queue_of,
    window_of,
    window_value,
)

ISA = InstructionSet.of(CoreConfig())
DEPS = {"pop_prev": True, "pop_next": True, "push_prev": True, "push_next": True}


def immediate(operation: AluOp, imm: int, *, push_next: bool = False) -> Alu:
    """The table's immediate ALU instruction."""
    return Alu(
        alu_opcode=operation,
        use_imm=True,
        imm=imm,
        uop_bgn=3,
        uop_end=4,
        iter_out=1,
        iter_in=64,
        dst_factor_in=1,
        src_factor_in=1,
        push_next=push_next,
    )


INSTRUCTIONS: tuple[Instruction, ...] = (
    Load(memory=Memory.INP, sram_base=0x10, dram_base=0x12345, y_size=4, x_size=8, x_stride=14,
         y_pad_0=1, x_pad_0=1, x_pad_1=1, pop_next=True, push_next=True),
    Load(memory=Memory.WGT, dram_base=0x100, y_size=1, x_size=9, x_stride=9, push_next=True),
    Load(memory=Memory.UOP, dram_base=0x4000, y_size=1, x_size=4, x_stride=4),
    Load(memory=Memory.ACC_8BIT, sram_base=7, dram_base=0xFFFFFFFF, y_size=1, x_size=1,
         x_stride=1),
    Store(sram_base=0x20, dram_base=0x800, y_size=2, x_size=8, x_stride=16, pop_prev=True,
          push_prev=True),
    Gemm(reset=True, uop_end=1, iter_out=8, iter_in=16, dst_factor_out=16, dst_factor_in=1),
    Gemm(uop_bgn=2, uop_end=11, iter_out=14, iter_in=14, dst_factor_out=14, dst_factor_in=1,
         src_factor_out=16, src_factor_in=1, wgt_factor_out=3, wgt_factor_in=5, **DEPS),
    Gemm(uop_bgn=8191, uop_end=8192, iter_out=16383, iter_in=16383, dst_factor_out=2047,
         dst_factor_in=2047, src_factor_out=2047, src_factor_in=2047, wgt_factor_out=1023,
         wgt_factor_in=1023),
    immediate(AluOp.SHR, 8),
    immediate(AluOp.SHR, -3),
    immediate(AluOp.MIN, 127),
    immediate(AluOp.MAX, 0, push_next=True),
    Alu(alu_opcode=AluOp.ADD, uop_bgn=5, uop_end=6, iter_out=2, iter_in=32, dst_factor_out=32,
        dst_factor_in=1, src_factor_out=32, src_factor_in=1),
    Finish(),
    Load(memory=Memory.INP, pop_next=True),
    Load(memory=Memory.UOP, push_prev=True, push_next=True),
    Store(push_prev=True),
)  # fmt: skip
"""The rows of the published table, in its order, as instructions."""


def test_the_table_is_complete() -> None:
    assert len(INSTRUCTIONS) == len(WORDS) == 17


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize(("insn", "text"), list(zip(INSTRUCTIONS, WORDS, strict=True)))
def test_published_words(insn: Instruction, text: str, profile: Profile) -> None:
    assert ISA.encode(insn, profile) == word_of(text)
    assert ISA.decode(word_of(text), profile) == insn


def test_published_micro_ops() -> None:
    for uop, word in zip((Uop(5, 9, 3), Uop(2047, 0, 1023)), UOPS.values(), strict=True):
        assert ISA.encode_uop(uop) == word
        assert ISA.decode_uop(word) == uop


def legal_instruction(rng: random.Random, isa: InstructionSet) -> Instruction:
    """Any Vitral instruction, each field at an edge or anywhere."""
    cls = rng.choice((Load, Store, Gemm, Alu, Finish, Config, Window))
    opcode = Opcode[cls.__name__.upper()]
    values: dict[str, Any] = {}
    for field in isa.format_of(opcode):
        if field.name != "opcode":
            low, high = field.range
            values[field.name] = rng.choice((low, high, 0, 1, rng.randint(low, high)))
    kinds: dict[str, Any] = {
        "alu_opcode": rng.choice(list(AluOp)),
        "rounding": rng.choice(list(Rounding)),
        "advance": rng.choice(list(Advance)),
        "stage": rng.choice((Stage.LOAD, Stage.COMPUTE)),
    }
    values.update({name: kind for name, kind in kinds.items() if name in values})
    for item in fields(cls):
        if item.type is bool or item.type == "bool":
            values[item.name] = bool(values[item.name])
    if cls is Load:
        values["memory"] = rng.choice([m for m in Memory if m is not Memory.OUT])
        values["pad_value"] &= values["memory"] not in (Memory.UOP, Memory.PARAM)
    if cls is Store:
        values["memory"] = rng.choice((Memory.OUT, Memory.ACC))
        values["requant"] &= values["memory"] is Memory.OUT
        if not values["requant"]:
            values.update(rounding=Rounding.HALF_EVEN, advance=Advance.NONE, param_base=0)
    if cls is Config:
        values["register"] = rng.randrange(2)
        if values["stage"] is Stage.COMPUTE and values["register"]:
            values["value"] = rng.getrandbits(16)
    insn = cls(**values)
    foreign = {Stage.LOAD: ("pop_prev", "push_prev"), Stage.STORE: ("pop_next", "push_next")}
    unused: dict[str, Any] = dict.fromkeys(foreign.get(queue_of(insn), ()), False)
    return replace(insn, **unused)


CONFIGS = {
    "default": CoreConfig(),
    "block32": CoreConfig(block=32, wgt_buffer=128 << 10),
    "small": CoreConfig(block=8, uop_buffer=4 << 10, inp_buffer=4 << 10, wgt_buffer=8 << 10,
                        acc_buffer=16 << 10),
    "batch2": CoreConfig(batch=2, acc_buffer=64 << 10),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_instructions_survive_encoding(name: str) -> None:
    isa = InstructionSet.of(CONFIGS[name])
    rng = random.Random(11)
    for _ in range(2000):
        insn = legal_instruction(rng, isa)
        assert isa.decode(isa.encode(insn)) == insn


@pytest.mark.parametrize("name", CONFIGS)
def test_words_survive_decoding(name: str) -> None:
    """A word that decodes in the Vitral profile is the encoding of what it decodes to."""
    isa = InstructionSet.of(CONFIGS[name])
    rng = random.Random(12)
    for _ in range(500):
        word = isa.encode(legal_instruction(rng, isa)) ^ 1 << rng.randrange(128)
        try:
            insn = isa.decode(word)
        except DecodeError:
            continue
        assert isa.encode(insn) == word


@pytest.mark.parametrize("name", CONFIGS)
def test_fields_out_of_range_are_refused_with_the_range(name: str) -> None:
    isa = InstructionSet.of(CONFIGS[name])
    for insn in (Load(memory=Memory.INP), Store(requant=True), Gemm(), Alu(use_imm=True)):
        opcode = Opcode[type(insn).__name__.upper()]
        for field in isa.format_of(opcode):
            if type(getattr(insn, field.name, None)) is not int:
                continue
            low, high = field.range
            for value in (low - 1, high + 1):
                with pytest.raises(IsaError, match=rf"{field.name} must be {low}\.\.{high}, got"):
                    isa.encode(replace(insn, **{field.name: value}))


def cause_of(word: int, profile: Profile = Profile.VITRAL) -> Cause:
    with pytest.raises(DecodeError) as caught:
        ISA.decode(word, profile)
    assert "\n" not in str(caught.value)
    return caught.value.cause


def test_checks_come_in_the_documented_order() -> None:
    spare = 1 << 62
    assert cause_of(7 | spare) is Cause.UNDEFINED_OPCODE
    undefined = ISA.load["memory"].insert(7, "LOAD")
    assert cause_of(undefined | 1 << 63) is Cause.UNDEFINED_FIELD
    assert cause_of(Opcode.FINISH | spare) is Cause.RESERVED_BITS


def test_the_vta_profile_ignores_all_other_bits() -> None:
    rng = random.Random(13)
    for text in WORDS:
        insn = ISA.decode(word_of(text), Profile.VTA)
        fmt = ISA.format_of(Opcode(word_of(text) & 7))
        noise = rng.getrandbits(128) & ~fmt.used_mask(Profile.VTA)
        assert ISA.decode(word_of(text) | noise, Profile.VTA) == insn


def test_vitral_instructions_are_refused_in_the_vta_profile() -> None:
    for insn in (
        Gemm(overwrite=True),
        Load(memory=Memory.ACC, pad_value=True),
        Load(memory=Memory.PARAM),
        Store(memory=Memory.ACC),
        Store(requant=True),
        Config(stage=Stage.LOAD),
        Window(),
    ):
        ISA.encode(insn, Profile.VITRAL)
        with pytest.raises(IsaError):
            ISA.encode(insn, Profile.VTA)


WINDOWS = (
    (Window(), 0x0000000000000006, 0),
    (Window(maximum=True, pop_prev=True, push_next=True), 0x00000000000000CE, 0),
    (Window(overwrite=True), 0x8000000000000006, 0),
    (Window(overwrite=True, uop_bgn=2, uop_end=5, iter_out=14, iter_in=7),
     0x800E_0070_00A0_0206, 0),
    (Window(dst_factor_out=1, dst_factor_in=3, src_factor_out=16, src_factor_in=1,
            wgt_factor_out=3, wgt_factor_in=5), 0x6, 0x0140_3002_0400_1801),
)  # fmt: skip
"""Words written down by hand from the field table of docs/isa.md."""


@pytest.mark.parametrize(("insn", "low", "high"), WINDOWS)
def test_window_words(insn: Window, low: int, high: int) -> None:
    assert f"{ISA.encode(insn):#034x}" == f"{high << 64 | low:#034x}"
    assert ISA.decode(high << 64 | low) == insn


@pytest.mark.parametrize("name", CONFIGS)
def test_window_has_the_layout_of_gemm(name: str) -> None:
    isa = InstructionSet.of(CONFIGS[name])
    names = {"reset": "maximum"}
    for field in isa.gemm:
        twin = isa.window[names.get(field.name, field.name)]
        assert (twin.low, twin.width, twin.signed) == (field.low, field.width, field.signed)


def test_window_is_undefined_under_vta() -> None:
    assert cause_of(ISA.encode(Window()), Profile.VTA) is Cause.UNDEFINED_OPCODE


@pytest.mark.parametrize(
    ("taps", "distance", "value"),
    [(1, 1, 0), (3, 1, 2), (4, 3, 0b111), (2, 113, 0b11100001), (4, 32767, 0xFFFF)],
)
def test_window_register_values(taps: int, distance: int, value: int) -> None:
    assert window_value(taps, distance) == value
    assert window_of(value) == (taps, distance)


@pytest.mark.parametrize(("taps", "distance"), [(0, 1), (5, 1), (1, 2), (1, 32769), (1, -1)])
def test_window_register_limits(taps: int, distance: int) -> None:
    with pytest.raises(IsaError, match="WINDOW: "):
        window_value(taps, distance)


@pytest.mark.parametrize("value", [1 << 16, 1 << 30, -1, -(1 << 31)])
def test_other_bits_of_the_window_register_are_an_undefined_field(value: int) -> None:
    word = ISA.encode(Config(stage=Stage.COMPUTE, register=0, value=value))
    assert cause_of(word | ISA.configure["register"].insert(1, "CONFIG")) is Cause.UNDEFINED_FIELD
