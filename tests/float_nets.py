"""Small float networks in the form that trainers export them: Conv, BatchNormalization, Relu."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["FLOAT_NETS", "FloatNet", "float_net", "images"]

Array = npt.NDArray[Any]


class FloatNet:
    """A graph in the making; every method gives the name of its result."""

    def __init__(self, shape: Sequence[int | str], seed: int = 0, opset: int = 13) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.shape, self.opset = list(shape), opset

    def constant(self, value: Array, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def conv(self, x: str, ins: int, outs: int, kernel: int = 3, **attributes: Any) -> str:
        """Without bias, as in front of a normalisation."""
        group = attributes.get("group", 1)
        shape = (outs, ins // group, kernel, kernel)
        weight = self.rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        pads = [kernel // 2] * 4
        return self.op(
            "Conv", x, self.constant(weight), kernel_shape=[kernel] * 2, pads=pads, **attributes
        )

    def norm(self, x: str, channels: int) -> str:
        parts = (
            *(self.rng.uniform(0.5, 1.5, channels), self.rng.normal(0.2, 0.3, channels)),
            *(self.rng.normal(0, 0.2, channels), self.rng.uniform(0.5, 1.5, channels)),
        )
        return self.op("BatchNormalization", x, *map(self.constant, parts))

    def block(self, x: str, ins: int, outs: int, kernel: int = 3, **attributes: Any) -> str:
        """Convolution, normalisation, Relu."""
        return self.op("Relu", self.norm(self.conv(x, ins, outs, kernel, **attributes), outs))

    def dense(self, x: str, ins: int, outs: int) -> str:
        weight = self.constant(self.rng.standard_normal((ins, outs)) / np.sqrt(ins))
        return self.op("Gemm", x, weight, self.constant(self.rng.normal(0, 0.1, outs)))

    def finish(self, output: str) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [onnx.ValueInfoProto(name=output)],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        model.graph.output[0].CopyFrom(inferred.graph.output[0])
        return model


def residual(net: FloatNet) -> str:
    """ResNet: two blocks, a projection, an average, a dense layer."""
    x = net.op("MaxPool", net.block("x", 3, 8), kernel_shape=[2, 2], strides=[2, 2])
    y = net.norm(net.conv(net.block(x, 8, 8), 8, 8), 8)
    x = net.op("Relu", net.op("Add", y, x))
    y = net.norm(net.conv(net.block(x, 8, 16, strides=[2, 2]), 16, 16), 16)
    x = net.op("Relu", net.op("Add", y, net.norm(net.conv(x, 8, 16, 1, strides=[2, 2]), 16)))
    return net.dense(net.op("Flatten", net.op("GlobalAveragePool", x)), 16, 10)


def inverted(net: FloatNet) -> str:
    """MobileNetV2: an expansion with Relu6, depthwise, a projection, a residual sum."""

    def relu6(x: str) -> str:
        return net.op("Clip", x, net.constant(np.array(0)), net.constant(np.array(6)))

    x = relu6(net.norm(net.conv("x", 3, 8, strides=[2, 2]), 8))
    y = relu6(net.norm(net.conv(x, 8, 32, 1), 32))
    y = relu6(net.norm(net.conv(y, 32, 32, group=32), 32))
    x = net.op("Add", x, net.norm(net.conv(y, 32, 8, 1), 8))
    mean = net.op("ReduceMean", x, axes=[2, 3], keepdims=0)
    return net.dense(mean, 8, 10)


def fire(net: FloatNet) -> str:
    """SqueezeNet: two expansions side by side."""
    x = net.block("x", 3, 16, strides=[2, 2])
    x = net.op("Concat", net.block(x, 16, 16, 1), net.block(x, 16, 16), axis=1)
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])
    return net.op("GlobalAveragePool", net.block(x, 32, 10, 1))


def plain(net: FloatNet) -> str:
    """VGG and YOLO: LeakyRelu, a flattened map, dense layers."""
    x = net.op("LeakyRelu", net.norm(net.conv("x", 3, 8), 8), alpha=0.1)
    x = net.op("MaxPool", x, kernel_shape=[4, 4], strides=[4, 4])
    x = net.op("Reshape", x, net.constant(np.array([1, -1]), np.int64))
    return net.dense(net.op("Relu", net.dense(x, 8 * 16, 12)), 12, 10)


FLOAT_NETS = {"residual": residual, "inverted": inverted, "fire": fire, "plain": plain}


def float_net(name: str, seed: int = 0) -> onnx.ModelProto:
    """One of FLOAT_NETS; input x float32 (1, 3, 16, 16)."""
    net = FloatNet([1, 3, 16, 16], seed)
    return net.finish(FLOAT_NETS[name](net))


def images(count: int, seed: int = 0, shape: tuple[int, ...] = (3, 16, 16)) -> Array:
    """Normal noise with a smooth part, float32 (count, *shape)."""
    rng = np.random.default_rng([seed, 9])
    smooth = rng.standard_normal((count, shape[0], 1, 1))
    return (rng.standard_normal((count, *shape)) * 0.7 + smooth).astype(np.float32)
