"""The table of targets."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from vitral.cli import main
from vitral.config import CoreConfig
from vitral.errors import ConfigError
from vitral.isa import InstructionSet
from vitral.targets import TARGETS, Target, find_target, target_config

ALL = pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])
SMALLER = "ulx3s-85f"


def test_modules_of_one_target_run_on_every_other_but_the_smaller_one() -> None:
    digests = {target.name: target.config.digest for target in TARGETS}
    smaller = digests.pop(SMALLER)
    assert set(digests.values()) == {CoreConfig().digest}
    assert smaller != CoreConfig().digest


def test_names_are_found_and_unknown_ones_listed() -> None:
    assert [find_target(target.name) for target in TARGETS] == list(TARGETS)
    assert target_config("sim") == CoreConfig()
    with pytest.raises(ConfigError, match="no target 'vu9p'; known: sim, pynq-z1"):
        target_config("vu9p")


@pytest.mark.parametrize("name", ["pynq-z1", "pynq-z2", "de10-nano"])
def test_older_ports_take_short_bursts(name: str) -> None:
    config = target_config(name)
    assert (config.data_bits, config.burst_beats, config.addr_bits) == (64, 16, 32)
    with pytest.raises(ConfigError, match="AXI3 has bursts of 16 beats, got 32"):
        replace(find_target(name).port, burst_beats=32)


@ALL
def test_core_has_the_port_s_bus_and_an_instruction_set(target: Target) -> None:
    config, port = target.config, target.port
    assert (config.data_bits, config.addr_bits) == (port.data_bits, port.addr_bits)
    assert config.burst_beats == port.burst_beats
    assert InstructionSet.of(config)


@ALL
def test_boards_have_part_and_clock(target: Target) -> None:
    assert bool(target.board) == bool(target.part) == (target.clock_mhz is not None)
    assert (target.dram is None) == (target.name in ("sim", SMALLER))


@pytest.mark.parametrize(
    ("name", "gops", "port", "memory"),
    [
        ("sim", None, None, None),
        ("pynq-z1", 51.2, 800, 1600),  # 256 products at 100 MHz; twice 8 bytes, of 2,100 MB/s
        ("ultra96", 76.8, 2400, 4264),  # the DRAM is the limit
        ("ulx3s-85f", 3.2, 200, 400),
    ],
)
def test_peaks(name: str, gops: float | None, port: int | None, memory: int | None) -> None:
    target = find_target(name)
    assert target.peak_gops == gops
    assert (target.port_mb_per_s, target.memory_mb_per_s) == (port, memory)


def test_smaller_core_leaves_room_in_the_ecp5() -> None:
    """Memories within 208 block RAMs of 2 KiB, less 64 KiB, and products within its multipliers."""
    config = target_config(SMALLER)
    layout = config.layout
    memories = config.uop_buffer + config.inp_buffer + config.wgt_buffer + config.acc_buffer
    memories += layout.param_depth * layout.param_bytes
    assert memories + (64 << 10) < 208 * (2 << 10) * 3 // 4
    assert layout.macs_per_cycle <= 156 // 2


def test_page_says_the_same() -> None:
    page = Path(__file__).parents[1] / "docs/targets.md"
    lines = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    rows = {name: line for line in lines for name in line.split("|")[1].split("`")[1::2]}
    assert rows.keys() == {target.name for target in TARGETS}
    for target in TARGETS:
        cells = [cell.strip() for cell in rows[target.name].strip("|").split("|")]
        dram = None if target.dram is None else target.dram.mb_per_s
        registers = "" if target.registers is None else f"0x{target.registers:08X}"
        config, numbers = target.config, (target.clock_mhz, target.peak_gops, target.port_mb_per_s)
        assert cells[1] == target.part
        assert cells[2] == f"{config.batch}x{config.block}x{config.block}"
        assert target.port.name in cells[3]
        assert f"{config.data_bits} bits" in cells[3]
        assert cells[4] == str(config.burst_beats)
        assert cells[5:9] == ["" if value is None else str(value) for value in (*numbers, dram)]
        assert cells[9] == registers


def test_command_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [target.name for target in TARGETS]
    (line,) = (line for line in lines if line.startswith("pynq-z1"))
    assert {"xc7z020clg400-1", "S_AXI_HP0", "51.2", "1,600"} <= set(line.split())


def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--json", "-"]) == 0
    records = json.loads(capsys.readouterr().out)
    for record, target in zip(records, TARGETS, strict=True):
        assert CoreConfig(**record["config"]) == target.config
        assert record["digest"] == target.config.digest
        assert record["port"]["protocol"] == target.port.protocol
        assert record["clock_mhz"] == target.clock_mhz
        assert record["registers"] == target.registers
        assert record["peak_gops"] == target.peak_gops
