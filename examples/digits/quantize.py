"""Quantize `digits_float.onnx` to int8 QDQ form: `digits_int8.onnx`.

onnxruntime's static quantizer on 200 training images: weights int8 symmetric per output channel,
activations int8 per tensor with zero point, bias int32. Every Conv, Gemm and Add stands in a group
DQ -> op -> Q. No Relu is left: its output starts at 0, so the zero point is -128 and saturation
clamps.

    python quantize.py
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)

__all__ = ["ImageReader", "main", "model_input"]

_HERE = Path(__file__).parent


def model_input(image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The model's input float32 (1, 1, 28, 28) of a uint8 (28, 28) image: pixel / 255."""
    return (image.astype(np.float32) / np.float32(255)).reshape(1, 1, 28, 28)


class ImageReader(CalibrationDataReader):
    """Feeds uint8 images (N, 28, 28) one at a time to the calibrator."""

    def __init__(self, images: np.ndarray[Any, Any]) -> None:
        self._next: Iterator[np.ndarray[Any, Any]] = iter(images)

    def get_next(self) -> dict[str, np.ndarray[Any, Any]] | None:
        image = next(self._next, None)
        return None if image is None else {"image": model_input(image)}


def main() -> None:
    """Command line entry: quantize the model beside this file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=_HERE)
    folder = parser.parse_args().folder
    images = np.load(folder / "digits_images.npz")["calibration_images"]
    target = folder / "digits_int8.onnx"
    quantize_static(
        folder / "digits_float.onnx",
        target,
        ImageReader(images),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
    )
    onnx.save(_plain(onnx.load(target)), target)
    print(f"{target.name}: {target.stat().st_size} bytes")


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop inferred shapes and unused operator sets: the file then says one thing once."""
    del model.graph.value_info[:]
    used = {node.domain for node in model.graph.node}
    kept = [entry for entry in model.opset_import if entry.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(e.domain, e.version) for e in kept)
    onnx.checker.check_model(model, full_check=True)
    return model


if __name__ == "__main__":
    main()
