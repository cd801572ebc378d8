"""MobileNets: V1 in two widths, V2."""

from collections.abc import Sequence

import onnx

from vitral.zoo.network import Network, Pads, Tensor

__all__ = ["mobilenetv1", "mobilenetv1_quarter", "mobilenetv2"]

RELU6 = 6.0
SAME = 1
SAME_BY_TWO: Pads = (0, 0, 1, 1)
"""TensorFlow's padding of a 3x3 kernel with stride 2 on an even size."""

V1_BLOCKS = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1), (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1)),
)
"""Output channels and stride of the depthwise layer, at width 1."""

V2_STAGES = (
    *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
    *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
)
"""Expansion, output channels, blocks, stride of the first block."""


def mobilenetv1(seed: int) -> onnx.ModelProto:
    """MobileNetV1 1.0 on 224x224 with TensorFlow's padding: 568,740,352 multiply-accumulates."""
    net = Network("mobilenetv1", (3, 224, 224), seed=seed)
    return _mobilenetv1(net, 32, V1_BLOCKS, 1000)


def mobilenetv1_quarter(seed: int) -> onnx.ModelProto:
    """MLPerf Tiny's visual wake words: V1 0.25 on 96x96, 7,489,664 multiply-accumulates."""
    net = Network("vww", (3, 96, 96), seed=seed, samples=4)
    return _mobilenetv1(net, 8, [(channels // 4, stride) for channels, stride in V1_BLOCKS], 2)


def mobilenetv2(seed: int) -> onnx.ModelProto:
    """MobileNetV2 1.0 as torchvision pads it: 300,774,272 multiply-accumulates, 10 adds."""
    net = Network("mobilenetv2", (3, 224, 224), seed=seed)
    x = net.conv(net.input, 32, 3, "conv0", stride=2, pads=1, top=RELU6)
    number = 0
    for expansion, channels, blocks, stride in V2_STAGES:
        for block in range(blocks):
            number += 1
            step = stride if block == 0 else 1
            x = _inverted_residual(net, x, expansion, channels, step, f"block{number}")
    x = net.conv(x, 1280, 1, "conv1", top=RELU6)
    return _head(net, x, 1000)


def _mobilenetv1(
    net: Network, first: int, blocks: Sequence[tuple[int, int]], classes: int
) -> onnx.ModelProto:
    x = net.conv(net.input, first, 3, "conv0", stride=2, pads=SAME_BY_TWO, top=RELU6)
    for number, (channels, stride) in enumerate(blocks, 1):
        pads = SAME if stride == 1 else SAME_BY_TWO
        x = net.conv(
            *(x, x.channels, 3, f"dw{number}"),
            stride=stride,
            pads=pads,
            group=x.channels,
            top=RELU6,
        )
        x = net.conv(x, channels, 1, f"pw{number}", top=RELU6)
    return _head(net, x, classes)


def _inverted_residual(
    net: Network, x: Tensor, expansion: int, channels: int, stride: int, name: str
) -> Tensor:
    y = x
    if expansion > 1:
        y = net.conv(y, expansion * x.channels, 1, f"{name}.expand", top=RELU6)
    y = net.conv(
        *(y, y.channels, 3, f"{name}.dw"), stride=stride, pads=1, group=y.channels, top=RELU6
    )
    y = net.conv(y, channels, 1, f"{name}.project")
    return net.add(x, y, f"{name}.add") if stride == 1 and channels == x.channels else y


def _head(net: Network, x: Tensor, classes: int) -> onnx.ModelProto:
    x = net.flatten(net.global_average(x, "avgpool"), "flatten")
    return net.finish(net.dense(x, classes, "fc"))
