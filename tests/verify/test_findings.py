"""Each kind of mistake: found, and named with its instruction and numbers."""

import random
from dataclasses import replace

import numpy as np
import pytest
from engines import engine
from hand_made import RESULT, SOURCE, double_instructions, double_module, image_of
from races import BASE, INPUTS, OUTPUTS, SIZE, pipeline

from vitral.config import CoreConfig
from vitral.errors import VerifyError
from vitral.isa import (
    Cause,
    Config,
    ConfigRegister,
    Finish,
    Gemm,
    InstructionSet,
    Load,
    Memory,
    Opcode,
    Profile,
    Stage,
    Store,
    Window,
    window_value,
)
from vitral.program import Dram, Launch
from vitral.runtime.module import Module
from vitral.verify import Image, check_module, verify_module, verify_program

FIRST_TILE = 3  # LOAD INP, GEMM, ALU, STORE


@pytest.mark.parametrize(
    ("index", "fields", "text"),
    [
        (0, {"sram_base": 8190}, "LOAD UOP: UOP 8190..8193 ends past its 8192 elements"),
        (2, {"sram_base": 128}, "LOAD PARAM: PARAM 128 ends past its 128 elements"),
        (3, {"sram_base": 2045}, "LOAD INP: INP 2045..2048 ends past its 2048 elements"),
        (3, {"x_pad_1": 15, "sram_base": 2040}, "INP 2040..2058 ends past its 2048 elements"),
        (3, {"dram_base": 0xFFD}, "LOAD INP: DRAM bytes 0x13fd0..0x14010 are outside 0x4000..0x14"),
        (3, {"dram_base": 0xFFFFFFFF}, "DRAM bytes 0x1000003ff0..0x1000004030 are outside"),
        (4, {"dst_factor_in": 682}, "GEMM: dst reaches element 2046"),
        (4, {"dst_factor_in": 683}, "GEMM: dst reaches element 2049, the memory has 2048"),
        (4, {"wgt_factor_in": 512}, "GEMM: wgt reaches element 1536, the memory has 1024"),
        (4, {"uop_bgn": 8000, "uop_end": 8193}, "GEMM: UOP 8000..8192 ends past its 8192 elem"),
        (4, {"uop_end": 5}, "GEMM uses micro-op 4, never loaded"),
        (4, {"wgt_factor_in": 1}, "GEMM uses WGT element 1, which was never written"),
        (4, {"src_factor_in": 400}, "GEMM uses INP element 400, which was never written"),
        (4, {"overwrite": False}, "GEMM uses ACC element 0, which was never written"),
        (5, {"dst_factor_in": 2}, "ALU uses ACC element 4, which was never written"),
        (6, {"sram_base": 6}, "STORE OUT uses ACC element 8, which was never written"),
        (6, {"sram_base": 2046}, "STORE OUT: ACC 2046..2049 ends past its 2048 elements"),
        (6, {"param_base": 3}, "STORE OUT uses PARAM element 3, which was never written"),
        (6, {"param_base": 126, "advance": 2}, "PARAM 126..129 ends past its 128 elements"),
        (6, {"dram_base": 0}, "STORE OUT overwrites the program's own instructions"),
    ],
)
def test_a_wrong_field_is_named(index: int, fields: dict, text: str) -> None:
    program = pipeline(config=CoreConfig(addr_bits=40)).with_change(index, **fields)
    findings = [item for item in program.verify().findings if item.index == index]
    if text == "GEMM: dst reaches element 2046":  # the last legal one
        assert not any("reaches" in item.text for item in findings)
        return
    assert any(text in item.text for item in findings), findings


WINDOW_CASES = [
    (2, 1, {}, ""),  # tile 0 has INP and WGT elements 0..3 and 0
    (4, 1, {}, ""),
    (2, 3, {}, ""),
    (3, 3, {}, "WINDOW uses INP element 6, which was never written"),
    (2, 1, {"iter_in": 4, "src_factor_in": 1}, "uses INP element 4, which was never written"),
    (2, 1, {"iter_in": 3, "src_factor_in": 1}, ""),
    (2, 2047, {}, "WINDOW uses INP element 2047, which was never written"),
    (2, 2049, {}, "WINDOW: src reaches element 2049, the memory has 2048"),
    (4, 1, {"iter_in": 2, "src_factor_in": 2045}, "WINDOW: src reaches element 2048"),
    (1, 1, {"iter_in": 2, "wgt_factor_in": 1}, "WINDOW uses WGT element 1, which was never"),
    (1, 1, {"iter_in": 2, "wgt_factor_in": 1, "maximum": True}, ""),
    (1, 1, {"overwrite": False}, "WINDOW uses ACC element 0, which was never written"),
]


@pytest.mark.parametrize(("taps", "distance", "fields", "text"), WINDOW_CASES)
def test_windows_are_followed_tap_by_tap(taps: int, distance: int, fields: dict, text: str) -> None:
    stage, number = divmod(ConfigRegister.WINDOW, 128)
    config = Config(stage=Stage(stage), register=number, value=window_value(taps, distance))
    gemm = pipeline().instructions[FIRST_TILE + 1]
    tokens = {flag: getattr(gemm, flag) for flag in ("pop_prev", "pop_next", "push_prev")}
    base = {"uop_end": 1, "iter_out": 1, "iter_in": 1, "overwrite": True} | tokens
    window = Window(**(base | fields))
    program = pipeline(2)
    insns = [*program.instructions[: FIRST_TILE + 1], config, window, Finish()]
    changed = replace(program, instructions=tuple(insns))
    found = [item.text for item in changed.verify().findings if "WINDOW" in item.text]
    assert [text in item for item in found] == ([True] if text else []), found


def test_a_window_races_with_the_load_of_its_last_tap() -> None:
    """The second tile's LOAD writes INP 4..7 while the first tile's instruction may read it."""
    program = pipeline(2)
    texts = []
    for taps in (1, 4):
        config = Config(stage=Stage.COMPUTE, register=1, value=window_value(taps, 1))
        gemm = program.instructions[FIRST_TILE + 1]
        fields = {name: getattr(gemm, name) for name in vars(gemm) if name != "reset"}
        insns = list(program.instructions)
        insns[FIRST_TILE + 1 : FIRST_TILE + 2] = [config, Window(**fields)]
        changed = replace(program, instructions=tuple(insns))
        report = changed.verify([(BASE, SIZE)])
        texts.append([item.text for item in report.findings if "no tokens" in item.text])
    assert texts[0] == []
    assert texts[1] == [
        "WINDOW reads INP 0..6, which instruction 8 (LOAD INP) writes, and no tokens order the two"
    ]


def test_windows_are_undefined_under_vta() -> None:
    word = InstructionSet.of(CoreConfig()).encode(Window()).to_bytes(16, "little")
    image = Image({0: np.frombuffer(word + bytes([Opcode.FINISH] + 15 * [0]), np.uint8)})
    for profile, ok in ((Profile.VTA, False), (Profile.VITRAL, True)):
        launch = Launch(insn_base=0, insn_count=2, profile=profile)
        report = verify_program(launch, CoreConfig(), image)
        assert report.ok is ok
    wrong = verify_program(Launch(insn_base=0, insn_count=2, profile=Profile.VTA), CoreConfig(),
                           image)  # fmt: skip
    assert str(wrong.findings[0]) == "instruction 0: undefined opcode 6"


def test_data_that_nothing_wrote_is_named() -> None:
    rest = (INPUTS + BASE, SIZE - INPUTS)
    assert pipeline().verify([rest]).ok
    report = pipeline().verify([(BASE + INPUTS + 0x40, SIZE - INPUTS - 0x40)])
    assert str(report.findings[0]) == (
        "instruction 3: LOAD INP reads DRAM byte 0x6000, which nothing wrote"
    )
    # what the program stored itself counts
    no_outputs = pipeline().verify([(BASE + INPUTS, OUTPUTS - INPUTS)])
    assert no_outputs.ok


def test_traffic_of_a_program_is_reported() -> None:
    report = pipeline().verify()
    assert report.writes.size == 5 * 64
    assert report.writes.starts.tolist() == [BASE + OUTPUTS]
    insns, uops, inputs, weights = 25 * 16, 4 * 4, 4 * 64, 256
    assert report.insns * 16 == insns
    assert report.live_in.size == insns + uops + inputs + weights + 256


def test_deadlock_says_who_waits_where() -> None:
    report = pipeline().with_change(4, push_prev=False).verify()
    assert report.message == "program: deadlock: load waits for compute at instruction 15; " + (
        "compute waits for load at instruction 16; store waits for compute at instruction 18"
    )
    one = pipeline().with_change(24, pop_prev=True).verify()
    assert one.message == "program: deadlock: compute waits for load at instruction 24"


def test_tokens_left_are_counted() -> None:
    report = pipeline().with_change(24, pop_next=False).verify()
    assert report.message == (
        "program: instruction 24: dependency tokens left at FINISH: 1 store to compute"
    )


@pytest.mark.parametrize(
    ("word", "text"),
    [
        (7, "instruction 1: undefined opcode 7"),
        (7 << 7, "instruction 1: LOAD: undefined memory 7"),
        (1 << 100 | 3, "instruction 1: FINISH: reserved bit 100 is set"),
    ],
)
def test_encodings_are_checked(word: int, text: str) -> None:
    data = np.frombuffer(b"".join(w.to_bytes(16, "little") for w in (0, word, 3)), np.uint8)
    launch = Launch(insn_base=0, insn_count=3)
    report = verify_program(launch, CoreConfig(), Image({0: data}))
    assert text in [str(item) for item in report.findings]


def test_empty_and_missing_programs() -> None:
    image = Image({0: np.zeros(16, np.uint8)})
    empty = verify_program(Launch(insn_base=0, insn_count=0), CoreConfig(), image)
    assert empty.message == "program: empty program"
    missing = verify_program(Launch(insn_base=64, insn_count=1), CoreConfig(), image)
    assert missing.message == "program: no instructions at 0x40"
    far = verify_program(Launch(insn_base=1 << 63, insn_count=1), CoreConfig(), image)
    assert "no instructions" in far.message


def test_micro_ops_that_the_program_makes_are_not_trusted() -> None:
    program = pipeline().with_change(6, dram_base=0x100)  # over the micro-ops
    again = replace(program, instructions=(*program.instructions[:-1],))
    load = Load(memory=Memory.UOP, dram_base=0x400, y_size=1, x_size=1, x_stride=1)
    gemm = Gemm(reset=True, uop_end=1, iter_out=1, iter_in=1)
    last = replace(program.instructions[-1], pop_next=False)
    wait = replace(Load(memory=Memory.UOP), pop_next=True)
    changed = replace(again, instructions=(*again.instructions, wait, load, gemm, last))
    texts = [str(item) for item in changed.verify().findings]
    assert texts == [
        "instruction 26: GEMM uses micro-op 0, whose value is not known before the program runs"
    ]


@pytest.mark.parametrize("seed", range(40))
def test_tokens_and_queues_end_as_in_the_reference(seed: int) -> None:
    """Programs of nothing but tokens: same deadlocks, same tokens left."""
    rng = random.Random(seed)
    config = CoreConfig(queue_depth=rng.choice((2, 3, 8)), token_capacity=rng.choice((1, 2, 4)))
    nops = (Load(memory=Memory.INP), Load(memory=Memory.UOP), Store())
    flags = (("pop_next", "push_next"), ("pop_prev", "pop_next", "push_prev", "push_next"))
    flags = (*flags, ("pop_prev", "push_prev"))
    program = []
    for _ in range(rng.randrange(3, 24)):
        stage = rng.randrange(3)
        chosen = {flag: rng.random() < (0.2 if "pop" in flag else 0.3) for flag in flags[stage]}
        program.append(replace(nops[stage], **chosen))
    data = np.zeros(4096, np.uint8)
    isa = InstructionSet.of(config)
    words = [isa.encode(insn) for insn in (*program, Finish())]
    data[: 16 * len(words)] = image_of(config, (*program, Finish()))
    launch = Launch(insn_base=0, insn_count=len(words))
    outcome = engine("reference", config).run(launch, Dram(0, data))
    report = verify_program(launch, config, Image({0: data}))
    if outcome.waits:
        assert report.findings[0].text == outcome.message
    else:
        left = outcome.cause is Cause.TOKENS_LEFT
        assert [item.index for item in report.findings] == [len(program)] * left


def test_hand_made_modules_are_accepted() -> None:
    verify_module(double_module())
    verify_module(double_module(shape=(2, 17, 3, 2)))


def broken(index: int, **fields: object) -> Module:
    program = list(double_instructions(CoreConfig(), 6))
    program[index] = replace(program[index], **fields)  # pyright: ignore[reportArgumentType]
    return double_module(instructions=tuple(program))


def test_a_module_error_names_the_program() -> None:
    with pytest.raises(VerifyError, match="double: instruction 3: STORE OUT: DRAM bytes 0x100000"):
        verify_module(broken(3, dram_base=0x10000))


def test_an_output_that_is_not_stored_is_found() -> None:
    with pytest.raises(VerifyError, match="output y: nothing stores its row at 0x8000"):
        verify_module(broken(3, x_size=2))


def test_an_input_that_is_not_given_is_found() -> None:
    module = double_module()
    segment = replace(module.segments[0], inputs=())
    with pytest.raises(VerifyError, match="reads DRAM byte 0x2000, which nothing wrote"):
        verify_module(replace(module, steps=(segment,)))


def test_an_image_that_a_run_destroys_is_found() -> None:
    module = double_module()
    segment = replace(module.segments[0], inputs=())
    given = replace(
        module,
        steps=(segment,),
        image={**module.image, SOURCE: np.zeros(96, np.uint8)},
    )
    verify_module(given)  # a constant input
    program = list(double_instructions(CoreConfig(), 6))
    program[3] = replace(program[3], dram_base=SOURCE // 16)  # pyright: ignore
    in_place = replace(
        given,
        image={**given.image, 0: image_of(CoreConfig(), tuple(program))},
        steps=(replace(segment, outputs=(replace(segment.outputs[0], offset=SOURCE),)),),
    )
    with pytest.raises(VerifyError, match="a second run would differ"):
        verify_module(in_place)


def test_a_later_program_may_use_what_an_earlier_one_stored() -> None:
    module = double_module()
    first = module.segments[0]
    program = list(double_instructions(CoreConfig(), 6))
    program[1] = replace(program[1], dram_base=RESULT // 16)  # pyright: ignore
    program[3] = replace(program[3], dram_base=0xC00)  # pyright: ignore
    second = replace(
        first,
        name="again",
        insn_offset=0x400,
        inputs=(),
        outputs=(replace(first.outputs[0], offset=0xC000),),
    )
    image = {**module.image, 0x400: image_of(CoreConfig(), tuple(program))}
    both = replace(module, steps=(first, second), image=image)
    assert [report.ok for report in check_module(both)] == [True, True]
    alone = replace(both, steps=(second,))
    assert "which nothing wrote" in check_module(alone)[0].message


def test_configuration_registers_need_no_memory() -> None:
    program = pipeline()
    pad = Config(value=-3)
    shifted = replace(program, instructions=(pad, *program.instructions))
    assert shifted.verify().ok
