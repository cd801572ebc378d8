"""Errors, tokens and deadlocks: the status a program ends with."""

from typing import Any

import numpy as np
import pytest
from engines import ENGINES, EVERY, engine
from programs import assembled
from programs.assembled import DATA, OUT
from vta_table import word_of

from vitral.assembly import assemble
from vitral.config import CoreConfig
from vitral.isa import Cause, InstructionSet, Memory, Opcode, Profile, Stage, Uop
from vitral.program import OnChip, Outcome, Wait, WaitReason

CONFIG = CoreConfig()
ISA = InstructionSet.of(CONFIG)
FINISH = word_of("FINISH")
NOP_LOAD = "LOAD INP"
NOP_COMPUTE = "LOAD UOP"
NOP_STORE = "STORE OUT"


def run(name: str, program: str | list[int], config: CoreConfig = CONFIG, **launch: Any) -> Outcome:
    onchip = OnChip.random(config, np.random.default_rng(2))
    onchip.uop[:2] = [ISA.encode_uop(Uop(2047, 2047, 1023)), ISA.encode_uop(Uop(0, 0, 0))]
    case = assembled(program, config=config, **launch)
    return engine(name, config).run(case.launch, case.dram, onchip=onchip)


def word(text: str, **fields: int) -> int:
    """A word of the table, or a line's, with fields overwritten that the assembler would refuse."""
    (value,) = assemble(text, ISA)
    fmt = ISA.format_of(Opcode(value & 7))
    for name, number in fields.items():
        value = value & ~fmt[name].mask | fmt[name].insert(number, text)
    return value


ONE_INP = "LOAD INP y=1 x=1 stride=1"
ONE_STORE = "STORE OUT y=1 x=1 stride=1"
ONE_GEMM = "GEMM uop=1:2 iter=1,1 dst=0,0 src=0,0 wgt=0,0"
ONE_ALU = "ALU ADD uop=1:2 iter=1,1 dst=0,0 src=0,0"

FAULTS: list[tuple[str, list[int], Cause]] = [
    ("opcode 7", [7, FINISH], Cause.UNDEFINED_OPCODE),
    ("memory 7", [word(ONE_INP, memory=7), FINISH], Cause.UNDEFINED_FIELD),
    ("load of OUT", [word(ONE_INP, memory=4), FINISH], Cause.UNDEFINED_FIELD),
    ("pad register of UOP", [word("LOAD UOP", pad_value=1), FINISH], Cause.UNDEFINED_FIELD),
    ("store of INP", [word(ONE_STORE, memory=2), FINISH], Cause.UNDEFINED_FIELD),
    ("requantised int32", [word("STORE ACC", requant=1), FINISH], Cause.UNDEFINED_FIELD),
    ("advance 3", [word(ONE_STORE, requant=1, advance=3), FINISH], Cause.UNDEFINED_FIELD),
    ("ALU operation 5", [word(ONE_ALU, alu_opcode=5), FINISH], Cause.UNDEFINED_FIELD),
    ("register 9", [word("CONFIG INP_PAD value=1", register=9), FINISH], Cause.UNDEFINED_FIELD),
    ("window register", [word("CONFIG WINDOW value=0", value=1 << 16), FINISH],
     Cause.UNDEFINED_FIELD),
    ("negative window register", [word("CONFIG WINDOW value=0", value=-1), FINISH],
     Cause.UNDEFINED_FIELD),
    ("spare bit", [FINISH | 1 << 90, FINISH], Cause.RESERVED_BITS),
    ("token flag of load", [word(ONE_INP, pop_prev=1), FINISH], Cause.RESERVED_BITS),
    ("token flag of store", [word(ONE_STORE, push_next=1), FINISH], Cause.RESERVED_BITS),
    ("ALU bit 7", [word(ONE_ALU) | 1 << 7, FINISH], Cause.RESERVED_BITS),
    ("load past INP", [word(ONE_INP, sram_base=2048), FINISH], Cause.SRAM_BOUNDS),
    ("pads past INP", [word(ONE_INP, sram_base=2047, x_pad_1=1), FINISH], Cause.SRAM_BOUNDS),
    ("load past PARAM", [word("LOAD PARAM y=1 x=1", sram_base=128), FINISH], Cause.SRAM_BOUNDS),
    ("store past ACC", [word(ONE_STORE, sram_base=2047, x_size=2), FINISH], Cause.SRAM_BOUNDS),
    ("far load", [word(ONE_INP, dram_base=0xFFFFFFFF), FINISH], Cause.DRAM_BOUNDS),
    ("far store", [word(ONE_STORE, dram_base=0xFFFFFFFF), FINISH], Cause.DRAM_BOUNDS),
    ("load outside memory", [word(ONE_INP, dram_base=0xC00), FINISH], Cause.BUS_READ),
    ("store outside memory", [word(ONE_STORE, dram_base=0x800), FINISH], Cause.BUS_WRITE),
    ("second row outside", [word(ONE_INP, y_size=2, x_stride=0xC00), FINISH], Cause.BUS_READ),
    ("dst", [word(ONE_GEMM, uop_bgn=0, dst_factor_in=1, iter_in=2), FINISH], Cause.INDEX_OVERFLOW),
    ("src", [word(ONE_GEMM, uop_bgn=0, src_factor_out=1, iter_out=2), FINISH],
     Cause.INDEX_OVERFLOW),
    ("wgt", [word(ONE_GEMM, uop_bgn=0, wgt_factor_in=1, iter_in=2), FINISH], Cause.INDEX_OVERFLOW),
    ("micro-op", [word(ONE_GEMM, uop_bgn=8191, uop_end=8193), FINISH], Cause.INDEX_OVERFLOW),
    ("ALU src", [word(ONE_ALU, iter_in=2, src_factor_in=2047, iter_out=2, src_factor_out=1),
                 FINISH], Cause.INDEX_OVERFLOW),
    ("parameter", [word(ONE_STORE, requant=1, param_base=128), FINISH], Cause.PARAM_BOUNDS),
    ("last parameter", [word(ONE_STORE, requant=1, param_base=127, x_size=2, advance=2), FINISH],
     Cause.PARAM_BOUNDS),
]  # fmt: skip


@pytest.mark.parametrize(("what", "words", "cause"), FAULTS, ids=[row[0] for row in FAULTS])
@pytest.mark.parametrize("name", EVERY)
def test_fault(name: str, what: str, words: list[int], cause: Cause) -> None:
    nop = word(NOP_COMPUTE)
    outcome = run(name, [nop, *words])
    assert (outcome.cause, outcome.index) == (cause, 1), what


HARMLESS: list[tuple[str, list[int]]] = [
    ("reset looks at dst only", [word(ONE_GEMM, reset=1, uop_bgn=0, uop_end=2, iter_in=2,
                                      src_factor_in=1, wgt_factor_in=1), FINISH]),
    ("an immediate hides src", [word(ONE_ALU, use_imm=1, iter_in=2, iter_out=2,
                                     src_factor_in=2047, src_factor_out=2047), FINISH]),
    ("no micro-ops", [word(ONE_GEMM, uop_bgn=9000 % 8192, uop_end=0), FINISH]),
    ("zero outer iterations", [word(ONE_GEMM, uop_end=16383, iter_out=0), FINISH]),
    ("zero inner iterations", [word(ONE_ALU, uop_end=16383, iter_in=0), FINISH]),
    ("empty requantised store", [word(ONE_STORE, requant=1, param_base=999, y_size=0,
                                      sram_base=65535), FINISH]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "words"), HARMLESS, ids=[row[0] for row in HARMLESS])
@pytest.mark.parametrize("name", EVERY)
def test_harmless(name: str, what: str, words: list[int]) -> None:
    outcome = run(name, words)
    assert outcome.ok, f"{what}: {outcome.message}"


@pytest.mark.parametrize("name", EVERY)
def test_vta_ignores_what_it_does_not_know(name: str) -> None:
    words = [
        word(ONE_INP, pop_prev=1, push_prev=1) | 63 << 58,
        word(ONE_STORE, pop_next=1, push_next=1) | 0xFFFF << 112 | 63 << 58,
        word(ONE_ALU, dst_factor_in=0) | 1 << 7,
        word(ONE_GEMM) | 1 << 63,
        FINISH | 1 << 127,
    ]
    assert run(name, words, profile=Profile.VTA).ok
    assert run(name, [5, FINISH], profile=Profile.VTA).cause is Cause.UNDEFINED_OPCODE
    for bad in (word(ONE_STORE, memory=3), word("LOAD PARAM")):
        assert run(name, [bad, FINISH], profile=Profile.VTA).cause is Cause.UNDEFINED_FIELD


@pytest.mark.parametrize("name", EVERY)
def test_program_form(name: str) -> None:
    assert run(name, []).cause is Cause.EMPTY_PROGRAM
    assert run(name, [FINISH]).ok
    early = run(name, f"{NOP_LOAD}\nFINISH\n{NOP_LOAD}\nFINISH")
    assert (early.cause, early.index) == (Cause.FINISH_NOT_LAST, 1)
    none = run(name, f"{NOP_LOAD}\n{NOP_STORE}")
    assert (none.cause, none.index) == (Cause.NO_FINISH, 2)


@pytest.mark.parametrize("name", EVERY)
def test_tokens_left(name: str) -> None:
    for nop in (f"{NOP_LOAD} push_next", f"{NOP_COMPUTE} push_next", f"{NOP_STORE} push_prev"):
        outcome = run(name, f"{nop}\nFINISH")
        assert (outcome.cause, outcome.index) == (Cause.TOKENS_LEFT, 1)
    outcome = run(name, "FINISH push_prev")
    assert (outcome.cause, outcome.index) == (Cause.TOKENS_LEFT, 0)


@pytest.mark.parametrize("name", EVERY)
def test_tokens_do_not_survive_a_launch(name: str) -> None:
    assert run(name, f"{NOP_LOAD} push_next\nFINISH").cause is Cause.TOKENS_LEFT
    assert not run(name, f"{NOP_COMPUTE} pop_prev\nFINISH").ok


CHAIN = [
    f"{NOP_LOAD} push_next",
    f"{NOP_COMPUTE} pop_prev push_next",
    f"{NOP_STORE} pop_prev push_prev",
    "FINISH pop_next",
]
DEADLOCKS: list[tuple[str, str, list[Wait]]] = [
    ("no token from load", CHAIN[0].split(" push")[0], [
        Wait(Stage.COMPUTE, 1, WaitReason.POP_PREV), Wait(Stage.STORE, 2, WaitReason.POP_PREV)]),
    ("no token to store", f"{NOP_COMPUTE} pop_prev", [
        Wait(Stage.COMPUTE, 3, WaitReason.POP_NEXT), Wait(Stage.STORE, 2, WaitReason.POP_PREV)]),
    ("no token from store", f"{NOP_STORE} pop_prev", [
        Wait(Stage.COMPUTE, 3, WaitReason.POP_NEXT)]),
]  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_token_chain(name: str) -> None:
    assert run(name, "\n".join(CHAIN)).ok


@pytest.mark.parametrize(("what", "line", "waits"), DEADLOCKS, ids=[row[0] for row in DEADLOCKS])
@pytest.mark.parametrize("name", EVERY)
def test_deadlock(name: str, what: str, line: str, waits: list[Wait]) -> None:
    number = DEADLOCKS.index((what, line, waits))
    outcome = run(name, "\n".join([*CHAIN[:number], line, *CHAIN[number + 1 :]]))
    assert outcome.deadlocked
    assert list(outcome.waits) == waits
    assert outcome.message.startswith("deadlock: ")


@pytest.mark.parametrize("name", ENGINES)
def test_a_full_counter_stalls(name: str) -> None:
    config = CoreConfig(token_capacity=2)
    pushes = [f"{NOP_LOAD} push_next"] * 4
    pops = [f"{NOP_COMPUTE} pop_prev"] * 4
    assert run(name, "\n".join([*pushes, *pops, "FINISH"]), config).ok
    stuck = run(name, "\n".join([*pushes, *pops[:1], "FINISH"]), config)
    assert list(stuck.waits) == [
        Wait(Stage.LOAD, 3, WaitReason.PUSH_NEXT),
        Wait(Stage.COMPUTE, 5, WaitReason.DRAIN),
    ]


@pytest.mark.parametrize("name", ENGINES)
def test_a_full_queue_blocks_fetch(name: str) -> None:
    config = CoreConfig(queue_depth=2)
    waiting = [f"{NOP_COMPUTE} pop_prev"] * 2
    line = f"{NOP_LOAD} push_next"
    assert run(name, "\n".join([*waiting, line, line, "FINISH"]), config).ok
    stuck = run(name, "\n".join([*waiting, NOP_COMPUTE, line, line, "FINISH"]), config)
    assert list(stuck.waits) == [
        Wait(None, 2, WaitReason.QUEUE),
        Wait(Stage.COMPUTE, 0, WaitReason.POP_PREV),
    ]


@pytest.mark.parametrize("name", EVERY)
def test_limits_hold_for_every_byte(name: str) -> None:
    load, store = f"{ONE_INP}\nFINISH", f"{ONE_STORE}\nFINISH"
    assert run(name, load, limit_low=0, limit_high=DATA + 16).ok
    assert run(name, load, limit_high=DATA + 15).cause is Cause.DRAM_BOUNDS
    assert run(name, store, limit_high=OUT + 15).cause is Cause.DRAM_BOUNDS
    fetch = run(name, load, limit_low=0x10001)
    assert (fetch.cause, fetch.index) == (Cause.DRAM_BOUNDS, 0)
    second = run(name, load, limit_high=0x1001F)
    assert second.cause is Cause.DRAM_BOUNDS


@pytest.mark.parametrize("name", ENGINES)
def test_addresses_do_not_wrap(name: str) -> None:
    config = CoreConfig(addr_bits=64)
    high = {Memory.INP: 2**64 - 64}
    for base, cause in ((4, Cause.DRAM_BOUNDS), (3, Cause.BUS_READ), (5, Cause.DRAM_BOUNDS)):
        case = assembled(f"LOAD INP dram={base} y=1 x=1 stride=1\nFINISH", bases=high)
        outcome = engine(name, config).run(case.launch, case.dram)
        assert outcome.cause is cause, base
    case = assembled(f"{ONE_INP}\nFINISH", bases={Memory.INP: 2**32})
    assert engine(name, CONFIG).run(case.launch, case.dram).cause is Cause.DRAM_BOUNDS
    for count, cause in ((1, Cause.BUS_READ), (0, Cause.EMPTY_PROGRAM)):
        case = assembled([FINISH], insn_base=2**32 - 64, insn_count=count)
        assert engine(name, CONFIG).run(case.launch, case.dram).cause is cause
