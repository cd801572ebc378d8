"""Networks by name."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from vitral.errors import VitralError
from vitral.zoo import mobilenet, plain, resnet, tiny, yolo
from vitral.zoo.calibrate import images
from vitral.zoo.forward import Float

if TYPE_CHECKING:
    import onnx

__all__ = ["NETWORKS", "build", "sample_input"]

Recipe = Callable[[int], "onnx.ModelProto"]

NETWORKS: dict[str, Recipe] = {
    "resnet18": resnet.resnet18,
    "resnet50": resnet.resnet50,
    "mobilenetv1": mobilenet.mobilenetv1,
    "mobilenetv2": mobilenet.mobilenetv2,
    "tiny-yolov2": yolo.tiny_yolov2,
    "yolov3-tiny": yolo.yolov3_tiny,
    "squeezenet11": plain.squeezenet11,
    "vgg16": plain.vgg16,
    "resnet8": tiny.resnet8,
    "ds-cnn": tiny.ds_cnn,
    "vww": mobilenet.mobilenetv1_quarter,
    "autoencoder": tiny.autoencoder,
    **{name: partial(resnet.resnet18_conv, name) for name in resnet.RESNET18_CONVS},
}
"""Each recipe takes a seed and gives a model."""


def build(name: str, seed: int = 0) -> "onnx.ModelProto":
    """A quantized network with seeded weights and calibrated scales; the same for the same seed.

    Raises
    ------
    VitralError
        When there is no such network.
    """
    recipe = NETWORKS.get(name)
    if recipe is None:
        raise VitralError(f"the zoo has no {name!r}; it has {', '.join(NETWORKS)}")
    return recipe(seed)


def sample_input(shape: tuple[int, int, int, int], seed: int = 0) -> Float:
    """Inputs of the kind that the zoo's scales are calibrated on, float32 (N, C, H, W)."""
    return images(shape, np.random.default_rng([seed, 1]))
