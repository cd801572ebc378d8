"""Networks by name."""

from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from vitral.errors import VitralError
from vitral.zoo.calibrate import images
from vitral.zoo.forward import Float

if TYPE_CHECKING:
    import onnx

__all__ = ["NETWORKS", "build", "sample_input"]

_RECIPES = {
    "resnet18": "resnet.resnet18",
    "resnet50": "resnet.resnet50",
    "mobilenetv1": "mobilenet.mobilenetv1",
    "mobilenetv2": "mobilenet.mobilenetv2",
    "tiny-yolov2": "yolo.tiny_yolov2",
    "yolov3-tiny": "yolo.yolov3_tiny",
    "squeezenet11": "plain.squeezenet11",
    "vgg16": "plain.vgg16",
    "resnet8": "tiny.resnet8",
    "ds-cnn": "tiny.ds_cnn",
    "vww": "mobilenet.mobilenetv1_quarter",
    "autoencoder": "tiny.autoencoder",
    **{f"c{number}": f"resnet.c{number}" for number in range(1, 12)},
}
"""Module and function that takes a seed and gives a model; imported when asked for, with onnx."""

NETWORKS = tuple(_RECIPES)
"""All names; c1 to c11 are ResNet-18's convolutions as VTA numbers them."""


def build(name: str, seed: int = 0) -> "onnx.ModelProto":
    """A quantized network with seeded weights and calibrated scales; the same for the same seed.

    Raises
    ------
    VitralError
        When there is no such network.
    """
    if name not in _RECIPES:
        raise VitralError(f"the zoo has no {name!r}; it has {', '.join(NETWORKS)}")
    module, _, function = _RECIPES[name].partition(".")
    return getattr(import_module(f"vitral.zoo.{module}"), function)(seed)


def sample_input(shape: tuple[int, int, int, int], seed: int = 0) -> Float:
    """Inputs of the kind that the zoo's scales are calibrated on, float32 (N, C, H, W)."""
    return images(shape, np.random.default_rng([seed, 1]))
