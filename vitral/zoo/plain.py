"""Networks of plain convolutions: VGG-16 and SqueezeNet 1.1."""

from math import inf

import onnx

from vitral.zoo.network import Network, Pads, Tensor

__all__ = ["squeezenet11", "vgg16"]

IMAGE = (3, 224, 224)
CLASSES = 1000
VGG_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and convolutions between two pools."""
FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
"""Channels squeezed to, and of each of the two expansions."""


def vgg16(seed: int) -> onnx.ModelProto:
    """VGG-16: 15,470,264,320 multiply-accumulates, 138 million weights."""
    net = Network("vgg16", IMAGE, seed=seed)
    x = net.input
    for stage, (channels, convs) in enumerate(VGG_STAGES, 1):
        for number in range(1, convs + 1):
            x = net.conv(x, channels, 3, f"conv{stage}.{number}", pads=1, top=inf)
        x = net.max_pool(x, 2, 2, f"pool{stage}")
    x = net.flatten(x, "flatten")
    x = net.dense(x, 4096, "fc6", top=inf)
    x = net.dense(x, 4096, "fc7", top=inf)
    return net.finish(net.dense(x, CLASSES, "fc8"))


def squeezenet11(seed: int) -> onnx.ModelProto:
    """SqueezeNet 1.1 as torchvision has it: 349,151,936 multiply-accumulates."""
    net = Network("squeezenet11", IMAGE, seed=seed)
    x = net.conv(net.input, 64, 3, "conv1", stride=2, top=inf)
    for number, (squeezed, expanded) in enumerate(FIRES, 2):
        if number in (2, 4, 6):
            x = net.max_pool(x, 3, 2, f"pool{number}", pads=_round_up(x))
        x = _fire(net, x, squeezed, expanded, f"fire{number}")
    x = net.conv(x, CLASSES, 1, "conv10", top=inf)
    return net.finish(net.flatten(net.global_average(x, "avgpool"), "flatten"))


def _round_up(x: Tensor) -> Pads:
    """Padding that does for a 3x3 pool with stride 2 what rounding its size up does."""
    height, width = x.values.shape[2:]
    return 0, 0, (height - 3) % 2, (width - 3) % 2


def _fire(net: Network, x: Tensor, squeezed: int, expanded: int, name: str) -> Tensor:
    x = net.conv(x, squeezed, 1, f"{name}.squeeze", top=inf)
    small = net.conv(x, expanded, 1, f"{name}.expand1", top=inf)
    large = net.conv(x, expanded, 3, f"{name}.expand3", pads=1, top=inf)
    return net.concat([small, large], f"{name}.concat")
