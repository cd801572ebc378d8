"""What cannot be quantized is refused in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from digits import FLOAT_MODEL, INT8_MODEL
from float_nets import FloatNet, float_net, images

from vitral.cli import main
from vitral.compiler.quantize import QuantizeConfig, quantize_model
from vitral.errors import QuantizeError, VitralError

GOOD = images(4)


def with_nan() -> np.ndarray:
    broken = GOOD.copy()
    broken[2, 0, 5, 5] = np.nan
    return broken


CALIBRATIONS: dict[str, tuple[Any, str]] = {
    "no arrays": ({}, "needs arrays x, got none"),
    "wrong name": ({"y": GOOD}, "needs arrays x, got y"),
    "one too many": ({"x": GOOD, "y": GOOD}, "needs arrays x, got x, y"),
    "wrong shape": ({"x": GOOD[:, :, 1:]}, r"needs shape \[samples, 3, 16, 16\], got"),
    "no sample axis": ({"x": GOOD[0]}, r"needs shape \[samples, 3, 16, 16\], got \[3, 16, 16\]"),
    "bytes": ({"x": (GOOD > 0).astype(np.uint8)}, "needs float32, got uint8"),
    "empty": ({"x": GOOD[:0]}, "at least one sample, got none"),
    "nan": ({"x": with_nan()}, "finite numbers, got others in sample 2"),
    "missing file": ("nowhere.npz", "nowhere.npz: No such file"),
}


@pytest.mark.parametrize("case", CALIBRATIONS)
def test_calibration_data_that_does_not_fit(case: str) -> None:
    calibration, text = CALIBRATIONS[case]
    with pytest.raises(QuantizeError, match=text) as caught:
        quantize_model(float_net("residual"), calibration)
    assert "\n" not in str(caught.value)


def test_a_quantized_model_is_refused() -> None:
    with pytest.raises(QuantizeError, match=r"quantized already: node 'conv1_b_DequantizeLinear'"):
        quantize_model(INT8_MODEL, np.zeros((1, 1, 28, 28), np.float32))


def test_a_model_without_layers_is_refused() -> None:
    net = FloatNet([1, 3, 16, 16])
    model = net.finish(net.op("Relu", "x"))
    with pytest.raises(QuantizeError, match="nothing to quantize"):
        quantize_model(model, GOOD)


def test_infinite_activations_are_named() -> None:
    net = FloatNet([1, 3, 16, 16])
    inner = net.op("Mul", net.conv("x", 3, 2), net.op("Exp", net.constant(np.array(90.0))))
    x = net.op("Mul", inner, inner)
    with pytest.raises(QuantizeError, match="not finite on the calibration samples"):
        quantize_model(net.finish(net.conv(x, 2, 2)), GOOD * np.float32(1e5))


CONFIGS: dict[str, tuple[Callable[[], Any], str]] = {
    "method": (lambda: QuantizeConfig(method="best"), "minmax, percentile, entropy, mse"),  # type: ignore[arg-type]
    "percentile": (lambda: QuantizeConfig(percentile=101), "at most 100, got 101"),
    "activations": (lambda: QuantizeConfig(activations="none"), "affine, symmetric"),  # type: ignore[arg-type]
    "batch": (lambda: QuantizeConfig(batch=0), "at least 1, got 0"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_choices_that_are_none(case: str) -> None:
    make, text = CONFIGS[case]
    with pytest.raises(QuantizeError, match=text):
        make()


def test_an_unknown_node_to_exclude_is_named() -> None:
    with pytest.raises(QuantizeError, match="no node 'conv99' in the model"):
        quantize_model(float_net("residual"), GOOD, QuantizeConfig(exclude=("conv99",)))


def test_shapes_to_bind_are_checked() -> None:
    for shapes, text in (
        ({"n": 1}, "no input or symbol 'n'"),
        ({"x": (1, 3)}, "needs 4 sizes"),
        ({"x": (1, 3, 8, 16)}, "dimension 2 is 16, not 8"),
    ):
        with pytest.raises(QuantizeError, match=text):
            quantize_model(float_net("residual"), GOOD, shapes=shapes)


@pytest.mark.parametrize("size", [10, 2000])
def test_broken_files_are_refused(size: int, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(FLOAT_MODEL.read_bytes()[:size])
    with pytest.raises(VitralError):
        quantize_model(model, GOOD)
    data = tmp_path / "data.npz"
    np.savez(data, x=GOOD)
    data.write_bytes(data.read_bytes()[:size])
    with pytest.raises(QuantizeError, match=r"data\.npz"):
        quantize_model(float_net("residual"), data)


COMMANDS = {
    "no calibration": ([], "needs --calibrate"),
    "labels": (["--calibrate", "x.npz", "--labels", "l.npy"], r"needs integers of shape \[4\]"),
    "no labels": (["--calibrate", "x.npz", "--labels", "none.npy"], "none.npy: No such file"),
    "other scheme": (["--calibrate", "x.npz", "--skip-k-conv", "1"], "--skip-k-conv is no option"),
    "this scheme": (["--scheme", "global-scale", "--calibrate", "x.npz"], "--calibrate is no opt"),
    "method": (["--calibrate", "x.npz", "--method", "best"], "invalid choice: 'best'"),
    "directory": (["--calibrate", "."], "Is a directory"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_the_command_refuses_in_one_line(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").write_bytes(float_net("plain").SerializeToString())
    np.savez("x.npz", x=GOOD)
    np.save("l.npy", np.zeros(3, np.int64))
    arguments, text = COMMANDS[case]
    assert main(["quantize", "m.onnx", *arguments]) == 2
    error = capsys.readouterr().err
    assert text.split("\\")[0] in error
    assert len(error.splitlines()) == 1
