"""Residual networks: ResNet-18 and ResNet-50, and ResNet-18's convolutions one by one."""

from functools import partial
from math import inf

import onnx

from vitral.zoo.network import Network, Tensor

# fmt: off
__all__ = [
    "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "resnet18", "resnet50",
]
# fmt: on

IMAGE = (3, 224, 224)
CLASSES = 1000
STAGES = (64, 128, 256, 512)
RESNET50_BLOCKS = (3, 4, 6, 3)
EXPANSION = 4

RESNET18_CONVS = {
    "c1": (3, 224, 64, 7, 2),
    "c2": (64, 56, 64, 3, 1),
    "c3": (64, 56, 128, 3, 2),
    "c4": (64, 56, 128, 1, 2),
    "c5": (128, 28, 128, 3, 1),
    "c6": (128, 28, 256, 3, 2),
    "c7": (128, 28, 256, 1, 2),
    "c8": (256, 14, 256, 3, 1),
    "c9": (256, 14, 512, 3, 2),
    "c10": (256, 14, 512, 1, 2),
    "c11": (512, 7, 512, 3, 1),
}
"""Channels, height and width, output channels, kernel, stride; by the names VTA gave them."""


def resnet18(seed: int) -> onnx.ModelProto:
    """ResNet-18 as torchvision has it: 1,814,073,344 multiply-accumulates, 8 residual adds."""
    net = Network("resnet18", IMAGE, seed=seed)
    x = _stem(net)
    for number, channels in enumerate(STAGES, 1):
        for block in range(2):
            stride = 2 if block == 0 and number > 1 else 1
            x = _basic_block(net, x, channels, stride, f"layer{number}.{block}")
    return _head(net, x)


def resnet50(seed: int) -> onnx.ModelProto:
    """ResNet-50 v1.5, the stride on the 3x3: 4,089,184,256 multiply-accumulates."""
    net = Network("resnet50", IMAGE, seed=seed)
    x = _stem(net)
    for number, (channels, blocks) in enumerate(zip(STAGES, RESNET50_BLOCKS, strict=True), 1):
        for block in range(blocks):
            stride = 2 if block == 0 and number > 1 else 1
            x = _bottleneck(net, x, channels, stride, f"layer{number}.{block}")
    return _head(net, x)


def _conv(name: str, seed: int) -> onnx.ModelProto:
    """One of `RESNET18_CONVS` with bias and ReLU; padding is half the kernel."""
    channels, size, outputs, kernel, stride = RESNET18_CONVS[name]
    net = Network(name, (channels, size, size), seed=seed)
    return net.finish(
        net.conv(net.input, outputs, kernel, name, stride=stride, pads=kernel // 2, top=inf)
    )


c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 = (partial(_conv, name) for name in RESNET18_CONVS)


def _stem(net: Network) -> Tensor:
    x = net.conv(net.input, 64, 7, "conv1", stride=2, pads=3, top=inf)
    return net.max_pool(x, 3, 2, "maxpool", pads=1)


def _basic_block(net: Network, x: Tensor, channels: int, stride: int, name: str) -> Tensor:
    conv = partial(net.conv, outputs=channels, kernel=3, pads=1)
    y = conv(x, name=f"{name}.conv1", stride=stride, top=inf)
    y = conv(y, name=f"{name}.conv2")
    return net.add(y, _shortcut(net, x, channels, stride, name), f"{name}.add", top=inf)


def _bottleneck(net: Network, x: Tensor, channels: int, stride: int, name: str) -> Tensor:
    y = net.conv(x, channels, 1, f"{name}.conv1", top=inf)
    y = net.conv(y, channels, 3, f"{name}.conv2", stride=stride, pads=1, top=inf)
    y = net.conv(y, EXPANSION * channels, 1, f"{name}.conv3")
    shortcut = _shortcut(net, x, EXPANSION * channels, stride, name)
    return net.add(y, shortcut, f"{name}.add", top=inf)


def _shortcut(net: Network, x: Tensor, channels: int, stride: int, name: str) -> Tensor:
    if stride == 1 and x.channels == channels:
        return x
    return net.conv(x, channels, 1, f"{name}.downsample", stride=stride)


def _head(net: Network, x: Tensor) -> onnx.ModelProto:
    x = net.flatten(net.global_average(x, "avgpool"), "flatten")
    return net.finish(net.dense(x, CLASSES, "fc"))
