"""From a float network to the RTL in one go: quantize, compile, run, compare.

Quantizes the float digits network beside this file on 200 images, runs the int8 network on a
device (tsim, the RTL, by default) and all 5,000 test images on fsim, and says how often both find
the digit.

    python examples/quantize/quantize.py
    python examples/quantize/quantize.py --device fsim --method entropy --images 200
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

import vitral
from vitral.compiler.quantize import METHODS, QuantizeConfig, quantize_model

FOLDER = Path(__file__).resolve().parent
FLOAT = FOLDER / "digits_float.onnx"
MOST_LOST = 0.005
Array = npt.NDArray[Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="tsim", help="tsim (the RTL), fsim or reference")
    parser.add_argument("--images", type=int, default=20, help="images for the device")
    parser.add_argument("--method", choices=METHODS, help="how ranges are chosen")
    parser.add_argument("--output", type=Path, help="where to write the int8 model")
    options = parser.parse_args()

    with np.load(FOLDER / "digits.npz") as archive:
        calibration, test = model_input(archive["calibration"]), model_input(archive["test"])
        labels = archive["labels"]
    start = time.perf_counter()
    config = QuantizeConfig(method=options.method) if options.method else QuantizeConfig()
    model = quantize_model(FLOAT, {"image": calibration}, config)
    print(f"quantized on {len(calibration)} images in {time.perf_counter() - start:.1f} s")
    if options.output:
        onnx.save(model, options.output)
    module = vitral.compile(model)
    print(f"compiled; {share(module):.0%} of the MACs on the accelerator")

    real = read_float(test)
    codes = read_int8(module, "fsim", test)
    on_device = read_int8(module, options.device, test[: options.images])
    accuracies = [float((np.argmax(y, axis=1) == labels).mean()) for y in (real, codes)]
    agree = float((np.argmax(real, axis=1) == np.argmax(codes, axis=1)).mean())
    print(f"float: {accuracies[0]:.2%} of {len(test):,} digits")
    print(f"int8:  {accuracies[1]:.2%}, and the same digit as float for {agree:.2%}")
    same = np.array_equal(on_device, codes[: options.images])
    print(f"{options.device}: bytes of {len(on_device)} images {'equal' if same else 'DIFFER'}")
    return 0 if same and accuracies[0] - accuracies[1] <= MOST_LOST else 1


def model_input(pixels: Array) -> Array:
    """Images uint8 (N, 28, 28) as the network takes them, float32 (N, 1, 28, 28) in 0 ... 1."""
    return (pixels.astype(np.float32) / np.float32(255))[:, None]


def share(module: vitral.Module) -> float:
    """Part of all multiply-accumulates that programs do."""
    placed = sum(layer.macs for segment in module.segments for layer in segment.layers)
    return placed / module.macs


def read_float(images: Array) -> Array:
    """Logits of the float network, (N, 10)."""
    session = onnxruntime.InferenceSession(FLOAT, providers=["CPUExecutionProvider"])
    rows = [np.asarray(session.run(None, {"image": x[None]})[0]) for x in images]
    return np.concatenate(rows)


def read_int8(module: vitral.Module, device: str, images: Array) -> Array:
    """Logits of the compiled network on a device, (N, 10)."""
    with vitral.Session(module, device=device) as session:
        rows = [np.array(session.run(None, {"image": x[None]})[0]) for x in images]
        cycles = sum(outcome.cycles or 0 for outcome in session.outcomes())
    if cycles:
        print(f"{device}: {cycles:,} cycles for an image")
    return np.concatenate(rows)


if __name__ == "__main__":
    sys.exit(main())
