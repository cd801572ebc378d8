"""Programs that another project's compiler made give the bytes its simulator gave."""

from pathlib import Path

import numpy as np
import pytest
from engines import ENGINES, engine

from vitral.program import OnChip, ProgramFolder
from vitral.sim.reference import Reference

FOLDERS = sorted(path.parent for path in Path("tests/data/golden").glob("*/instructions.bin"))
ORDERS = range(10)


def test_all_golden_programs_are_here() -> None:
    assert len(FOLDERS) == 9


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("name", ENGINES)
def test_golden_program(name: str, folder: Path) -> None:
    program = ProgramFolder.load(folder)
    dram = program.dram()
    onchip = OnChip.random(program.config, np.random.default_rng(1))
    outcome = engine(name, program.config).run(program.launch, dram, onchip=onchip)
    assert outcome.ok, outcome.message
    assert outcome.insns == program.launch.insn_count
    assert program.differences(dram) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_golden_program_in_any_legal_order(folder: Path) -> None:
    program = ProgramFolder.load(folder)
    for seed in ORDERS:
        dram = program.dram()
        onchip = OnChip.random(program.config, np.random.default_rng(seed))
        outcome = Reference(program.config).run(
            program.launch, dram, onchip=onchip, order_seed=seed
        )
        assert outcome.ok, f"order {seed}: {outcome.message}"
        assert program.differences(dram) == [], f"order {seed}"
