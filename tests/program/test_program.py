"""What simulators share: memory images, launches, outcomes, on-chip contents and folders."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitral.config import CoreConfig
from vitral.errors import DeviceError, ExecutionFault
from vitral.isa import Cause, Memory, Profile, Stage
from vitral.program import (
    GUARD,
    Dram,
    Launch,
    MemoryModel,
    OnChip,
    Outcome,
    ProgramFolder,
    Region,
    Wait,
    WaitReason,
)

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
VALID: dict[str, Any] = {"insn_base": 0, "insn_count": 1}
PROGRAMS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"insn_base": 32}, "insn_base must be a multiple of 64"),
        ({"insn_base": 1 << 64}, "insn_base must be a multiple of 64 below"),
        ({"bases": {Memory.INP: 65}}, "base of INP must be a multiple of 64"),
        ({"insn_count": 1 << 24}, "insn_count must be 0..16777215, got 16777216"),
        ({"limit_low": 8, "limit_high": 4}, "limit_low <= limit_high"),
        ({"limit_high": (1 << 64) + 1}, "limit_high <= 2"),
    ],
)
def test_launch_refuses_what_registers_cannot_hold(values: dict[str, Any], message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        Launch(**{**VALID, **values})


def test_launch_has_base_zero_where_none_is_given() -> None:
    launch = Launch(insn_base=0, insn_count=1, bases={Memory.INP: 64})
    assert (launch.base(Memory.INP), launch.base(Memory.WGT)) == (64, 0)
    assert launch.profile is Profile.VITRAL


def test_dram_reads_and_writes_bytes_in_place() -> None:
    data = np.zeros(8192, np.uint8)
    dram = Dram(0x10000, data)
    dram.write(0x10FFE, np.array([-2, 3], np.int16))
    assert data[0xFFE:0x1002].tolist() == [0xFE, 0xFF, 3, 0]
    assert dram.read(0x11000, 2) == b"\3\0"
    dram.view(0x11FFF, 1)[:] = 9
    assert data[-1] == 9


@pytest.mark.parametrize(("address", "size"), [(0xFFF, 1), (0x2FFF, 2), (0x3000, 1)])
def test_dram_refuses_addresses_outside(address: int, size: int) -> None:
    dram = Dram.filled(0x1000, 0x2000)
    assert not dram.holds(address, size)
    with pytest.raises(DeviceError, match=r"DRAM holds 0x1000\.\.0x3000"):
        dram.view(address, size)


@pytest.mark.parametrize(
    ("base", "data"),
    [
        (1, np.zeros(4096, np.uint8)),
        (0, np.zeros(4095, np.uint8)),
        (0, np.zeros(0, np.uint8)),
        (0, np.zeros(4096, np.int8)),
        (0, np.zeros((2, 4096), np.uint8)),
        (0, np.zeros(8192, np.uint8)[::2]),
        ((1 << 64) - 4096, np.zeros(8192, np.uint8)),
    ],
)
def test_dram_refuses_other_buffers(base: int, data: np.ndarray) -> None:
    with pytest.raises(DeviceError, match="DRAM"):
        Dram(base, data)


def test_outcome_says_what_happened() -> None:
    assert Outcome(Cause.NONE, 0).message == "ok"
    fault = Outcome(Cause.SRAM_BOUNDS, 12)
    assert fault.message == "on-chip memory range out of bounds at instruction 12"
    with pytest.raises(ExecutionFault) as caught:
        fault.raise_for_status()
    assert (caught.value.cause, caught.value.index) == (Cause.SRAM_BOUNDS, 12)


@pytest.mark.parametrize(
    ("waits", "message"),
    [
        ([(Stage.COMPUTE, 17, 2)], "deadlock: compute waits for load at instruction 17"),
        (
            [(Stage.LOAD, 3, 5), (None, 9, 7)],
            "deadlock: load waits for room to push a token to compute at instruction 3;"
            " fetch waits for room in a full queue at instruction 9",
        ),
        (
            [(Stage.STORE, 4, 2), (Stage.COMPUTE, 5, 8)],
            "deadlock: store waits for compute at instruction 4;"
            " compute waits for the other stages to end at instruction 5",
        ),
        ([(Stage.STORE, 4, 6)], "time-out: store waits for memory at instruction 4"),
        ([(Stage.COMPUTE, 4, 0)], "time-out: compute is busy at instruction 4"),
    ],
)
def test_outcome_tells_deadlock_from_time_out(waits: list, message: str) -> None:
    stuck = tuple(Wait(stage, index, WaitReason(reason)) for stage, index, reason in waits)
    outcome = Outcome(Cause.NONE, 0, stuck)
    assert not outcome.ok
    assert outcome.message == message
    with pytest.raises(DeviceError, match=message[:10]):
        outcome.raise_for_status()


@pytest.mark.parametrize("config", [CoreConfig(), CoreConfig(batch=2, block=8, inp_buffer=1 << 12)])
def test_onchip_shapes_follow_the_configuration(config: CoreConfig) -> None:
    onchip = OnChip.zeros(config)
    onchip.check(config)
    for name in ("uop", "inp", "wgt", "acc"):
        assert getattr(onchip, name).nbytes == getattr(config, f"{name}_buffer")
    assert onchip.param.nbytes == config.param_depth * config.layout.param_bytes


def test_onchip_reports_differing_elements() -> None:
    config = CoreConfig()
    first = OnChip.random(config, np.random.default_rng(3))
    second = first.copy()
    assert first.differences(second) == []
    second.acc[7, 0, 3] ^= 1
    second.uop[2] ^= 1
    lines = first.differences(second)
    assert [line.split(":")[0] for line in lines] == ["uop", "acc"]
    assert "1 elements differ: [7]" in lines[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_folder_places_every_region(name: str) -> None:
    program = ProgramFolder.load(GOLDEN / name)
    dram = program.dram()
    guards = np.ones(dram.data.size, bool)
    for region in program.regions:
        assert dram.read(region.address, len(region.data)) == region.data
        guards[region.address - dram.base : region.end - dram.base] = False
    assert guards[-4096:].all()
    assert (dram.data[guards] == GUARD).all()
    assert program.launch.profile is Profile.VTA


@pytest.mark.parametrize("name", PROGRAMS)
def test_folder_knows_its_expected_result(name: str) -> None:
    program = ProgramFolder.load(GOLDEN / name)
    dram = program.dram()
    assert program.differences(dram)
    dram.write(program.out.address, program.expected_out)
    assert program.differences(dram) == []
    dram.data[-1] ^= 1
    assert "guard" in program.differences(dram)[1]


def vitral_folder(path: Path) -> ProgramFolder:
    launch = Launch(insn_base=0x3000, insn_count=2, bases={Memory.INP: 0x1000}, limit_high=1 << 20)
    regions = (
        Region("INP", 0x1000, b"abc"),
        Region("OUT", 0x2000, bytes(64)),
        Region("INSN", 0x3000, bytes(range(32))),
        Region("PARAM", 0x4000, b"p" * 256),
    )
    program = ProgramFolder("mine", CoreConfig(block=8), launch, regions, b"xyz")
    program.save(path / "mine")
    return program


def test_folder_round_trips(tmp_path: Path) -> None:
    program = vitral_folder(tmp_path)
    loaded = ProgramFolder.load(tmp_path / "mine")
    assert loaded.launch == program.launch
    assert loaded.config == program.config
    assert loaded.expected_out == program.expected_out
    assert {r.name: r for r in loaded.regions} == {r.name: r for r in program.regions}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "input.bin").unlink(), "input.bin: cannot read"),
        (lambda f: (f / "instructions.bin").write_bytes(bytes(17)), "17 bytes, needs a multiple"),
        (lambda f: (f / "uop.bin").write_bytes(b"1234"), "UOP no address"),
        (lambda f: (f / "expected_out.bin").write_bytes(bytes(65)), "65 bytes expected of 64"),
        (lambda f: (f / "program.json").write_text("{"), "not a program's settings"),
        (lambda f: (f / "program.json").write_text('{"profile": "tpu"}'), "not a program's"),
        (
            lambda f: (f / "program.json").write_text(json.dumps({"config": {"block": 5}})),
            "block must be 4, 8, 16 or 32",
        ),
        (lambda f: add_line(f, "FOO,0x9000,0"), "no region is called 'FOO'"),
        (lambda f: add_line(f, "INP,0x9000,0"), "a second line for INP"),
        (lambda f: add_line(f, "WGT,0xzz,0"), "'0xzz' is not a hexadecimal address"),
        (lambda f: add_line(f, "WGT,0x9000"), "needs NAME,byte address"),
        (lambda f: move(f, "OUT,0x2000", "OUT,0x2ff0"), "OUT 0x2ff0..0x3030 overlaps INSN"),
        (lambda f: move(f, "OUT,", "ACC_BIS,"), "needs a line for OUT"),
    ],
)
def test_folder_names_what_is_wrong(tmp_path: Path, spoil, message: str) -> None:
    vitral_folder(tmp_path)
    spoil(tmp_path / "mine")
    with pytest.raises(DeviceError, match=message) as caught:
        ProgramFolder.load(tmp_path / "mine")
    assert "\n" not in str(caught.value)


def add_line(folder: Path, line: str) -> None:
    path = folder / "memory_addresses.csv"
    path.write_text(f"{path.read_text()}{line}\n")


def move(folder: Path, old: str, new: str) -> None:
    path = folder / "memory_addresses.csv"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    "values",
    [
        {"latency": -1},
        {"latency": 1 << 33},
        {"write_latency": 1 << 33},
        {"outstanding": 65},
        {"stall_probability": 1.0},
        {"limit_cycles": 0},
    ],
)
def test_memory_model_refuses_what_would_hang(values: dict) -> None:
    with pytest.raises(DeviceError, match=next(iter(values))):
        MemoryModel(**values)
