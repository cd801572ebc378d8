"""Simulators in one process live and die independently of each other."""

import subprocess
import sys

import pytest

PROGRAM = """
from pathlib import Path
from vitral.program import ProgramFolder
from vitral.sim.rtl import RtlSimulator

folder = ProgramFolder.load(Path("tests/data/golden/matrix_add"))
opened = [RtlSimulator(folder.config) for _ in range(3)]
for number in {order}:
    for simulator in opened:
        if simulator is not None:
            dram = folder.dram()
            simulator.run(folder.launch, dram).raise_for_status()
            assert not folder.differences(dram)
    opened[number].close()
    opened[number] = None
print("done", flush=True)
"""


@pytest.mark.parametrize("order", ["(0, 1, 2)", "(2, 1, 0)", "(1,)", "(2,)", "()"])
def test_closing_in_any_order_or_never(order: str) -> None:
    """In a process of its own, which also ends in order when some are never closed."""
    program = PROGRAM.format(order=order)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=300)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"done\n", b"")
