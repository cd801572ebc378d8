"""Tiny-YOLOv2 from Darknet's files to the RTL: quantize, run, decode boxes, draw them.

    python examples/yolo/demo.py                              # a network of seeded weights
    python examples/yolo/demo.py --cfg yolov2-tiny-voc.cfg --weights yolov2-tiny-voc.weights \\
        --picture dog.jpg --calibrate photos/*.jpg

Writes boxes.png: what the float network finds beside what int8 finds on the device, and says how
far their outputs are apart.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
import numpy.typing as npt
import onnxruntime
from matplotlib import cbook
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

import vitral
from vitral.compiler.quantize import quantize_model
from vitral.runtime.detection import Box, Head, decode, suppress

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from seeded import seeded_weights  # noqa: E402  # from the path just added

Array = npt.NDArray[np.float32]
LEAST_SIGNAL = 20.0
"""Decibels of signal over noise below which int8 counts as wrong."""


def main() -> int:
    options = _options()
    cfg = options.cfg.read_text()
    weights = options.weights or seeded_weights(cfg)
    detector = vitral.ir.from_darknet(cfg, weights)
    model = vitral.ir.to_onnx(detector.graph)
    shape = detector.graph.types["data"].shape
    picture = Image.open(options.picture).convert("RGB")
    image = prepared(picture, shape)

    start = time.perf_counter()
    samples = np.concatenate([image, *_samples(options.calibrate, picture, shape)])
    module = vitral.compile(quantize_model(model, {"data": samples}))
    print(f"quantized on {len(samples)} pictures and compiled in {_since(start)}")

    names = [head.value for head in detector.heads]
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    real = [np.asarray(y) for y in session.run(names, {"data": image})]
    codes = run(module, "fsim", names, image)
    on_device = run(module, options.device, names, image)
    same = all(np.array_equal(a, b) for a, b in zip(codes, on_device, strict=True))
    print(f"{options.device}: bytes {'equal to' if same else 'DIFFER from'} fsim's")

    signal = min(decibels(a, b) for a, b in zip(real, on_device, strict=True))
    print(f"int8 outputs: {signal:.1f} dB of signal over the noise of rounding")
    boxes = [found(outputs, detector.heads, options.threshold) for outputs in (real, on_device)]
    print(f"boxes above {options.threshold}: {len(boxes[0])} float, {len(boxes[1])} int8")
    draw(picture, boxes, ["float", f"int8 on {options.device}"], options.output)
    print(f"drawn in {options.output}")
    return 0 if same and signal >= LEAST_SIGNAL else 1


def prepared(picture: Image.Image, shape: Sequence[int]) -> Array:
    """A picture as the network takes it, float32 (1, 3, H, W) in 0 ... 1, stretched."""
    _, _, height, width = shape
    pixels = np.asarray(picture.resize((width, height)), np.float32) / np.float32(255)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def run(module: vitral.Module, device: str, names: list[str], image: Array) -> list[Array]:
    """Output maps of one image; says how long the device took in cycles, where it counts them."""
    with vitral.Session(module, device) as session:
        start = time.perf_counter()
        results = session.run(names, {"data": image})
        cycles = sum(outcome.cycles or 0 for outcome in session.outcomes())
        counted = f"{cycles:,} cycles, " if cycles else ""
        print(f"{device}: {counted}{_since(start)} on this host")
    return results


def decibels(real: Array, other: Array) -> float:
    """Signal over noise."""
    noise = float(np.square(real - other).mean())
    return float(10 * np.log10(np.square(real).mean() / noise)) if noise else float("inf")


def found(outputs: list[Array], heads: Sequence[Head], threshold: float) -> list[Box]:
    """Boxes of all heads, the best first, without those upon better ones."""
    pairs = zip(outputs, heads, strict=True)
    return suppress([box for output, head in pairs for box in decode(output, head, threshold)])


def draw(picture: Image.Image, boxes: list[list[Box]], titles: list[str], path: Path) -> None:
    """Both lists of boxes on the picture, side by side."""
    figure = Figure(figsize=(12, 6), layout="constrained")
    colours = matplotlib.colormaps["tab20"]
    for axes, listed, title in zip(figure.subplots(1, 2), boxes, titles, strict=True):
        axes.imshow(picture)
        axes.set_axis_off()
        axes.set_title(f"{title}: {len(listed)} boxes")
        for box in listed[:20]:
            width, height = box.width * picture.width, box.height * picture.height
            corner = box.x * picture.width - width / 2, box.y * picture.height - height / 2
            colour = colours(box.label % 20)
            axes.add_patch(Rectangle(corner, width, height, fill=False, color=colour, lw=2))
            axes.text(*corner, f"{box.label} {box.score:.2f}", color=colour, clip_on=True)
    figure.savefig(path, dpi=80)


def _samples(paths: list[Path], picture: Image.Image, shape: Sequence[int]) -> list[Array]:
    """Pictures to calibrate on; parts of the one picture when there are none."""
    if paths:
        return [prepared(Image.open(path).convert("RGB"), shape) for path in paths]
    width, height = picture.size
    corners = [(0, 0), (width // 3, 0), (0, height // 3), (width // 3, height // 3)]
    size = (2 * width // 3, 2 * height // 3)
    return [prepared(picture.crop((x, y, x + size[0], y + size[1])), shape) for x, y in corners]


def _since(start: float) -> str:
    return f"{time.perf_counter() - start:.1f} s"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Tiny-YOLOv2 from Darknet's files to the RTL.")
    parser.add_argument("--cfg", type=Path, default=FOLDER / "tiny_yolov2.cfg")
    parser.add_argument("--weights", type=Path, help="a .weights file; seeded ones when not given")
    parser.add_argument("--picture", type=Path, default=_sample_picture(), help="a photo")
    parser.add_argument("--calibrate", type=Path, nargs="*", default=[], help="more photos")
    parser.add_argument("--device", default="tsim", help="tsim (the RTL), fsim or reference")
    parser.add_argument("--threshold", type=float, default=0.3, help="least score of a box")
    parser.add_argument("--output", type=Path, default=Path("boxes.png"))
    return parser.parse_args()


def _sample_picture() -> Path:
    """A photo that matplotlib brings along."""
    return Path(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))


if __name__ == "__main__":
    sys.exit(main())
