"""A network that PyTorch exported, from float to the accelerator."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import vitral
from vitral.compiler.quantize import quantize_model

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "tests/data/pytorch/residual.onnx"


def test_exported_model_is_one_program() -> None:
    model = onnx.load(MODEL)
    assert model.producer_name == "pytorch"
    (name,) = (value.name for value in model.graph.input)
    images = np.random.default_rng(0).random((16, 3, 32, 32), np.float32)
    module = vitral.compile(quantize_model(model, {name: images}))
    assert len(module.segments) == 1
    assert sum(layer.macs for layer in module.segments[0].layers) == module.macs
    results = {}
    for device in ("reference", "fsim"):
        with vitral.Session(module, device) as session:
            (results[device],) = session.run(None, {name: images[:1]})
    np.testing.assert_array_equal(results["reference"], results["fsim"])
    session = onnxruntime.InferenceSession(MODEL)
    real = np.asarray(session.run(None, {name: images[:1]})[0])
    noise = np.square(real - results["fsim"]).mean()
    assert 10 * np.log10(np.square(real).mean() / noise) > 30


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_the_example_itself(tmp_path: Path) -> None:
    script = ROOT / "examples/pytorch/export.py"
    output = tmp_path / "net.onnx"
    command = [sys.executable, str(script), "--device", "fsim", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "dB of signal" in done.stdout
    assert len(onnx.load(output).graph.node) == len(onnx.load(MODEL).graph.node)
