"""MLPerf Tiny's networks; its MobileNet is in `mobilenet`."""

from math import inf

import onnx

from vitral.zoo.network import Network, Tensor

__all__ = ["autoencoder", "ds_cnn", "resnet8"]

SAMPLES = 8


def resnet8(seed: int) -> onnx.ModelProto:
    """Image classification on 32x32: 12,501,632 multiply-accumulates, 3 adds."""
    net = Network("resnet8", (3, 32, 32), seed=seed, samples=SAMPLES)
    x = net.conv(net.input, 16, 3, "conv1", pads=1, top=inf)
    for number, channels in enumerate((16, 32, 64), 1):
        x = _stack(net, x, channels, f"stack{number}")
    x = net.flatten(net.global_average(x, "avgpool"), "flatten")
    return net.finish(net.dense(x, 10, "fc"))


def ds_cnn(seed: int) -> onnx.ModelProto:
    """Keyword spotting on 49x10: 2,656,768 multiply-accumulates."""
    net = Network("ds-cnn", (1, 49, 10), seed=seed, samples=SAMPLES)
    x = net.conv(net.input, 64, (10, 4), "conv1", stride=2, pads=(4, 1, 5, 1), top=inf)
    for number in range(1, 5):
        x = net.conv(x, 64, 3, f"dw{number}", pads=1, group=64, top=inf)
        x = net.conv(x, 64, 1, f"pw{number}", top=inf)
    x = net.flatten(net.global_average(x, "avgpool"), "flatten")
    return net.finish(net.dense(x, 12, "fc"))


def autoencoder(seed: int) -> onnx.ModelProto:
    """Anomaly detection on 640 values: 264,192 multiply-accumulates, dense layers only."""
    net = Network("autoencoder", (640, 1, 1), seed=seed, samples=32 * SAMPLES)
    x = net.flatten(net.input, "flatten")
    for number, outputs in enumerate((128, 128, 128, 128, 8, 128, 128, 128, 128), 1):
        x = net.dense(x, outputs, f"fc{number}", top=inf)
    return net.finish(net.dense(x, 640, "fc10"))


def _stack(net: Network, x: Tensor, channels: int, name: str) -> Tensor:
    """Two convolutions beside a shortcut; the stride's padding is TensorFlow's."""
    stride = 1 if x.channels == channels else 2
    pads = 1 if stride == 1 else (0, 0, 1, 1)
    y = net.conv(x, channels, 3, f"{name}.conv1", stride=stride, pads=pads, top=inf)
    y = net.conv(y, channels, 3, f"{name}.conv2", pads=1)
    if stride > 1:
        x = net.conv(x, channels, 1, f"{name}.shortcut", stride=stride)
    return net.add(x, y, f"{name}.add", top=inf)
