"""From Darknet's files to boxes that int8 finds, by the example's own functions."""

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import vitral
from vitral.compiler.quantize import quantize_model
from vitral.runtime.detection import decode
from vitral.zoo import sample_input

EXAMPLE = Path(__file__).parents[2] / "examples" / "yolo"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import demo  # pyright: ignore[reportMissingImports]

    yield demo
    for name in ("demo", "seeded"):
        sys.modules.pop(name, None)


def _small_cfg() -> str:
    """The example's first three stages on 64 x 64, with two boxes of 2 classes per cell."""
    stages = (EXAMPLE / "tiny_yolov2.cfg").read_text().split("[convolutional]")
    net = stages[0].replace("416", "64")
    head = "\nfilters=14\nsize=1\npad=1\nactivation=linear\n"
    region = "[region]\nanchors=1,2, 3,1\nclasses=2\nnum=2\n"
    return "[convolutional]".join([net, *stages[1:4], head]) + region


def test_from_files_to_boxes(example) -> None:
    cfg = _small_cfg()
    detector = vitral.ir.from_darknet(cfg, example.seeded_weights(cfg, seed=4))
    (head,) = detector.heads
    model = vitral.ir.to_onnx(detector.graph)
    samples = np.concatenate([sample_input((1, 3, 64, 64), seed) for seed in range(4)])
    module = vitral.compile(quantize_model(model, {"data": samples}))
    assert len(module.segments) == 1
    image = samples[:1]
    results = {
        device: example.run(module, device, [head.value], image)[0]
        for device in ("reference", "fsim")
    }
    np.testing.assert_array_equal(results["reference"], results["fsim"])
    session = onnxruntime.InferenceSession(model.SerializeToString())
    real = np.asarray(session.run([head.value], {"data": image})[0])
    assert real.shape == (1, 14, 8, 8)
    assert example.decibels(real, results["fsim"]) > 25
    best = [
        max(decode(output, head, 0.1), key=lambda box: box.score)
        for output in (real, results["fsim"])
    ]
    assert best[0].label == best[1].label
    assert abs(best[0].score - best[1].score) < 0.05
    assert (abs(best[0].x - best[1].x), abs(best[0].y - best[1].y)) < (0.02, 0.02)


def test_pictures_are_drawn(example, tmp_path: Path) -> None:
    from PIL import Image

    picture = Image.new("RGB", (60, 40), "white")
    boxes = [[], [example.Box(x=0.5, y=0.5, width=0.5, height=0.5, label=3, score=0.9)]]
    for number, listed in enumerate(boxes):
        example.draw(picture, [listed, []], ["a", "b"], tmp_path / f"{number}.png")
    empty, drawn = (np.asarray(Image.open(tmp_path / f"{n}.png")) for n in (0, 1))
    assert empty.shape == drawn.shape
    assert (empty != drawn).any()
    prepared = example.prepared(picture, (1, 3, 8, 10))
    assert prepared.shape == (1, 3, 8, 10)
    assert (prepared == 1).all()
