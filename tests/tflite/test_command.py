"""`vitral compile` and `vitral run` take TFLite files."""

import json
from pathlib import Path

import numpy as np
import pytest
from litert.interpreter import run_litert
from litert.nets import NETS

from vitral.cli import main


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "keywords.tflite"
    path.write_bytes(NETS["ds_cnn"](5))
    return path


@pytest.mark.parametrize("rounding", ["reference", "xnnpack"])
def test_compile_and_run(model: Path, rounding: str, capsys: pytest.CaptureFixture[str]):
    arguments = ["compile", str(model), "--tflite-rounding", rounding, "--json", "-"]
    assert main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["macs"] == result["accelerator_macs"] == 2656768
    x = np.random.default_rng(0).integers(-128, 128, (1, 49, 10, 1)).astype(np.int8)
    given, found = model.with_suffix(".npz"), str(model.with_suffix(".out.npz"))
    np.savez(given, x0=x)
    module = str(model.with_suffix(".vitral"))
    assert main(["run", module, "--input", str(given), "--output", found, "--json", "-"]) == 0
    with np.load(found) as outputs:
        arrays = [outputs[name] for name in outputs.files]
    expected = run_litert(model.read_bytes(), [x], rounding)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, expected, strict=True))


def test_rounding_of_a_compiled_module_cannot_change(
    model: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["compile", str(model)]) == 0
    module = str(model.with_suffix(".vitral"))
    arguments = ["verify", module, "--tflite-rounding", "single"]
    capsys.readouterr()
    assert main(arguments) != 0
    assert "--tflite-rounding cannot change it" in capsys.readouterr().err
