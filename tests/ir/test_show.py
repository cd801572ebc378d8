"""`vitral show`, `vitral.ir` and what `vitral compile` makes of text."""

from pathlib import Path

import numpy as np
import pytest

import vitral
from vitral.cli.main import main
from vitral.compiler.after import after_pass, pass_names
from vitral.compiler.ir import to_text

DIGITS = Path(__file__).parents[2] / "examples/digits"
FLOAT, INT8 = str(DIGITS / "digits_float.onnx"), str(DIGITS / "digits_int8.onnx")


def test_show_prints_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", FLOAT]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "fn (%image: Tensor[(1, 1, 28, 28), float32]) {",
        "  %0 = meta[relay.Constant][0]",
        "  %1 = nn.conv2d(%image, %0, padding=[1, 1])",
        "  %2 = meta[relay.Constant][1]",
    ]
    assert lines[-1] == "}"


def test_show_after_each_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--list-passes"]) == 0
    listed = capsys.readouterr().out
    for flow, names in pass_names().items():
        assert f"{flow}: {' '.join(names)}\n" in listed
    assert "vta.conv2d" not in to_text(after_pass(INT8, "sign_activations"), metadata=False)
    assert main(["show", INT8, "--after", "lower_convs", "--types"]) == 0
    shown = capsys.readouterr().out
    assert "= vta.conv2d(" in shown
    assert "# ty=Tensor[(1, 16, 28, 28), int8]" in shown
    assert "fold_tables:2" in listed


def test_show_after_passes_of_quantization(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", FLOAT, "--after", "annotate"]) == 0
    assert "annotation.simulated_quantize(" in capsys.readouterr().out
    assert main(["show", FLOAT, "--after", "realize", "--results"]) == 0
    shown = capsys.readouterr().out
    assert "\n    -> Tensor[(1, 10), float32] {\n" in shown
    assert "= right_shift(" in shown


def test_show_draws(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", FLOAT, "--dot"]) == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith("digraph {\n")
    assert '"in image" -> op0 [label="1x1x28x28 float32"];' in drawn
    assert drawn.count("[label=\"nn.conv2d") == 5  # fmt: skip
    assert drawn.endswith("}\n")


def test_text_files_show_and_compile_like_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "digits.ir")
    assert main(["show", INT8, "-o", path]) == 0
    assert main(["show", path]) == 0
    from_text = capsys.readouterr().out
    assert main(["show", INT8]) == 0
    assert from_text == capsys.readouterr().out
    modules = [tmp_path / "a.vitral", tmp_path / "b.vitral"]
    for model, module in zip((path, INT8), modules, strict=True):
        assert main(["compile", model, "-o", str(module)]) == 0
    assert modules[0].read_bytes() == modules[1].read_bytes()


def test_facade(tmp_path: Path) -> None:
    graph = vitral.ir.from_onnx(FLOAT)
    path = tmp_path / "float.ir"
    vitral.ir.save(graph, path)
    x = np.random.default_rng(0).random((1, 1, 28, 28), dtype=np.float32)
    (want,) = vitral.ir.evaluate(graph, {"image": x})
    for again in (vitral.ir.parse(path), vitral.ir.parse(str(path)),
                  vitral.ir.parse(vitral.ir.to_text(graph)),
                  vitral.ir.from_onnx(vitral.ir.to_onnx(graph))):  # fmt: skip
        (got,) = vitral.ir.evaluate(again, {"image": x})
        np.testing.assert_array_equal(got, want)


WRONG = [
    (["show"], "show needs a model"),
    (["show", "none.onnx"], "none.onnx: No such file or directory"),
    (["show", "none.ir"], "none.ir: No such file or directory"),
    (["show", FLOAT, "--after", "no_such_pass"], "needs a pass among import, note_edges"),
    (["show", FLOAT, "--after", "lower_calls"], "lower_calls needs a graph of integers"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_bad_input_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1


def test_errors_of_a_text_file_name_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.ir"
    path.write_text("fn (%x: Tensor[(2,), float32]) {\n  %0 = nn.relu(%y)\n  %0\n}\n")
    assert main(["compile", str(path), "-o", str(tmp_path / "m.vitral")]) == 2
    assert capsys.readouterr().err == (
        f"vitral: {path}:2:16: needs a value defined before, got '%y'\n"
    )
