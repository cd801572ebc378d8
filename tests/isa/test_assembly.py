"""The assembler and the disassembler are inverse to each other, and refuse what cannot be right."""

import random

import pytest
from vta_table import UOPS, WORDS, word_of

from vitral.assembly import assemble, assemble_uops, disassemble, disassemble_uop
from vitral.config import CoreConfig
from vitral.errors import IsaError
from vitral.isa import InstructionSet, Profile

ISA = InstructionSet.of(CoreConfig())
SMALL = CoreConfig(
    block=8, uop_buffer=4 << 10, inp_buffer=4 << 10, wgt_buffer=8 << 10, acc_buffer=16 << 10
)
BOTH = (Profile.VTA, Profile.VITRAL)


def random_words(seed: int, count: int) -> list[int]:
    """Words of which many decode: sparse and dense ones, each opcode."""
    rng = random.Random(seed)
    words = []
    for _ in range(count):
        word = rng.getrandbits(128)
        for _ in range(rng.choice((0, 0, 1, 2, 3))):
            word &= rng.getrandbits(128)
        words.append((word & ~7) | rng.randrange(8))
    return words


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("text", WORDS)
def test_golden_encodings_read_and_print_as_written(text: str, profile: Profile) -> None:
    assert assemble(text, ISA, profile) == [word_of(text)]
    assert disassemble(word_of(text), profile, ISA) == text


@pytest.mark.parametrize("text", UOPS)
def test_golden_micro_ops_read_and_print_as_written(text: str) -> None:
    assert assemble_uops(text, ISA) == [UOPS[text]]
    assert disassemble_uop(UOPS[text], ISA) == text


@pytest.mark.parametrize("config", [CoreConfig(), SMALL], ids=["default", "small"])
@pytest.mark.parametrize("profile", BOTH)
def test_every_word_round_trips(config: CoreConfig, profile: Profile) -> None:
    isa = InstructionSet.of(config)
    words = random_words(7, 3000) + [1 << bit for bit in range(128)]
    lines = [disassemble(word, profile, isa) for word in words]
    assert assemble("\n".join(lines), isa, profile) == words
    decoded = sum(not line.startswith(".word") for line in lines)
    assert decoded > 100, "the sample must exercise the text form, not only .word"


@pytest.mark.parametrize("alu", [False, True])
@pytest.mark.parametrize("config", [CoreConfig(), SMALL], ids=["default", "small"])
def test_every_micro_op_round_trips(config: CoreConfig, alu: bool) -> None:
    isa = InstructionSet.of(config)
    rng = random.Random(3)
    words = [rng.getrandbits(32) >> rng.choice((0, 8, 16)) for _ in range(500)]
    text = "\n".join(disassemble_uop(word, isa, alu=alu) for word in words)
    assert assemble_uops(text, isa) == words


VITRAL_LINES = [
    "GEMM overwrite uop=0:1 iter=1,1 dst=0,0 src=0,0 wgt=0,0",
    "STORE OUT requant sram=0 dram=0x0 y=2 x=8 stride=8 rounding=float32 advance=row param=5",
    "STORE ACC sram=0 dram=0x0 y=2 x=8 stride=8",
    "LOAD PARAM sram=0 dram=0x0 y=1 x=2 stride=2",
    "LOAD ACC pad_value sram=0 dram=0x0 y=1 x=2 stride=2 pad=0,0,15,0",
    "CONFIG ACC_PAD value=-2147483648 pop_prev",
    "CONFIG WINDOW value=65535",
    "WINDOW uop=3:5 iter=7,9 dst=1,2 src=3,4 wgt=5,6 pop_prev pop_next push_prev push_next",
    "WINDOW maximum overwrite uop=0:1 iter=1,1 dst=0,0 src=0,0 wgt=0,0",
]


@pytest.mark.parametrize("text", VITRAL_LINES)
def test_vitral_forms_round_trip(text: str) -> None:
    (word,) = assemble(text, ISA, Profile.VITRAL)
    assert disassemble(word, Profile.VITRAL, ISA) == text


@pytest.mark.parametrize("text", VITRAL_LINES)
def test_the_vta_profile_refuses_vitral_forms(text: str) -> None:
    with pytest.raises(IsaError, match="line 1: "):
        assemble(text, ISA, Profile.VTA)


def test_case_comments_blank_lines_and_hexadecimal() -> None:
    text = "\n# all of it\n  alu shr IMM=0x8 UOP=3:4 iter=1,0x40 dst=0,1 src=0,1  # shift\n\nfinish"
    assert assemble(text, ISA) == [
        word_of("ALU SHR imm=8 uop=3:4 iter=1,64 dst=0,1 src=0,1"),
        word_of("FINISH"),
    ]


def test_ignored_bits_print_as_word_with_their_meaning() -> None:
    word = word_of("FINISH") | 1 << 100
    line = disassemble(word, Profile.VTA, ISA)
    assert line.startswith(f".word 0x{word:032x}  # FINISH; ignored bits")
    assert "reserved bit 100" in disassemble(word, Profile.VITRAL, ISA)


REFUSED = [
    ("ALU SHR imm=32 uop=0:1", "imm must be -31..31, got 32"),
    ("ALU SHR imm=-32 uop=0:1", "imm must be -31..31, got -32"),
    ("ALU ADD imm=65536 uop=0:1", "imm must be -32768..32767, got 65536"),
    ("ALU ADD imm=-32769 uop=0:1", "imm must be -32768..32767, got -32769"),
    ("LOAD INP sram=2047 y=1 x=2", "sram range ends at 2049, the memory has 2048"),
    ("LOAD UOP sram=8192 y=1 x=1", "sram range ends at 8193, the memory has 8192"),
    ("LOAD WGT sram=1000 y=1 x=1 pad=15,0,15,0", "sram range ends at 1256"),
    ("LOAD INP y=1 x=1 pad=16,0,0,0", "y_pad_0 must be 0..15, got 16"),
    ("LOAD INP y=1 x=1 pad=0,0,0,18", "x_pad_1 must be 0..15, got 18"),
    ("STORE OUT sram=2040 y=3 x=3", "sram range ends at 2049"),
    ("STORE OUT y=2 x=2 requant advance=element param=125", "param range ends at 129"),
    ("GEMM uop=8000:8193 iter=1,1", "uop range ends at 8193"),
    ("WINDOW uop=8000:8193 iter=1,1", "uop range ends at 8193"),
    ("WINDOW reset uop=0:1", "unknown operand 'reset'"),
    ("CONFIG WINDOW value=65536", "WINDOW must be 0..65535, got 65536"),
    ("GEMM iter=16384,1", "iter_out must be 0..16383, got 16384"),
    ("GEMM uop=3", "uop needs 2 value"),
    ("LOAD INP sram=1 sram=2", "sram is given twice"),
    ("LOAD INP size=1", "unknown operand 'size=1'"),
    ("LOAD", "LOAD needs one of UOP"),
    ("LOAD CACHE", "'CACHE' is not one of uop"),
    ("LOAD OUT x=1", "OUT cannot be loaded"),
    ("STORE INP", "INP cannot be stored"),
    ("JUMP 3", "unknown instruction 'JUMP'"),
    ("LOAD INP x=ten", "'ten' is not a number"),
    (".word 0x1ffffffffffffffffffffffffffffffff", "must be a number of 128 bits"),
    ("FINISH pop_prev=1", "unknown operand"),
    ("STORE OUT rounding=half_up", "reserved bit"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_refusals_name_line_and_numbers(text: str, reason: str) -> None:
    with pytest.raises(IsaError) as caught:
        assemble(f"FINISH\n{text}", ISA)
    assert reason in str(caught.value)
    assert str(caught.value).startswith("line 2: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "LOAD INP sram=2047 y=1 x=1",
        "LOAD UOP sram=8191 y=1 x=1",
        "LOAD WGT sram=0 y=32 x=2 pad=0,0,15,15",
        "LOAD ACC_8BIT sram=2047 y=1 x=1",
        "LOAD INP sram=65535 y=0 x=9",
        "STORE OUT sram=2047 y=1 x=1",
        "STORE OUT y=1 x=1 requant param=127",
        "GEMM uop=8191:8192 iter=1,1",
        "ALU SHR imm=31 uop=0:1",
        "ALU MIN imm=-32768 uop=0:1",
    ],
)
def test_the_last_legal_value_is_accepted(text: str) -> None:
    (word,) = assemble(text, ISA)
    assert assemble(disassemble(word, Profile.VITRAL, ISA), ISA) == [word]
