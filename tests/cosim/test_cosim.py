"""The emitted Verilog under cocotb, with bus models that are not ours."""

from dataclasses import replace
from pathlib import Path

import pytest
from convs import small_configs
from cosim.compiled import save_conv
from cosim.runner import run_cocotb

from vitral.config import CoreConfig
from vitral.sim.rtl.emit import emit_verilog

GOLDEN = Path(__file__).parents[1] / "data" / "golden"

pytestmark = pytest.mark.xdist_group("cosim")


@pytest.fixture(scope="module")
def verilog() -> str:
    return emit_verilog(CoreConfig())


def test_register_port(verilog: str, tmp_path: Path) -> None:
    run_cocotb(verilog, "cosim.registers", tmp_path, settings={})


@pytest.mark.parametrize(
    ("name", "stalls"),
    [
        ("matrix_16x16", 0.0),
        ("matrix_16x16_relu", 0.1),
        ("matrix_add", 0.5),
        ("matrix_maxpool", 0.9),
        ("matrix_20x20", 0.5),
        ("matrix_8blocks", 0.1),
        ("lenet5_layer2", 0.5),
    ],
)
def test_golden_program_with_stalls(verilog: str, tmp_path: Path, name: str, stalls: float) -> None:
    settings = {"PROGRAM": str(GOLDEN / name), "STALLS": str(stalls), "SEED": "1"}
    run_cocotb(verilog, "cosim.programs", tmp_path, settings=settings)


NARROW = small_configs()["block4"]
CORES = {"default": CoreConfig(), "wide-bus": replace(NARROW, data_bits=128, burst_beats=256)}


@pytest.mark.parametrize(
    ("core", "stalls"), [("default", 0.5), ("wide-bus", 0.0), ("wide-bus", 0.5)]
)
def test_compiled_conv_with_stalls(tmp_path: Path, core: str, stalls: float) -> None:
    save_conv(CORES[core], tmp_path / "conv", seed=3)
    settings = {"PROGRAM": str(tmp_path / "conv"), "STALLS": str(stalls), "SEED": "2"}
    run_cocotb(emit_verilog(CORES[core]), "cosim.programs", tmp_path, settings=settings)
