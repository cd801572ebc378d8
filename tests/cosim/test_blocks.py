"""Blocks of the core, emitted alone, under cocotb."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench.execute import SMALL as SMALL_COMPUTE
from cosim.blocks import (
    BLOCK_TOP,
    execute_verilog,
    load_path_verilog,
    requantizer_verilog,
    store_path_verilog,
)
from cosim.runner import run_cocotb

from vitral.config import CoreConfig
from vitral.isa import Memory

pytestmark = pytest.mark.xdist_group("cosim")

SMALL = CoreConfig(uop_buffer=2048, inp_buffer=4096, wgt_buffer=32768, acc_buffer=8192)
LOADERS = {
    "load": (Memory.INP, Memory.WGT),
    "compute": (Memory.UOP, Memory.ACC, Memory.ACC_8BIT),
}


def _settings(config: CoreConfig, stalls: float, seed: int = 1) -> dict[str, str]:
    return {"CONFIG": json.dumps(config.to_dict()), "STALLS": str(stalls), "SEED": str(seed)}


@pytest.mark.parametrize("stalls", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("stage", LOADERS)
def test_loads(tmp_path: Path, stage: str, stalls: float) -> None:
    verilog = load_path_verilog(SMALL, LOADERS[stage])
    names = " ".join(memory.name for memory in LOADERS[stage])
    settings = _settings(SMALL, stalls) | {"MEMORIES": names}
    run_cocotb(verilog, "cosim.loads", tmp_path, settings=settings, top=BLOCK_TOP)


@pytest.mark.parametrize("stalls", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("data_bits", [64, 128])
def test_stores(tmp_path: Path, data_bits: int, stalls: float) -> None:
    config = replace(SMALL, data_bits=data_bits)
    run_cocotb(
        store_path_verilog(config),
        "cosim.stores",
        tmp_path,
        settings=_settings(config, stalls),
        top=BLOCK_TOP,
    )


def test_compute_units(tmp_path: Path) -> None:
    run_cocotb(
        execute_verilog(SMALL_COMPUTE), "cosim.execute", tmp_path, settings={}, top=BLOCK_TOP
    )


def test_requantizer(tmp_path: Path) -> None:
    run_cocotb(requantizer_verilog(8), "cosim.requant", tmp_path, settings={}, top=BLOCK_TOP)
