"""What tsim records of a run is what the core itself counted, on every program."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from programs import assembled, generate
from programs.trials import LONG, memory_of

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.isa import Stage
from vitral.program import Outcome, ProgramFolder, WaitReason
from vitral.program.timeline import TRAFFIC_CYCLES, Timeline
from vitral.sim.rtl import RtlSimulator

GOLDEN = sorted(path.parent for path in Path("tests/data/golden").glob("*/instructions.bin"))
SEEDS = range(60)
KINDS = {
    "busy": (WaitReason.BUSY,),
    "idle": (WaitReason.IDLE,),
    "wait_prev": (WaitReason.POP_PREV,),
    "wait_next": (WaitReason.POP_NEXT,),
    "wait_push": (WaitReason.PUSH_PREV, WaitReason.PUSH_NEXT),
    "wait_memory": (WaitReason.MEMORY,),
}


@pytest.fixture(scope="module")
def core() -> Iterator[RtlSimulator]:
    with RtlSimulator(CoreConfig()) as opened:
        yield opened


def timeline_of(outcome: Outcome) -> Timeline:
    assert outcome.timeline is not None
    return outcome.timeline


def check(outcome: Outcome, name: str) -> None:
    """The core's counters add up, and the timeline says the same, without gaps."""
    timeline = timeline_of(outcome)
    assert timeline.cycles == outcome.cycles == outcome.counters["cycles"], name
    for stage in Stage:
        counted = {kind: outcome.counters[f"{stage.name.lower()}_{kind}"] for kind in KINDS}
        assert sum(counted.values()) == outcome.cycles, f"{name}: {stage.name}"
        seen = {kind: timeline.count(stage, *codes) for kind, codes in KINDS.items()}
        assert seen == counted, f"{name}: {stage.name}"
        spans = timeline.spans[stage]
        assert [span.start for span in spans[1:]] == [span.end for span in spans[:-1]], name
        assert (spans[0].start, spans[-1].end) == (0, outcome.cycles), name
    check_traffic(outcome, name)


def check_traffic(outcome: Outcome, name: str) -> None:
    """All beats but those of the last, unfinished window; looking starts behind the launch."""
    timeline = timeline_of(outcome)
    windows = ((outcome.cycles or 0) - 1) // TRAFFIC_CYCLES
    for direction in ("read", "write"):
        beats = getattr(timeline, f"{direction}_beats")
        left = outcome.counters[f"{direction}_beats"] - int(beats.sum())
        assert len(beats) == windows, f"{name}: {direction}"
        assert beats.max(initial=0) <= TRAFFIC_CYCLES
        assert 0 <= left <= TRAFFIC_CYCLES + 1, f"{name}: {direction}"


@pytest.mark.parametrize("folder", GOLDEN, ids=lambda folder: folder.name)
def test_golden_programs(core: RtlSimulator, folder: Path) -> None:
    program = ProgramFolder.load(folder)
    check(core.run(program.launch, program.dram(), timeline=True), folder.name)


def test_random_programs_on_random_memories(core: RtlSimulator) -> None:
    before = core.memory_model
    reasons = set()
    for seed in SEEDS:
        program = generate(seed, core.config, length=LONG if seed % 2 else None)
        core.memory_model = memory_of(seed)
        dram, onchip = program.dram.copy(), program.onchip.copy()
        outcome = core.run(program.launch, dram, onchip=onchip, timeline=True)
        assert outcome.ok, f"seed {seed}: {outcome.message}"
        check(outcome, f"seed {seed}")
        reasons |= {
            (stage, span.reason) for stage in Stage for span in timeline_of(outcome).spans[stage]
        }
    core.memory_model = before
    waits = {WaitReason.BUSY, WaitReason.IDLE, WaitReason.MEMORY}
    assert {(stage, reason) for stage in Stage for reason in waits} <= reasons
    assert {(Stage.LOAD, WaitReason.POP_NEXT), (Stage.STORE, WaitReason.POP_PREV)} <= reasons
    assert {(Stage.COMPUTE, WaitReason.POP_NEXT), (Stage.COMPUTE, WaitReason.POP_PREV)} <= reasons


def both(core: RtlSimulator, folder: ProgramFolder, marks: list[int]) -> tuple[Outcome, Outcome]:
    """Two runs, with and without looking."""
    plain = core.run(folder.launch, folder.dram())
    return plain, core.run(folder.launch, folder.dram(), marks=marks, timeline=True)


def test_looking_changes_no_cycle(core: RtlSimulator) -> None:
    folder = ProgramFolder.load(GOLDEN[0])
    plain, watched = both(core, folder, list(range(folder.launch.insn_count)))
    assert (plain.cycles, plain.counters) == (watched.cycles, watched.counters)
    assert plain.timeline is None
    assert plain.marks == plain.mark_counters == {}


@pytest.mark.parametrize("name", ["lenet5_layer2", "matrix_8blocks"])
def test_marks_are_the_ends_of_instructions(core: RtlSimulator, name: str) -> None:
    """A stage has gone on from each; loads go on while their data arrive and retire later."""
    folder = ProgramFolder.load(Path("tests/data/golden") / name)
    wanted = list(range(folder.launch.insn_count))
    _, outcome = both(core, folder, wanted)
    assert set(wanted) - set(outcome.marks) <= {wanted[-1]}, "FINISH ends with the program"
    for stage in Stage:
        spans = [s for s in timeline_of(outcome).spans[stage] if s.reason is not WaitReason.IDLE]
        ends = {span.index: span.end for span in spans}
        assert len(ends) >= 3
        for mark in set(ends) & set(outcome.marks):
            if stage is Stage.LOAD:
                assert outcome.marks[mark] <= ends[mark], f"{stage.name} {mark}"
            else:
                assert outcome.marks[mark] == ends[mark], f"{stage.name} {mark}"


def test_counters_at_marks_grow_to_the_totals(core: RtlSimulator) -> None:
    folder = ProgramFolder.load(Path("tests/data/golden/lenet5_layer2"))
    _, outcome = both(core, folder, list(range(0, folder.launch.insn_count, 7)))
    marks = sorted(outcome.marks, key=lambda mark: outcome.marks[mark])
    rows = [outcome.mark_counters[mark] for mark in marks] + [outcome.counters]
    assert len(rows) > 10
    for before, after in pairwise(rows):
        assert all(before[name] <= after[name] for name in before)
    for mark, row in zip(marks, rows, strict=False):
        for stage in ("load", "compute", "store"):
            counted = [row[f"{stage}_{kind}"] for kind in KINDS]
            assert sum(counted) == row["cycles"] == outcome.marks[mark]


def test_a_mark_beyond_the_program_is_refused(core: RtlSimulator) -> None:
    case = assembled("FINISH")
    with pytest.raises(DeviceError, match=r"marks number instructions 0\.\.0, got 1"):
        core.run(case.launch, case.dram, marks=[1])
