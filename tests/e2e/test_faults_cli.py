"""The command: what fails ends with status 2 (a mismatch: 1) and exactly one line on stderr."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from cases import ModelBuilder, build_qdq, refused_forms
from e2e.compiled import case_named, compiled
from e2e.tampered import MISTAKES, as_bytes, instructions_of, tampered_words

from vitral.cli import main
from vitral.config import CoreConfig
from vitral.isa import Memory, Profile
from vitral.program import Launch, ProgramFolder, Region

DEVICES = ("reference", "fsim", "tsim")
GOLDEN = Path(__file__).parents[1] / "data" / "golden"
CASE = case_named("V2")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with the case as model.onnx, model.vitral and in.npz."""
    onnx.save(build_qdq(CASE), tmp_path / "model.onnx")
    compiled("V2", "qdq").save(tmp_path / "model.vitral")
    np.savez(tmp_path / "in.npz", x=CASE.x)
    return tmp_path


def refusal(capsys: Capture, *arguments: str | Path, status: int = 2) -> str:
    """The one line on stderr of a command that ends with `status`."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == status
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1, captured.err
    assert captured.err.startswith("vitral")
    return captured.err


def run(*names: str | Path) -> tuple[str | Path, ...]:
    model, feeds = names
    return ("run", model, "--input", feeds, "--device", "fsim")


def check(capsys: Capture, files: Path) -> None:
    """The same files still give the right bytes."""
    out = files / "out.npz"
    assert main([str(word) for word in (*run(files / "model.vitral", files / "in.npz"),
                                        "--output", out)]) == 0  # fmt: skip
    capsys.readouterr()
    with np.load(out) as arrays:
        CASE.check(arrays["y"])


def case_folder(words: list[int]) -> ProgramFolder:
    """The case's program as a raw folder: its arena is one region, with other instructions."""
    module = compiled("V2", "qdq")
    (segment,) = module.segments
    base = 0x1000_0000
    arena = np.zeros(module.arena_bytes, np.uint8)
    for at, data in module.image.items():
        arena[at : at + data.size] = data
    end = segment.insn_offset
    return ProgramFolder(
        name="case",
        config=CoreConfig(),
        launch=Launch(
            insn_base=base + end,
            insn_count=len(words),
            profile=Profile.VITRAL,
            bases=dict.fromkeys(Memory, base),
            limit_low=base,
            limit_high=base + (1 << 20),
        ),
        regions=(
            Region("OUT", base + 4096, bytes(4096)),
            Region("INP", base, arena[:4096].tobytes()),
            Region("WGT", base + 8192, arena[8192:end].tobytes()),
            Region("INSN", base + end, as_bytes(words).tobytes()),
        ),
        expected_out=b"",
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_program(mistake: str, device: str, tmp_path: Path, capsys: Capture) -> None:
    words, text = tampered_words(instructions_of(compiled("V2", "qdq")), mistake)
    case_folder(words).save(tmp_path / "p")
    line = refusal(capsys, "program", "run", tmp_path / "p", "--device", device)
    assert text in line


@pytest.mark.parametrize("device", DEVICES)
def test_an_empty_program(device: str, tmp_path: Path, capsys: Capture) -> None:
    program = ProgramFolder.load(GOLDEN / "matrix_add")
    program.with_data("INSN", b"").save(tmp_path / "p")
    line = refusal(capsys, "program", "run", tmp_path / "p", "--device", device)
    assert "empty program at instruction 0" in line


@pytest.mark.parametrize("device", DEVICES)
def test_a_mismatch(device: str, tmp_path: Path, capsys: Capture) -> None:
    """Not an error of the program: status 1, and the report says where."""
    shutil.copytree(GOLDEN / "matrix_add", tmp_path / "p")
    expected = bytearray((tmp_path / "p/expected_out.bin").read_bytes())
    expected[-1] ^= 128
    (tmp_path / "p/expected_out.bin").write_bytes(expected)
    arguments = ["program", "run", str(tmp_path / "p"), "--device", device, "--json", "-"]
    assert main(arguments) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["match"] is False
    assert len(result["differences"]) == 2
    assert f"OUT + {len(expected) - 1}" in result["differences"][1]


def _flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "model.vitral: "),
    "ten bytes": (lambda data: data[:10], "model.vitral: truncated"),
    "half the header": (lambda data: data[:200], "model.vitral: truncated"),
    "half": (lambda data: data[: len(data) // 2], "model.vitral: truncated"),
    "all but a byte": (lambda data: data[:-1], "model.vitral: truncated"),
    "a byte more": (lambda data: data + b"\0", "model.vitral: "),
    "a bit of the header": (lambda data: _flip(data, 100), "model.vitral: corrupt"),
    "a bit of the data": (lambda data: _flip(data, len(data) - 100), "model.vitral: corrupt"),
    "a bit of the sum": (lambda data: _flip(data, 40), "model.vitral: corrupt"),
    "a later version": (lambda data: data[:8] + b"\x09" + data[9:], "model.vitral: "),
    "another file": (lambda data: b"PK\x03\x04" + data[4:], "model.vitral: "),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("command", ["run", "disasm", "verify"])
def test_a_damaged_module(command: str, damage: str, files: Path, capsys: Capture) -> None:
    path = files / "model.vitral"
    good = path.read_bytes()
    change, text = DAMAGE[damage]
    path.write_bytes(change(good))
    arguments = run(path, files / "in.npz") if command == "run" else (command, path)
    assert text in refusal(capsys, *arguments)
    path.write_bytes(good)
    check(capsys, files)


def unsupported() -> onnx.ModelProto:
    b = ModelBuilder()
    x = b.dequantize("x", "x_real", 0.5, np.array(0, np.int8))
    b.quantize(b.node("RandomNormalLike", [x], "det"), "y", 0.5, np.array(0, np.int8))
    return b.model({"x": (np.int8, (1, 2, 2))}, {"y": (np.int8, (1,))})


MODELS: dict[str, tuple[Callable[[], bytes], str]] = {
    "operator": (lambda: unsupported().SerializeToString(), "'det_RandomNormalLike' (Random"),
    "scale": (lambda: refused_forms()["scale zero"].SerializeToString(), "node 'y_Quant"),
    "NaN": (lambda: refused_forms()["scale NaN"].SerializeToString(), "node 'y_Quant"),
    "empty": (lambda: b"", "model.onnx: "),
    "truncated": (lambda: build_qdq(CASE).SerializeToString()[:-40], "model.onnx: "),
    "half": (lambda: build_qdq(CASE).SerializeToString()[:900], "model.onnx: "),
    "text": (lambda: b"This is no model.\n" * 20, "model.onnx: "),
    "module": (lambda: b"\x89VTRLMOD" + bytes(200), "model.onnx: "),
}


@pytest.mark.parametrize("fault", MODELS)
@pytest.mark.parametrize("command", ["run", "compile", "verify"])
def test_a_model_that_cannot_be_compiled(
    command: str, fault: str, files: Path, capsys: Capture
) -> None:
    path = files / "model.onnx"
    make, text = MODELS[fault]
    path.write_bytes(make())
    arguments = run(path, files / "in.npz") if command == "run" else (command, path)
    assert text in refusal(capsys, *arguments)


WRONG_INPUTS: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "none": ({}, "input 'x' must be int8 (1, 17, 5, 7), it is missing"),
    "name": ({"image": CASE.x}, "the model has no input 'image'; it takes 'x'"),
    "one more": ({"x": CASE.x, "w": CASE.x}, "the model has no input 'w'; it takes 'x'"),
    "shape": ({"x": CASE.x[0]}, "got int8 (17, 5, 7)"),
    "dtype": ({"x": CASE.x.astype(np.float32)}, "got float32 (1, 17, 5, 7)"),
}


@pytest.mark.parametrize("fault", WRONG_INPUTS)
def test_wrong_inputs(fault: str, files: Path, capsys: Capture) -> None:
    arrays, text = WRONG_INPUTS[fault]
    np.savez(files / "wrong.npz", **arrays)  # pyright: ignore[reportArgumentType]  # numpy's stub
    assert text in refusal(capsys, *run(files / "model.vitral", files / "wrong.npz"))
    check(capsys, files)


FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no table": (lambda p: (p / "memory_addresses.csv").unlink(), "memory_addresses.csv: cannot"),
    "empty table": (lambda p: (p / "memory_addresses.csv").write_text(""), "needs a line for"),
    "binary table": (lambda p: (p / "memory_addresses.csv").write_bytes(b"\xff\x00" * 9), "csv:1"),
    "no instructions": (lambda p: (p / "instructions.bin").unlink(), "instructions.bin: cannot"),
    "odd size": (lambda p: (p / "instructions.bin").write_bytes(bytes(17)), "17 bytes"),
    "no operand": (lambda p: (p / "uop.bin").unlink(), "uop.bin: cannot read"),
    "settings": (lambda p: (p / "program.json").write_text("{"), "program.json: not a"),
    "settings list": (lambda p: (p / "program.json").write_text("[1]"), "program.json: not a"),
    "limit text": (
        lambda p: (p / "program.json").write_text('{"limit_low": "low"}'),
        "program.json: not a",
    ),
    "block": (
        lambda p: (p / "program.json").write_text('{"config": {"block": 13}}'),
        "program.json: not a",
    ),
}


@pytest.mark.parametrize("fault", FOLDERS)
def test_a_folder_that_is_no_program(fault: str, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "p"
    shutil.copytree(GOLDEN / "matrix_16x16", folder)
    damage, text = FOLDERS[fault]
    damage(folder)
    for command in (("program", "run"), ("program", "disasm"), ("verify",)):
        assert text in refusal(capsys, *command, folder)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("run", "{f}/model.vitral", "--input", "{f}/in.npz", "--device", "fpga"), "'fpga'"),
        (("run", "{f}/none.vitral", "--input", "{f}/in.npz"), "none.vitral"),
        (("run", "{f}/none.onnx", "--input", "{f}/in.npz"), "none.onnx"),
        (("run", "{f}", "--input", "{f}/in.npz"), "{f}"),
        (("run", "{f}/model.vitral", "--input", "{f}/none.npz"), "none.npz"),
        (("run", "{f}/model.vitral", "--input", "{f}"), "{f}"),
        (("run", "{f}/model.vitral", "--input", "{f}/model.onnx"), "model.onnx"),
        (("run", "{f}/model.vitral", "--input", "{f}/in.npz", "--output", "{f}"), "{f}"),
        (("run", "{f}/model.onnx", "--input", "{f}/in.npz", "--shape", "x=1,2,3,4"), "x"),
        (("run", "{f}/model.onnx", "--input", "{f}/in.npz", "--shape", "q=7"), "q"),
        (("run", "{f}/model.onnx", "--input", "{f}/in.npz", "--target", "none"), "'none'"),
        (("compile", "{f}/model.onnx", "-o", "{f}/no/where.vitral"), "where.vitral"),
        (("compile", "{f}/model.onnx", "--json", "{f}/no/where.json"), "where.json"),
        (("compile", "{f}"), "{f}"),
        (("program", "run", "{f}"), "memory_addresses.csv"),
        (("program", "run", "{f}/in.npz"), "memory_addresses.csv"),
        (("program", "run", "{f}", "--device", "null"), "'null'"),
        (("bench", "c2", "--device", "fpga"), "'fpga'"),
        (("bench", "c2", "--outstanding", "65"), "outstanding"),
        (("bench", "c2", "--data-width", "48"), "data_bits"),
        (("bench", "c2", "--requant-lanes", "3"), "requant_lanes must be one of [1, 2, 4, 8]"),
        (("verilog", "--target", "pynq-z1", "-o", "{f}/no/core.v"), "core.v"),
    ],
)
def test_wrong_arguments(
    arguments: tuple[str, ...], text: str, files: Path, capsys: Capture
) -> None:
    line = refusal(capsys, *(word.format(f=files) for word in arguments))
    assert text.format(f=files) in line


def test_a_cycle_limit_is_one_line(files: Path, capsys: Capture) -> None:
    arguments = run(files / "model.vitral", files / "in.npz")[:-1]
    line = refusal(capsys, *arguments, "tsim", "--max-cycles", "200")
    assert "segment0: time-out: " in line
    assert " at instruction " in line


@pytest.mark.parametrize("arguments", [
    ("run", "{f}/short.vitral", "--input", "{f}/in.npz"),
    ("compile", "{f}/bad.onnx"),
    ("program", "run", "{f}"),
])  # fmt: skip
def test_the_process_shows_no_traceback(arguments: tuple[str, ...], files: Path) -> None:
    (files / "short.vitral").write_bytes((files / "model.vitral").read_bytes()[:300])
    (files / "bad.onnx").write_bytes(unsupported().SerializeToString())
    words = [word.format(f=files) for word in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "vitral.cli", *words], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
