"""The `vitral` command: forms, results, exit statuses, and one line on stderr for bad input."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made import double_module

from vitral import __version__
from vitral.assembly import assemble
from vitral.cli import main
from vitral.config import CoreConfig
from vitral.isa import InstructionSet, Profile
from vitral.program import ProgramFolder
from vitral.runtime.module import Module

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/data/golden"
DIGITS = ROOT / "examples/digits/digits_int8.onnx"
SHAPE = (1, 16, 2, 3)


@pytest.fixture
def module(tmp_path: Path) -> str:
    double_module().save(tmp_path / "m.vitral")
    return str(tmp_path / "m.vitral")


@pytest.fixture
def x(tmp_path: Path) -> tuple[str, np.ndarray]:
    array = np.arange(96, dtype=np.int8).reshape(SHAPE)
    np.savez(tmp_path / "in.npz", x=array)
    return str(tmp_path / "in.npz"), array


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("digits") / "digits.vitral")
    assert main(["compile", str(DIGITS), "-o", path]) == 0
    return path


def result_of(capsys: pytest.CaptureFixture[str]) -> dict:
    """What `--json -` wrote: stdout has nothing else."""
    return json.loads(capsys.readouterr().out)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"vitral {__version__}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for command in ["compile", "run", "disasm", "verify", "verilog", "bench", "targets", "program"]:
        assert f"\n    {command} " in text


def test_command_is_installed() -> None:
    script = Path(sys.executable).parent / "vitral"
    run = subprocess.run([script, "targets"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("target ")
    run = subprocess.run([script, "bench", "c0"], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("vitral: no benchmark 'c0'; known: c1, c2")


def test_closed_pipe_is_no_error(module: str) -> None:
    command = f"{sys.executable} -m vitral.cli disasm {module} | true; exit ${{PIPESTATUS[0]}}"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("device", ["fsim", "reference"])
def test_run_writes_the_outputs(
    device: str,
    module: str,
    x: tuple[str, np.ndarray],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out.npz"
    arguments = ["run", module, "--device", device, "--input", x[0], "--output", str(out)]
    assert main([*arguments, "--json", "-"]) == 0
    result = result_of(capsys)
    with np.load(out) as arrays:
        np.testing.assert_array_equal(arrays["y"], (2 * x[1].astype(int)).astype(np.int8))
    assert result["device"] == device
    assert result["total_cycles"] is None
    (layer,) = result["layers"]
    assert (layer["name"], layer["device"], layer["macs"]) == ("twice", device, 6)
    assert layer["roofline_cycles"] == 96 // 8
    assert main(arguments) == 0
    assert "twice  double  " in capsys.readouterr().out


def test_onnx_model_and_module_give_the_same(
    digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = np.zeros((1, 1, 28, 28), np.float32)
    image[..., 6:22, 12:16] = 1
    np.savez(tmp_path / "in.npz", image=image)
    for model in (digits, str(DIGITS)):
        assert main(["run", model, "--input", str(tmp_path / "in.npz"), "--json", "-"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.replace("}\n{", "}\0{").split("\0"))
    assert first["outputs"] == second["outputs"]
    assert first["outputs"][0]["dtype"] == "float32"


def test_quantized_edges_are_left_to_the_caller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "in.npz", image=np.zeros((1, 1, 28, 28), np.int8))
    arguments = ["run", str(DIGITS), "--io", "quantized", "--input", str(tmp_path / "in.npz")]
    assert main([*arguments, "--json", "-"]) == 0
    assert result_of(capsys)["outputs"][0]["dtype"] == "int8"


def test_compile_reports_what_it_made(
    digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "d.vitral")
    arguments = ["compile", str(DIGITS), "-o", target, "--target", "pynq-z1"]
    assert main([*arguments, "--json", "-"]) == 0
    result = result_of(capsys)
    assert result["module"] == target
    assert result["accelerator_macs"] == result["macs"] > 2_000_000
    assert Module.load(target).macs == Module.load(digits).macs


def test_disassembly_assembles_again(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disasm", module]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# program double: 5 instructions\n# layer twice: double, 6 MACs\nLOAD")
    words = assemble(text, InstructionSet.of(CoreConfig()))
    image = Module.load(module).image[0].tobytes()
    assert b"".join(word.to_bytes(16, "little") for word in words) == image


def test_program_disassembly_assembles_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["program", "disasm", str(GOLDEN / "matrix_maxpool")]) == 0
    words = assemble(capsys.readouterr().out, InstructionSet.of(CoreConfig()), Profile.VTA)
    data = (GOLDEN / "matrix_maxpool/instructions.bin").read_bytes()
    assert b"".join(word.to_bytes(16, "little") for word in words) == data


def test_verify_accepts_and_refuses(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", module]) == 0
    assert capsys.readouterr().out == "double: ok, 5 instructions\n"
    assert main(["verify", str(GOLDEN / "matrix_add"), "--json", "-"]) == 0
    assert result_of(capsys) == [{"program": "matrix_add", "ok": True, "insns": 10, "findings": []}]
    program = ProgramFolder.load(GOLDEN / "matrix_add")
    words = bytearray(program.region("INSN").data)
    words[-16 * 2] ^= 1 << 5  # a flag of the last NOP
    program.with_data("INSN", bytes(words)).save(tmp_path / "broken")
    assert main(["verify", str(tmp_path / "broken")]) == 1
    assert capsys.readouterr().out.startswith("broken: ")


@pytest.mark.parametrize("device", ["reference", "fsim"])
def test_golden_programs_match(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(GOLDEN / "matrix_16x16_relu")
    arguments = ["program", "run", folder, "--device", device, "--latency", "3", "--seed", "4"]
    assert main([*arguments, "--json", "-"]) == 0
    result = result_of(capsys)
    assert result["match"] is True
    assert (result["insns"], result["cycles"], result["status"]) == (13, None, "ok")


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A golden program with one expected bit inverted."""
    ProgramFolder.load(GOLDEN / "matrix_add").save(tmp_path / "wrong")
    expected = bytearray((tmp_path / "wrong/expected_out.bin").read_bytes())
    expected[5] ^= 1
    (tmp_path / "wrong/expected_out.bin").write_bytes(expected)
    return tmp_path / "wrong"


def test_a_mismatch_is_status_1(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["program", "run", str(wrong)]) == 1
    assert "MISMATCH" in capsys.readouterr().out
    assert main(["program", "run", str(wrong), "--json", "-"]) == 1
    result = result_of(capsys)
    assert result["match"] is False
    assert "(OUT + 5)" in result["differences"][1]


def test_nothing_expected_is_no_match(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (wrong / "expected_out.bin").unlink()
    assert main(["program", "run", str(wrong), "--json", "-"]) == 0
    assert result_of(capsys)["match"] is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda words: words[:-16], "program ends without FINISH at instruction 9"),
        (lambda words: b"", "empty program at instruction 0"),
        (lambda words: words[:32] + b"\x07" + words[33:], "undefined opcode at instruction 2"),
        (lambda words: words[:-16] + words[-32:], "deadlock: compute waits for "),
    ],
)
def test_a_program_that_fails_is_status_2_and_one_line(
    change, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = ProgramFolder.load(GOLDEN / "matrix_add")
    program.with_data("INSN", change(program.region("INSN").data)).save(tmp_path / "p")
    settings = json.loads((tmp_path / "p/program.json").read_text())
    assert settings["profile"] == "vta"
    assert main(["program", "run", str(tmp_path / "p"), "--json", "-"]) == 2
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.err.count("\n") == 1
    assert json.loads(captured.out)["match"] is False


def test_bench_has_the_promised_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "c7", "--device", "fsim", "--repeat", "2", "--json", "-"]) == 0
    result = result_of(capsys)
    assert {"network", "layers", "total_cycles", "cycles_per_s", "config", "memory"} <= set(result)
    (layer,) = result["layers"]
    names = {"name", "macs", "cycles", "roofline_cycles", "utilisation", "stalls"}
    assert names <= set(layer)
    assert (layer["name"], layer["macs"]) == ("c7", 6_422_528)
    assert layer["roofline_cycles"] == 25_088
    assert result["match"] is True
    assert result["memory"]["latency"] == 64


def test_targets_lists_configurations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--json", "-"]) == 0
    targets = {entry["name"]: entry for entry in result_of(capsys)}
    assert targets["ultra96"]["config"]["data_bits"] == 128


def test_results_go_to_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--json", str(tmp_path / "t.json")]) == 0
    assert json.loads((tmp_path / "t.json").read_text())[0]["name"] == "sim"
    assert capsys.readouterr().out.startswith("target ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["run", "{module}"], "the following arguments are required: --input"),
        (["run", "{module}", "--input", "{tmp}/none.npz"], "none.npz: No such file"),
        (["run", "{module}", "--input", "{module}"], "not an .npz file"),
        (["run", "{tmp}/none.vitral", "--input", "{x}"], "none.vitral: cannot read the module"),
        (["run", "{tmp}/none.onnx", "--input", "{x}"], "none.onnx"),
        (["run", "{module}", "--input", "{other}"], "the model has no input 'z'; it takes 'x'"),
        (["run", "{module}", "--input", "{x}", "--io", "quantized"], "is compiled already; --io"),
        (["run", "{module}", "--input", "{x}", "--data-width", "96"], "data_bits must be 64, 128"),
        (["run", "{module}", "--input", "{x}", "--outstanding", "0"], "must be at least 1"),
        (["run", "{module}", "--input", "{x}", "--shape", "x"], "must be like input=1,3,224,224"),
        (["run", "{module}", "--input", "{x}", "--output", "/nowhere/o"], "No such file"),
        (["compile", "{module}"], ".vitral"),
        (["compile", "{digits}", "--target", "vu9p"], "no target 'vu9p'; known: sim"),
        (["compile", "{digits}", "-o", "/nowhere/d.vitral"], "cannot write the module"),
        (["disasm", "{short}"], "short.vitral: truncated"),
        (["verify", "{tmp}"], "memory_addresses.csv: cannot read"),
        (["verilog", "--target", "vu9p"], "no target 'vu9p'"),
        (["bench", "c12"], "no benchmark 'c12'; known: c1"),
        (["program"], "the following arguments are required: VERB"),
        (["program", "run", "/nowhere"], "/nowhere/memory_addresses.csv"),
    ],
)
def test_bad_input_is_status_2_and_one_line(
    arguments: list[str],
    text: str,
    module: str,
    x: tuple[str, np.ndarray],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.savez(tmp_path / "other.npz", x=x[1], z=x[1])
    (tmp_path / "short.vitral").write_bytes(Path(module).read_bytes()[:-1])
    places = {
        "module": module,
        "x": x[0],
        "tmp": tmp_path,
        "other": tmp_path / "other.npz",
        "short": tmp_path / "short.vitral",
        "digits": DIGITS,
    }
    assert main([argument.format(**places) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("vitral")
    assert captured.out == ""


@pytest.mark.parametrize("name", ["file", "allow_pickle", "a/b é:0", "../up", "y.npy"])
def test_an_output_of_any_name_is_written(name: str, tmp_path: Path) -> None:
    """Also of names that are parameters of numpy's own writer."""
    from vitral.cli.run import read_arrays, write_arrays

    array = np.arange(6, dtype=np.int8).reshape(2, 3)
    write_arrays(str(tmp_path / "out.npz"), {name: array, "other": array + 1})
    back = read_arrays(str(tmp_path / "out.npz"))
    assert list(back) == [name, "other"]
    np.testing.assert_array_equal(back[name], array)


def test_a_terminal_without_unicode_gets_names_escaped(tmp_path: Path) -> None:
    module = double_module()
    (info,) = module.inputs
    replace(module, inputs=(replace(info, name="é"),)).save(tmp_path / "m.vitral")
    np.savez(tmp_path / "in.npz", x=np.zeros(SHAPE, np.int8))
    command = [sys.executable, "-m", "vitral.cli", "run", str(tmp_path / "m.vitral")]
    run = subprocess.run(
        [*command, "--input", str(tmp_path / "in.npz")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "vitral: the model has no input 'x'; it takes '\\xe9'\n"


@pytest.mark.parametrize("name", ["é", "plain"])
def test_stdout_without_unicode(name: str, tmp_path: Path) -> None:
    module = double_module()
    (layer,) = module.segments[0].layers
    segment = replace(module.segments[0], layers=(replace(layer, name=name),))
    replace(module, steps=(segment,)).save(tmp_path / "m.vitral")
    run = subprocess.run(
        [sys.executable, "-m", "vitral.cli", "disasm", str(tmp_path / "m.vitral")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert f"# layer {name.encode('ascii', 'backslashreplace').decode()}: " in run.stdout
