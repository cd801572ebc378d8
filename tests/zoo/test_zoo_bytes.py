"""The zoo's networks compiled and run: every byte as the independent oracle has it."""

import oracle
import pytest

import vitral
from vitral.zoo import build, sample_input

SMALL = ("resnet8", "ds-cnn", "vww", "autoencoder", "c4")
LARGE = ("resnet18", "mobilenetv1", "mobilenetv2", "squeezenet11", "tiny-yolov2")


def check(name: str, device: str, seed: int) -> None:
    model = build(name, seed)
    module = vitral.compile(model)
    _, c, h, w = module.inputs[0].shape
    feeds = {"input": sample_input((1, c, h, w), seed + 10)}
    wanted = oracle.evaluate(model, feeds, outputs_only=True)
    with vitral.Session(module, device) as session:
        got = dict(zip(wanted, session.run(list(wanted), feeds), strict=True))
    report = oracle.compare(wanted, got, names=list(wanted), clamps=oracle.clamp_values(model))
    assert report.bytes == sum(value.nbytes for value in wanted.values()) > 0


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("seed", [0, 1])
def test_small_networks(name: str, seed: int) -> None:
    check(name, "fsim", seed)


@pytest.mark.parametrize("name", ["resnet8", "ds-cnn", "autoencoder"])
def test_small_networks_on_the_core(name: str) -> None:
    check(name, "tsim", 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_networks(name: str) -> None:
    check(name, "fsim", 0)
