"""Handwritten digits: accuracy on images never trained on, and every byte as the oracle's."""

from collections.abc import Iterator

import numpy as np
import oracle
import pytest
from digits import INT8_MODEL, load_images, model_input

import vitral
from vitral.runtime.module import CpuStep

ACCURACY = 0.97
ALL_MACS = 5_532_544
SEEN = {"image_QuantizeLinear_Output", "logits_QuantizeLinear_Output"}
"""What the host makes and reads at least; a tensor inside a program is not seen."""
POOLED = {f"{name}.codes": f"{name}_QuantizeLinear_Output" for name in ("pool1", "pool4")}
"""Maxima are taken of the codes themselves, so the Quantize after them has nothing to do."""


@pytest.fixture(scope="module")
def module() -> vitral.Module:
    return vitral.compile(INT8_MODEL)


@pytest.fixture(scope="module", params=["fsim", "tsim"])
def session(module: vitral.Module, request: pytest.FixtureRequest) -> Iterator[vitral.Session]:
    with vitral.Session(module, device=request.param) as opened:
        yield opened


def test_every_product_is_made_on_the_accelerator(module: vitral.Module) -> None:
    layers = [layer for segment in module.segments for layer in segment.layers]
    assert sum(layer.macs for layer in layers) == module.macs == ALL_MACS
    assert all(step.macs == 0 for step in module.steps if isinstance(step, CpuStep))
    assert all(step.exact for step in module.steps if isinstance(step, CpuStep))
    assert module.notices == ()


def test_held_out_images(module: vitral.Module) -> None:
    """1,000 images: accuracy, and each of their 40,000 logit bytes."""
    images = load_images("held_out")
    logits = []
    with vitral.Session(module, device="fsim") as session:
        for pixels in images.pixels:
            feeds = {"image": model_input(pixels)}
            logits.append(session.run(["logits"], feeds)[0])
    expected = [
        oracle.evaluate(INT8_MODEL, {"image": model_input(pixels)}, outputs_only=True)["logits"]
        for pixels in images.pixels
    ]
    report = oracle.compare({"logits": np.stack(expected)}, {"logits": np.stack(logits)})
    assert report.bytes == 40_000
    right = np.stack(logits).reshape(len(images), 10).argmax(axis=1) == images.labels
    assert len(images) == 1000
    assert right.mean() >= ACCURACY


def test_every_tensor_between_steps(session: vitral.Session) -> None:
    """Names and bytes; the image is mostly paper, so only there may one value prevail."""
    for pixels in load_images("demo").pixels[:3]:
        feeds = {"image": model_input(pixels)}
        expected = oracle.evaluate(INT8_MODEL, feeds)
        (logits,) = session.run(None, feeds)
        actual = {POOLED.get(name, name): value for name, value in session.tensors().items()}
        quantized = {name for name, tensor in expected.items() if tensor.dtype == np.int8}
        seen = quantized & actual.keys()
        assert seen >= SEEN
        report = oracle.compare(
            expected,
            {**actual, "logits": logits},
            names=sorted(seen | {"logits"}),
            clamps=oracle.clamp_values(INT8_MODEL),
            allow_collapsed={"image_QuantizeLinear_Output"},
        )
        assert report.bytes >= 28 * 28 + 10 + 40
