"""Programs that are right are accepted; whatever is taken from them is missed."""

from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest
from engines import engine
from programs import CONFIGS, generate
from races import Program, pipeline, races

from vitral.config import CoreConfig
from vitral.isa import Finish, Instruction, InstructionSet, Load, Memory, Store, queue_of
from vitral.program import ProgramFolder
from vitral.verify import Image, Report, check_folder, verify_program

GOLDEN = sorted(
    folder for folder in (Path(__file__).parents[1] / "data/golden").iterdir() if folder.is_dir()
)
FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
TINY_QUEUES = CoreConfig(queue_depth=2, token_capacity=1)
UNKNOWN_UOP = "whose value is not known before the program runs"


def collides(report: Report) -> bool:
    return any("no tokens order the two" in finding.text for finding in report.findings)


def has_races(program: Program) -> bool:
    found = races(program.instructions, program.launch, program.config, program.dram())
    return bool(found)


@pytest.mark.parametrize("folder", GOLDEN, ids=lambda path: path.name)
def test_golden_programs_are_accepted(folder: Path) -> None:
    report = check_folder(ProgramFolder.load(folder))
    assert report.message == f"{folder.name}: ok, {report.insns} instructions"


@pytest.mark.parametrize("config", [CoreConfig(), TINY_QUEUES], ids=["default", "tiny"])
def test_pipeline_is_accepted_and_runs(config: CoreConfig) -> None:
    program = pipeline(config=config)
    assert program.verify().ok
    dram = program.dram()
    assert engine("reference", config).run(program.launch, dram).ok


@pytest.mark.parametrize("name", CONFIGS)
def test_random_legal_programs_are_accepted(name: str) -> None:
    unknown = 0
    for seed in range(60):
        program = generate(seed, CONFIGS[name])
        image = Image({program.dram.base: program.dram.data})
        report = verify_program(program.launch, CONFIGS[name], image, onchip=program.onchip)
        texts = [finding.text for finding in report.findings if UNKNOWN_UOP not in finding.text]
        unknown += not report.ok
        assert not texts, f"seed {seed}: {texts[0]}\n{program.text}"
    assert unknown < 6, "nearly all micro-ops are known"


def test_every_missing_token_is_found() -> None:
    program = pipeline()
    count = 0
    for index, flag in product(range(len(program.instructions)), FLAGS):
        if getattr(program.instructions[index], flag):
            assert not program.with_change(index, **{flag: False}).verify().ok, (index, flag)
            count += 1
    assert count == 2 * len(pairs(program.instructions))


def pairs(instructions: tuple[Instruction, ...]) -> list[tuple[int, str, int, str]]:
    """Each push with the pop that takes its token."""
    pushes, pops = defaultdict(list), defaultdict(list)
    for index, insn in enumerate(instructions):
        stage = queue_of(insn)
        for name, step in (("prev", -1), ("next", 1)):
            if getattr(insn, f"push_{name}"):
                pushes[stage, stage + step].append((index, f"push_{name}"))
            if getattr(insn, f"pop_{name}"):
                pops[stage + step, stage].append((index, f"pop_{name}"))
    return [
        (*push, *pop)
        for channel in pushes
        for push, pop in zip(pushes[channel], pops[channel], strict=True)
    ]


def test_a_missing_pair_of_tokens_is_found_when_it_matters() -> None:
    """Without a push and its pop the balance is right, but the order may not be."""
    program = pipeline()
    verdicts = []
    for giver, push, taker, pop in pairs(program.instructions):
        changed = program.with_change(giver, **{push: False})
        changed = changed.with_change(taker, **{pop: False})
        report = changed.verify()
        assert collides(report) == has_races(changed), (giver, push, taker, pop)
        verdicts.append(report.ok)
    assert verdicts.count(False) >= 12
    assert verdicts.count(True) >= 1, "some order follows from other tokens"


def transfers(program: Program) -> list[int]:
    return [
        index
        for index, insn in enumerate(program.instructions)
        if isinstance(insn, Load | Store) and insn.x_size
    ]


def test_every_changed_address_is_judged_as_by_brute_force() -> None:
    program = pipeline()
    seen = {True: 0, False: 0}
    for index, where in product(transfers(program), (0, 2, 4, 6)):
        insn = program.instructions[index]
        if isinstance(insn, Load) and insn.memory in (Memory.UOP, Memory.WGT, Memory.PARAM):
            continue
        for fields in ({"sram_base": where}, {"dram_base": 0xC00 + 2 * where}):
            changed = program.with_change(index, **fields)
            bad = has_races(changed)
            assert collides(changed.verify()) == bad, (index, fields)
            seen[bad] += 1
    assert min(seen.values()) >= 20


def test_random_programs_without_a_pair_are_judged_as_by_brute_force() -> None:
    config = CONFIGS["block4"]
    isa = InstructionSet.of(config)
    seen = {True: 0, False: 0}
    for seed in range(25):
        program = generate(seed, config, length=10)
        instructions = tuple(isa.decode(word, program.launch.profile) for word in program.words)
        if any(isinstance(insn, Load) and insn.memory is Memory.UOP for insn in instructions):
            instructions = tuple(map(without_transfer, instructions))
        for giver, push, taker, pop in pairs(instructions)[:6]:
            changed = Program(instructions, config)
            changed = changed.with_change(giver, **{push: False})
            changed = changed.with_change(taker, **{pop: False})
            dram = program.dram.copy()
            for number, insn in enumerate(changed.instructions):
                word = isa.encode(insn, program.launch.profile)
                dram.write(program.launch.insn_base + 16 * number, word.to_bytes(16, "little"))
            bad = bool(
                races(changed.instructions, program.launch, config, dram, program.onchip.uop)
            )
            report = verify_program(
                program.launch, config, Image({dram.base: dram.data}), onchip=program.onchip
            )
            if any("reaches element" in finding.text for finding in report.findings):
                continue  # with other micro-ops than those it was made for, as none are loaded
            assert collides(report) == bad, f"seed {seed}: {report.message}\n{program.text}"
            seen[bad] += 1
    assert min(seen.values()) >= 10


def without_transfer(insn: Instruction) -> Instruction:
    """Micro-op loads made to move tokens only: the brute force knows the simplest form alone."""
    if isinstance(insn, Load) and insn.memory is Memory.UOP:
        return Load(memory=Memory.UOP, **{flag: getattr(insn, flag) for flag in FLAGS})
    return insn


def test_finish_is_last_and_there() -> None:
    program = pipeline()
    report = Program(program.instructions[:-1], program.config).verify()
    assert report.findings[0].text == "program ends without FINISH"
    twice = Program((*program.instructions, Finish()), program.config).verify()
    assert str(twice.findings[0]) == "instruction 24: FINISH is not the last instruction"
