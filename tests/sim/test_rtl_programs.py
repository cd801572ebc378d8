"""The real core in Verilator: golden and random programs, timing, counters, errors, deadlocks."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from programs import CONFIGS, assembled, generate
from programs.compare import differences, state_after

from vitral.config import CoreConfig
from vitral.isa import Cause
from vitral.program import MemoryModel, OnChip, Outcome, ProgramFolder
from vitral.sim.reference import Reference
from vitral.sim.rtl import RtlSimulator

CONFIG = CoreConfig()
FOLDERS = sorted(path.parent for path in Path("tests/data/golden").glob("*/instructions.bin"))
CHISEL_CYCLES = {
    "matrix_16x16": 403,
    "matrix_16x16_relu": 452,
    "matrix_20x20": 1406,
    "matrix_8blocks": 3472,
    "matrix_maxpool": 682,
    "matrix_add": 466,
    "lenet5_layer1": 17222,
    "lenet5_layer2": 5882,
    "lenet5_layer3": 12308,
}
"""Cycles of VTA's Chisel core for the same programs at a read latency of 10."""

MEMORIES = {
    "yardstick": MemoryModel(),
    "fast": MemoryModel(latency=1, write_latency=1),
    "slow": MemoryModel(latency=200, write_latency=300, outstanding=2),
    "stalls 10 %": MemoryModel(stall_seed=1, stall_probability=0.1),
    "stalls 50 %": MemoryModel(stall_seed=2, stall_probability=0.5),
    "stalls 90 %": MemoryModel(stall_seed=3, stall_probability=0.9),
}


@pytest.fixture(scope="module")
def core() -> Iterator[RtlSimulator]:
    with RtlSimulator(CONFIG) as simulator:
        yield simulator


def folder_named(name: str) -> ProgramFolder:
    return ProgramFolder.load(next(path for path in FOLDERS if path.name == name))


def stage_sum(outcome: Outcome, stage: str) -> int:
    return sum(value for name, value in outcome.counters.items() if name.startswith(f"{stage}_"))


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_golden_program(core: RtlSimulator, folder: Path, memory: str) -> None:
    program = ProgramFolder.load(folder)
    onchip = OnChip.random(CONFIG, np.random.default_rng(4))
    wanted, wanted_dram = onchip.copy(), program.dram()
    Reference(CONFIG).run(program.launch, wanted_dram, onchip=wanted)
    core.memory_model = MEMORIES[memory]
    dram = program.dram()
    core.run(program.launch, dram, onchip=onchip).raise_for_status()
    assert program.differences(dram) == []
    assert np.array_equal(dram.data, wanted_dram.data)
    assert onchip.differences(wanted) == []


@pytest.mark.parametrize("name", CHISEL_CYCLES)
def test_takes_fewer_cycles_than_the_core_it_follows(core: RtlSimulator, name: str) -> None:
    core.memory_model = MemoryModel(latency=10, write_latency=10)
    program = folder_named(name)
    cycles = core.run(program.launch, program.dram()).cycles
    assert cycles is not None
    assert cycles < CHISEL_CYCLES[name]


def test_counters_add_up(core: RtlSimulator) -> None:
    core.memory_model = MemoryModel()
    for name in CHISEL_CYCLES:
        program = folder_named(name)
        before, start = core.beats, core.cycle
        outcome = core.run(program.launch, program.dram())
        assert outcome.cycles == outcome.counters["cycles"]
        for stage in ("load", "compute", "store"):
            assert stage_sum(outcome, stage) == outcome.cycles, f"{name}: {stage}"
        moved = tuple(now - then for now, then in zip(core.beats, before, strict=True))
        assert (outcome.counters["read_beats"], outcome.counters["write_beats"]) == moved, name
        assert 0 < (outcome.cycles or 0) < core.cycle - start


def test_gemm_counter_counts_tile_products(core: RtlSimulator) -> None:
    # 20x20 in blocks of 16: 2 x 2 x 2 block products of 16 rows each.
    core.memory_model = MemoryModel()
    program = folder_named("matrix_20x20")
    assert core.run(program.launch, program.dram()).counters["gemm"] == 8 * 16


def test_relaunch_gives_the_same_bytes_and_cycles(core: RtlSimulator) -> None:
    core.memory_model = MemoryModel()
    first, second = folder_named("lenet5_layer2"), folder_named("matrix_maxpool")
    cycles = set()
    for _ in range(12):
        dram = first.dram()
        cycles.add(core.run(first.launch, dram).cycles)
        assert first.differences(dram) == []
        dram = second.dram()
        core.run(second.launch, dram).raise_for_status()
        assert second.differences(dram) == []
    assert len(cycles) == 1


@pytest.mark.parametrize("memory", ["yardstick", "fast", "stalls 50 %"])
def test_random_programs(core: RtlSimulator, memory: str) -> None:
    core.memory_model = MEMORIES[memory]
    for seed in range(40):
        program = generate(seed, CONFIG)
        wanted = state_after(program, Reference(CONFIG))
        found = differences(state_after(program, core), wanted)
        assert found == [], f"seed {seed}\n{program.text}"


def test_bus_error_names_the_load(core: RtlSimulator) -> None:
    core.memory_model = MemoryModel()
    lines = ["LOAD UOP"] * 5 + ["LOAD INP dram=0xC00 y=1 x=1 stride=1", "FINISH"]
    case = assembled("\n".join(lines))
    outcome = core.run(case.launch, case.dram)
    assert (outcome.cause, outcome.index) == (Cause.BUS_READ, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "default"])
def test_random_programs_on_other_cores(name: str) -> None:
    config = CONFIGS[name]
    for memory in ("yardstick", "stalls 50 %"):
        with RtlSimulator(config, memory_model=MEMORIES[memory]) as core:
            for seed in range(100):
                program = generate(seed, config)
                wanted = state_after(program, Reference(config))
                found = differences(state_after(program, core), wanted)
                assert found == [], f"seed {seed}, {memory}\n{program.text}"


def test_bus_errors_end_a_program_and_the_next_one_runs(core: RtlSimulator) -> None:
    program = folder_named("lenet5_layer2")
    for burst in range(0, 60, 7):
        core.memory_model = MemoryModel(fail_reads=(burst,))
        outcome = core.run(program.launch, program.dram())
        assert outcome.cause is Cause.BUS_READ, f"burst {burst}: {outcome.message}"
        core.memory_model = MemoryModel(fail_writes=(burst // 7,))
        outcome = core.run(program.launch, program.dram())
        assert outcome.cause is Cause.BUS_WRITE, f"burst {burst // 7}: {outcome.message}"
        core.memory_model = MemoryModel()
        dram = program.dram()
        core.run(program.launch, dram).raise_for_status()
        assert program.differences(dram) == []


def test_soft_reset_in_the_middle_leaves_a_working_core(core: RtlSimulator) -> None:
    program = folder_named("lenet5_layer1")
    for cycles in (50, 333, 1000, 2500, 4001):
        core.memory_model = MemoryModel(stall_seed=cycles)
        outcome = core.run(program.launch, program.dram(), max_cycles=cycles)
        assert outcome.message.startswith("time-out"), outcome.message
        core.memory_model = MemoryModel()
        dram = program.dram()
        core.run(program.launch, dram).raise_for_status()
        assert program.differences(dram) == []
