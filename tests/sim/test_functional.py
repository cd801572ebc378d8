"""The native simulator equals the reference, with every vector extension, and keeps its code."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from programs import CONFIGS, assembled, generate
from programs.compare import differences, state_after

from vitral.config import CoreConfig
from vitral.sim.functional import FunctionalSimulator, jit
from vitral.sim.functional.extensions import EXTENSIONS
from vitral.sim.reference import Reference

NAMES = [extension.name for extension in EXTENSIONS]
AVAILABLE = jit.usable_extensions()
PER_CONFIG = 30
ROOT = Path(__file__).resolve().parents[2]


def agree(config: CoreConfig, seed: int, extensions: str | None = None) -> None:
    program = generate(seed, config)
    fsim = FunctionalSimulator(config, extensions=extensions)
    found = differences(state_after(program, fsim), state_after(program, Reference(config)))
    assert found == [], f"seed {seed}\n{program.text}"


@pytest.mark.parametrize("name", CONFIGS)
def test_random_programs(name: str) -> None:
    for seed in range(1000, 1000 + PER_CONFIG):
        agree(CONFIGS[name], seed)


@pytest.mark.parametrize("extensions", AVAILABLE)
@pytest.mark.parametrize("name", ["default", "block4", "batch2", "block32"])
def test_every_vector_extension(name: str, extensions: str) -> None:
    for seed in range(2000, 2010):
        agree(CONFIGS[name], seed, extensions)


def test_2000_random_programs() -> None:
    configs = list(CONFIGS.values())
    for seed in range(2000):
        agree(configs[seed % len(configs)], seed)


HOSTS = [
    ("icelake-server", "avx512vnni", "vpdpbusd", "zmm"),
    ("icelake-server", "avx512bw", "vpdpwssd", "zmm"),
    ("skylake-avx512", "avx512bw", "vpmaddwd", "zmm"),
    ("alderlake", "avxvnni", "vpdpbusd", "ymm"),
    ("haswell", "avx2", "vpmaddwd", "ymm"),
    ("x86-64", "sse2", "pmaddwd", "xmm"),
]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="code for x86")
@pytest.mark.parametrize(("cpu", "extensions", "instruction", "register"), HOSTS)
def test_products_use_the_best_instruction_of_a_host(
    cpu: str, extensions: str, instruction: str, register: str
) -> None:
    """One of it per group of inputs and vector of outputs, in the kernel of most rows."""
    config = CoreConfig()
    text = jit.assembly(config, extensions, cpu)
    kernels = re.findall(r"^gemm_(\d+):(.*?)func_end", text, re.S | re.M)
    rows, body = max((int(rows), body) for rows, body in kernels)
    chosen = next(e for e in EXTENSIONS if e.name == extensions)
    products = [line for line in body.splitlines() if instruction in line]
    assert len(products) == rows * (config.block // chosen.lanes) * (config.block // chosen.depth)
    assert all(register in line for line in products)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("VITRAL_CACHE", str(tmp_path))
    jit.load.cache_clear()
    yield tmp_path
    jit.load.cache_clear()


def forbid_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise AssertionError("compiled again")

    monkeypatch.setattr(jit, "_compile", refuse)


def test_object_code_is_compiled_once(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agree(CONFIGS["block4"], 1)
    assert len(list(empty_cache.rglob("*.o"))) == 1
    jit.load.cache_clear()
    forbid_compiling(monkeypatch)
    agree(CONFIGS["block4"], 2)


def test_damaged_object_code_is_compiled_again(empty_cache: Path) -> None:
    agree(CONFIGS["block4"], 1)
    (file,) = empty_cache.rglob("*.o")
    good = file.read_bytes()
    for bad in (b"", good[:-100], good[:500] + b"\0" + good[501:]):
        file.write_bytes(bad)
        jit.load.cache_clear()
        agree(CONFIGS["block4"], 1)
        assert file.read_bytes() == good


def test_a_cache_that_cannot_be_written_is_done_without(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_cache / "file").write_text("not a folder")
    monkeypatch.setenv("VITRAL_CACHE", str(empty_cache / "file"))
    agree(CONFIGS["block4"], 1)


def test_key_follows_configuration_and_extension(empty_cache: Path) -> None:
    one, other = CONFIGS["block4"], CONFIGS["batch2"]
    keys = {jit._key(config, name) for config in (one, other) for name in NAMES}
    assert len(keys) == 2 * len(NAMES)


START = """
import time
from vitral.config import CoreConfig
from vitral.sim.functional import FunctionalSimulator
FunctionalSimulator(CoreConfig())
print(time.process_time())
"""


def test_a_second_process_starts_quickly(empty_cache: Path) -> None:
    environment = {**os.environ, "VITRAL_CACHE": str(empty_cache), "PYTHONPATH": str(ROOT)}
    seconds = [
        float(subprocess.check_output([sys.executable, "-c", START], env=environment, cwd=ROOT))
        for _ in range(2)
    ]
    assert seconds[1] < seconds[0] / 2, f"CPU seconds of the first and second start: {seconds}"


def test_memories_stay_between_runs() -> None:
    config = CONFIGS["block4"]
    program = generate(3, config)
    read_back = "STORE ACC sram=0 dram=0x0 y=1 x=64 stride=64\nFINISH"
    results = []
    for simulator in (FunctionalSimulator(config), Reference(config)):
        for item in fields(simulator.onchip):
            getattr(simulator.onchip, item.name)[:] = getattr(program.onchip, item.name)
        assert simulator.run(program.launch, program.dram.copy()).ok
        case = assembled(read_back, config=config)
        assert simulator.run(case.launch, case.dram).ok
        results.append((simulator.onchip, case.dram))
    (fsim, fsim_dram), (reference, reference_dram) = results
    assert fsim.differences(reference) == []
    assert fsim.differences(program.onchip) != []
    assert np.array_equal(fsim_dram.data, reference_dram.data)
