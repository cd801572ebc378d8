"""`vitral bitstream`, from the plan to a bitstream that the runtime takes, with stand-in tools."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vitral.bitstream.backends import BACKENDS, backend_of, buildable
from vitral.bitstream.manifest import Manifest, file_digest
from vitral.bitstream.plan import Plan
from vitral.cli import main
from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.runtime.boards.bitfile import check_manifest
from vitral.targets import TARGETS, Target, find_target

pytestmark = pytest.mark.board
ROOT = Path(__file__).parent.parent.parent
VENDORS = ["pynq-z1", "pynq-z2", "ultra96", "zcu104", "de10-nano"]
PROGRAMS = {"vivado": "vivado", "quartus": "quartus_sh"}


@pytest.fixture(autouse=True)
def hollow(monkeypatch: pytest.MonkeyPatch, planned: Callable[[Target], Plan]) -> None:
    """A core with ports and nothing else, no installed tools."""

    def verilog(target: Target) -> str:
        return next(text for name, text in planned(target).files.items() if name.endswith(".v"))

    monkeypatch.setattr("vitral.cli.bitstream.core_verilog", verilog)
    for name in ("XILINX_VIVADO", "QUARTUS_ROOTDIR"):
        monkeypatch.delenv(name, raising=False)


def install(folder: Path, tool: str, monkeypatch: pytest.MonkeyPatch, code: str = "") -> None:
    """Put a program of the tool's name on the path: its stand-in, or other code."""
    folder.mkdir()
    program = folder / PROGRAMS[tool]
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT / 'tests')!r})\n"
        + (code or f"from vendors.{tool} import main\nsys.exit(main(sys.argv[1:]))\n")
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize("name", ["pynq-z1", "de10-nano"])
def test_plan_writes_a_whole_project(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "project"
    assert main(["bitstream", "plan", "--target", name, "-o", str(folder), "--json", "-"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} == {
        *record["files"],
        "plan.json",
    }
    assert record["core"] == find_target(name).config.digest
    assert record["digest"] == json.loads((folder / "plan.json").read_text())["digest"]


@pytest.mark.parametrize(("name", "dsp"), [("pynq-z2", 182), ("ultra96", 182), ("de10-nano", 109)])
def test_a_build_leaves_a_bitstream_that_the_runtime_takes(
    name: str,
    dsp: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("tkinter", reason="Python was built without Tcl")
    target, tool = find_target(name), backend_of(name).TOOL
    install(tmp_path / "bin", tool, monkeypatch)
    folder = tmp_path / "out"
    assert main(["bitstream", "build", "--target", name, "-o", str(folder)]) == 0, (
        capsys.readouterr().err
    )
    out = capsys.readouterr().out
    manifest = Manifest.read(folder / "vitral.json")
    bits = folder / manifest.bitstream
    assert manifest.sha256 == file_digest(bits)
    assert manifest.sha256 in out
    assert manifest.plan == json.loads((folder / "plan.json").read_text())["digest"]
    assert manifest.core == target.config.digest
    assert CoreConfig(**manifest.config) == target.config
    assert manifest.fmax_mhz is not None
    assert target.clock_mhz is not None
    assert target.clock_mhz < manifest.fmax_mhz < 1.1 * target.clock_mhz
    assert manifest.resources["dsp"] == dsp
    assert len(manifest.resources) == 4
    check_manifest(bits, target.config)
    with pytest.raises(DeviceError, match="is built for core"):
        check_manifest(bits, CoreConfig(block=32, wgt_buffer=1 << 18))
    bits.write_bytes(b"other")
    with pytest.raises(DeviceError, match="copy it again"):
        check_manifest(bits, target.config)


def failed(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(argv) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1, text
    return text


@pytest.mark.parametrize(
    ("name", "product"), [("zcu104", "Vivado 2022.1"), ("de10-nano", "Quartus")]
)
def test_no_tool_is_one_line(
    name: str,
    product: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = failed(["bitstream", "build", "--target", name, "-o", str(tmp_path / "b")], capsys)
    assert not (tmp_path / "b").exists(), "found before the work"
    assert f"building {name} needs {product}" in text
    assert "in PATH, $" in text
    assert f"vitral bitstream plan --target {name} -o DIR" in text


def test_the_tool_where_its_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tkinter", reason="Python was built without Tcl")
    (tmp_path / "Vivado").mkdir()
    install(tmp_path / "Vivado" / "bin", "vivado", monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XILINX_VIVADO", str(tmp_path / "Vivado"))
    assert main(["bitstream", "build", "--target", "pynq-z1", "-o", str(tmp_path / "b")]) == 0


FAILURES = [
    (
        "print('INFO: x\\nERROR: [Synth 8-1] no  module\\nlast')\nsys.exit(1)\n",
        "Synth 8-1] no module",
    ),
    ("sys.exit(1)\n", "vivado failed: it said nothing"),
    ("", "left no usable result: [Errno 2]"),
    ("open('result.json', 'w').write('{}')\n", "left no usable result: 'tool_version'"),
]


@pytest.mark.parametrize(("code", "problem"), FAILURES, ids=["error", "silent", "none", "empty"])
def test_a_tool_that_fails_is_one_line(
    code: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install(tmp_path / "bin", "vivado", monkeypatch, code or "pass\n")
    folder = tmp_path / "b"
    text = failed(["bitstream", "build", "--target", "pynq-z1", "-o", str(folder)], capsys)
    assert problem in text
    assert str(folder) in text
    assert not (folder / "vitral.json").exists()


def test_a_clock_that_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tkinter", reason="Python was built without Tcl")
    code = (
        "from vendors.vivado import Vivado\nfrom pathlib import Path\n"
        "Vivado(slack=-0.3).source(Path('build.tcl').resolve())\n"
    )
    install(tmp_path / "bin", "vivado", monkeypatch, code)
    folder = tmp_path / "b"
    text = failed(["bitstream", "build", "--target", "pynq-z1", "-o", str(folder)], capsys)
    assert "pynq-z1: misses 100 MHz by 0.300 ns" in text
    assert not (folder / "vitral.json").exists()


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["--target", "sim"], "target sim has no bitstream; targets that have one: pynq-z1"),
        (["--target", "vu9p"], "no target 'vu9p'"),
    ],
)
def test_targets_without_bitstreams(
    argv: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert problem in failed(["bitstream", "plan", *argv, "-o", str(tmp_path / "x")], capsys)
    assert not (tmp_path / "x").exists()


def test_a_file_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("")
    argv = ["bitstream", "plan", "--target", "pynq-z1", "-o", str(tmp_path / "x")]
    assert "is no folder; name another one" in failed(argv, capsys)


def test_every_board_has_a_tool() -> None:
    assert {target.name for target in TARGETS if target.part} == set(BACKENDS)
    assert [target.name for target in buildable()] == list(BACKENDS)


@pytest.mark.parametrize("name", VENDORS)
def test_the_kept_scripts_are_the_plan_s(name: str, planned: Callable[[Target], Plan]) -> None:
    """`vitral bitstream plan --target NAME --scripts -o bitstreams/NAME` writes them again."""
    folder = ROOT / "bitstreams" / name
    kept = {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert kept == planned(find_target(name)).scripts


@pytest.mark.parametrize("name", VENDORS)
def test_the_kept_manifest_is_the_target_s(name: str) -> None:
    target = find_target(name)
    manifest = Manifest.read(ROOT / "bitstreams" / name / "manifest.json")
    assert (manifest.target, manifest.part) == (target.name, target.part)
    assert CoreConfig(**manifest.config) == target.config
    assert manifest.core == target.config.digest
    assert manifest.tool == backend_of(name).TOOL
    assert manifest.build == f"vitral bitstream build --target {name}"


def test_list_says_what_is_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bitstream", "list", "--folder", str(ROOT / "bitstreams")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(BACKENDS)
    assert all("not built" in line for line in lines[1:] if line.split()[0] in VENDORS)
    assert main(["bitstream", "list", "--folder", str(tmp_path), "--json", "-"]) == 0
    assert {entry["manifest"] for entry in json.loads(capsys.readouterr().out)} == {None}
