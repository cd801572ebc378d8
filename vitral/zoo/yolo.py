"""Darknet's small detectors."""

import onnx

from vitral.zoo.network import Network, Tensor

__all__ = ["tiny_yolov2", "yolov3_tiny"]

IMAGE = (3, 416, 416)
VOC = 5 * (5 + 20)
COCO = 3 * (5 + 80)


def tiny_yolov2(seed: int) -> onnx.ModelProto:
    """Tiny-YOLOv2 for VOC, 416x416: 3,485,520,896 multiply-accumulates; output 125x13x13."""
    net = Network("tiny-yolov2", IMAGE, seed=seed)
    x, _ = _backbone(net)
    x = _leaky_conv(net, x, 1024, 3, "conv8")
    return net.finish(net.conv(x, VOC, 1, "conv9"))


def yolov3_tiny(seed: int) -> onnx.ModelProto:
    """YOLOv3-tiny for COCO, 416x416: 2,782,480,896 multiply-accumulates; two outputs."""
    net = Network("yolov3-tiny", IMAGE, seed=seed)
    x, fine = _backbone(net)
    route = _leaky_conv(net, x, 256, 1, "conv8")
    coarse = net.conv(_leaky_conv(net, route, 512, 3, "conv9"), COCO, 1, "conv10")
    up = net.upsample(_leaky_conv(net, route, 128, 1, "conv11"), 2, "upsample")
    x = _leaky_conv(net, net.concat([up, fine], "concat"), 256, 3, "conv12")
    return net.finish(coarse, net.conv(x, COCO, 1, "conv13"))


def _backbone(net: Network) -> tuple[Tensor, Tensor]:
    """Seven convolutions with pools between; the last one's and the fifth one's output."""
    x = fine = net.input
    for number, channels in enumerate((16, 32, 64, 128, 256, 512), 1):
        fine, before = _leaky_conv(net, x, channels, 3, f"conv{number}"), fine
        last = number == 6
        pads = (0, 0, 1, 1) if last else 0
        x = net.max_pool(fine, 2, 1 if last else 2, f"pool{number}", pads=pads)
        if last:
            fine = before
    return _leaky_conv(net, x, 1024, 3, "conv7"), fine


def _leaky_conv(net: Network, x: Tensor, outputs: int, kernel: int, name: str) -> Tensor:
    x = net.conv(x, outputs, kernel, name, pads=kernel // 2)
    return net.leaky_relu(x, f"{name}.leaky")
