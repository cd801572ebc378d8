"""`vitral quantize`, its report, and accuracy on 5,000 digits."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from float_nets import FloatNet, float_net, images

import vitral
from vitral.cli import main
from vitral.compiler.quantize import QuantizeConfig
from vitral.compiler.quantize.explain import explain
from vitral.compiler.quantize.measure import Noise, score
from vitral.compiler.quantize.quantize import quantize
from vitral.compiler.quantize.samples import Samples
from vitral.errors import QuantizeError

EXAMPLE = Path(__file__).parents[2] / "examples" / "quantize"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").write_bytes(float_net("residual").SerializeToString())
    np.savez("x.npz", x=images(16))
    np.save("labels.npy", np.arange(16) % 10)
    return tmp_path


def test_the_command_writes_a_model_that_compiles(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quantize", "m.onnx", "--calibrate", "x.npz"]) == 0
    assert "17 of 17 operators read int8" in capsys.readouterr().out
    module = vitral.compile(folder / "m.int8.onnx")
    assert module.macs > 0


def test_the_report_in_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--calibrate", "x.npz", "-o", "out.onnx", "--method", "minmax", "--equalize"]
    arguments += ["--labels", "labels.npy", "--report", "-", "--suggest", "2"]
    assert main(["quantize", "m.onnx", *arguments]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["method"], report["samples"]) == ("minmax", 16)
    assert report["equalized_pairs"] == 2
    layers = {layer["tensor"]: layer for layer in report["layers"]}
    assert layers["x"]["op"] == "input"
    assert layers["x"]["sqnr_db"] > 35
    for layer in layers.values():
        assert layer["low"] <= layer["least"] + layer["scale"]
        assert layer["high"] >= layer["most"] - layer["scale"]
        assert layer["sqnr_db"] > 15
        assert 0 <= layer["saturated"] < 0.05
    assert report["float_nodes"] == []
    assert report["outcome"]["rows"] == 16
    assert 0 <= report["outcome"]["float_top1"] <= 1
    onnx.checker.check_model(onnx.load("out.onnx"))


def test_the_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--calibrate", "x.npz", "--test", "x.npz", "--labels", "labels.npy"]
    assert main(["quantize", "m.onnx", *arguments]) == 0
    text = capsys.readouterr().out
    for word in ("SQNR dB", "saturated", "GlobalAveragePool", "agree on", "top-1 of float"):
        assert word in text


def test_noise_by_hand() -> None:
    noise = Noise()
    noise.add(np.array([3.0, 4.0]), np.array([3.0, 3.5]), (0.0, 3.5))
    noise.add(np.array([0.0, 5.0]), np.array([0.0, 5.0]), (0.0, 6.0))
    assert (noise.signal, noise.noise, noise.saturated) == (50.0, 0.25, 0.25)
    assert noise.sqnr_db == pytest.approx(23.0103, abs=1e-4)  # 10 log10 200
    assert Noise().sqnr_db is None


def test_a_layer_that_loses_much_is_suggested() -> None:
    """A weight 1,000 times the others, on a channel that is 0: all others lose their codes."""
    net = FloatNet([1, 3, 16, 16])
    x = net.op("Relu", net.conv("x", 3, 8))
    net.constants[net.nodes[0].input[1]][:, 2, 1, 1] = 1000
    model = net.finish(net.op("Flatten", net.op("GlobalAveragePool", net.conv(x, 8, 4))))
    samples = images(16)
    samples[:, 2] = 0
    plain = QuantizeConfig(bias_correction=False)
    quantized = quantize(model, samples, plain)
    (best,) = explain(quantized, tries=2).suggestions
    assert best.node == "conv0"
    assert best.gain_db > 10
    assert best.sqnr_db_if_float - best.sqnr_db == pytest.approx(best.gain_db)
    kept = quantize(model, samples, replace(plain, exclude=(best.node,)))
    assert explain(kept).sqnr_db == pytest.approx(best.sqnr_db_if_float, abs=1e-6)


def test_digits_lose_less_than_half_a_point() -> None:
    """5,000 digits that neither training nor calibration has seen, default settings."""
    with np.load(EXAMPLE / "digits.npz") as archive:
        pixels = {name: archive[name] for name in ("calibration", "test")}
        labels = archive["labels"]
    seen = {image.tobytes() for image in pixels["calibration"]}
    assert not seen & {image.tobytes() for image in pixels["test"]}
    data = {k: (v.astype(np.float32) / np.float32(255))[:, None] for k, v in pixels.items()}
    model = onnx.load(EXAMPLE / "digits_float.onnx")
    for info in (*model.graph.input, *model.graph.output):  # as it is, image by image, is slow
        info.type.tensor_type.shape.dim[0].dim_param = "n"
    quantized = quantize(model, {"image": data["calibration"]})
    samples = Samples({"image": data["test"]}, 100)
    outcome = score(quantized.graph.to_model(), quantized.model, samples, labels.astype(np.int64))
    assert outcome.rows == 5000
    assert outcome.float_top1 is not None
    assert outcome.int8_top1 is not None
    assert outcome.float_top1 > 0.98
    assert outcome.int8_top1 >= outcome.float_top1 - 0.005
    assert outcome.agreement > 0.995


def test_global_scale_writes_the_text_form(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--scheme", "global-scale", "--global-scale", "8", "--skip-k-conv", "0"]
    assert main(["quantize", "m.onnx", *arguments, "-o", "m.ir"]) == 0
    assert "right_shift" in Path("m.ir").read_text()
    assert main(["quantize", "m.onnx", "--scheme", "global-scale", "--nbit-input", "99"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_labels_that_do_not_fit_are_refused() -> None:
    quantized = quantize(float_net("plain"), images(4))
    with pytest.raises(QuantizeError, match=r"integers of shape \[4\], got float64 \[4\]"):
        explain(quantized, labels=np.zeros(4))
