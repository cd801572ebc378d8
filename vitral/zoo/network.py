"""Builds a quantized ONNX network layer by layer, calibrating each on what the one before gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from vitral.zoo.calibrate import (
    Quantizer,
    activation_quantizer,
    images,
    normalize,
    quantize_weights,
)
from vitral.zoo.forward import Float, Pads, Window, average_pool, conv2d, max_pool, upsample

__all__ = ["Network", "Tensor", "four", "two"]

OPSET = 17
IR_VERSION = 8
INPUT, OUTPUT = "input", "output"


@dataclass(frozen=True, eq=False)
class Tensor:
    """A quantized tensor of the network under construction.

    `values` are the sample's, rounded to codes, float32 (N, C, H, W). `scales` names the
    initializers of scale and zero point, which tensors of equal codes share.
    """

    name: str
    values: Float
    quantizer: Quantizer
    scales: str

    @property
    def channels(self) -> int:
        return self.values.shape[1]

    @property
    def readable(self) -> str:
        """The float tensor that operators read."""
        return f"{self.name}_DequantizeLinear_Output"


class Network:
    """An ONNX graph in QDQ form, in the making, as onnxruntime's static quantizer writes it.

    Every activation stands between QuantizeLinear and DequantizeLinear with int8 codes and a zero
    point. Weights are int8 and symmetric with a scale per output channel, biases int32. A Relu, or
    a Clip at 0 and 6, is no node: its output starts at code -128 and saturation clamps. Pools of
    maxima and reshapes keep their input's scale.

    Parameters
    ----------
    name : str
        Name of the graph.
    shape : (C, H, W)
        Of the input, float32 (1, C, H, W).
    seed : int
        Of the weights and of the sample that scales are calibrated on.
    samples : int
        Inputs in the sample.
    """

    def __init__(
        self, name: str, shape: tuple[int, int, int], *, seed: int = 0, samples: int = 1
    ) -> None:
        self.name = name
        self.macs = 0
        self._rng = np.random.default_rng([seed, *name.encode()])
        self._shape = shape
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        values = images((samples, *shape), self._rng)
        self.input = self._quantize(INPUT, values, activation_quantizer(values))

    def conv(
        self,
        x: Tensor,
        outputs: int,
        kernel: int | Window,
        name: str,
        *,
        stride: int | Window = 1,
        pads: int | Pads = 0,
        group: int = 1,
        top: float | None = None,
    ) -> Tensor:
        """A convolution with bias; `top` clamps it to 0..top, as Relu (inf) and Relu6 do."""
        size, step, border = two(kernel), two(stride), four(pads)
        weight = self._weights((outputs, x.channels // group, *size))
        sums = conv2d(x.values, weight, step, border, group)
        self._count(weight, sums)
        attributes = {
            "dilations": [1, 1],
            "group": group,
            "kernel_shape": list(size),
            "pads": list(border),
            "strides": list(step),
        }
        return self._product("Conv", x, weight, sums, name, top, attributes)

    def dense(self, x: Tensor, outputs: int, name: str, *, top: float | None = None) -> Tensor:
        """A fully connected layer on (N, C), held here as (N, C, 1, 1); Gemm with transB."""
        weight = self._weights((outputs, x.channels))
        sums = (x.values[:, :, 0, 0] @ weight.T)[:, :, None, None]
        self._count(weight, sums)
        return self._product("Gemm", x, weight, sums, name, top, {"transB": 1})

    def add(self, a: Tensor, b: Tensor, name: str, *, top: float | None = None) -> Tensor:
        """The sum of two tensors of one shape."""
        return self._node("Add", [a, b], _clamp(a.values + b.values, top), name)

    def leaky_relu(self, x: Tensor, name: str, slope: float = 0.1) -> Tensor:
        values = np.where(x.values < 0, np.float32(slope) * x.values, x.values)
        return self._node("LeakyRelu", [x], values, name, alpha=slope)

    def concat(self, parts: Sequence[Tensor], name: str) -> Tensor:
        """Along the channels."""
        values = np.concatenate([part.values for part in parts], axis=1)
        return self._node("Concat", parts, values, name, axis=1)

    def max_pool(
        self, x: Tensor, kernel: int, stride: int, name: str, *, pads: int | Pads = 0
    ) -> Tensor:
        size, step, border = two(kernel), two(stride), four(pads)
        values = max_pool(x.values, size, step, border)
        return self._same_codes(
            "MaxPool", x, values, name, kernel_shape=size, strides=step, pads=border
        )

    def global_average(self, x: Tensor, name: str) -> Tensor:
        return self._node("GlobalAveragePool", [x], average_pool(x.values), name)

    def flatten(self, x: Tensor, name: str) -> Tensor:
        """(N, C, H, W) to (N, C * H * W)."""
        values = x.values.reshape(x.values.shape[0], -1, 1, 1)
        return self._same_codes("Flatten", x, values, name, axis=1)

    def upsample(self, x: Tensor, factor: int, name: str) -> Tensor:
        """Nearest neighbour, height and width times `factor`."""
        scales = self._constant(f"{name}_scales", np.array([1, 1, factor, factor], np.float32))
        values = upsample(x.values, factor)
        attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
        return self._same_codes(
            "Resize", x, values, name, extra=("", scales), nearest_mode="floor", **attributes
        )

    def finish(self, *outputs: Tensor) -> onnx.ModelProto:
        """The model; its outputs are float32, behind their last DequantizeLinear."""
        renamed = {x.readable: _output_name(n, len(outputs)) for n, x in enumerate(outputs)}
        for node in self._nodes:
            node.output[:] = [renamed.get(name, name) for name in node.output]
            node.input[:] = [renamed.get(name, name) for name in node.input]
        flat = {node.output[0] for node in self._nodes if node.op_type in ("Flatten", "Gemm")}
        infos = [
            helper.make_tensor_value_info(
                renamed[x.readable],
                TensorProto.FLOAT,
                (1, *x.values.shape[1 : 2 if x.name in flat else 4]),
            )
            for x in outputs
        ]
        source = helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, (1, *self._shape))
        graph = helper.make_graph(self._nodes, self.name, [source], infos, self._constants)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(
            graph, producer_name="vitral.zoo", opset_imports=opsets, ir_version=IR_VERSION
        )

    def _weights(self, shape: tuple[int, ...]) -> Float:
        deviation = np.float32(np.prod(shape[1:]) ** -0.5)
        return self._rng.standard_normal(shape, np.float32) * deviation

    def _count(self, weight: Float, sums: Float) -> None:
        self.macs += weight.size * sums.shape[2] * sums.shape[3]

    def _product(
        self,
        op: str,
        x: Tensor,
        weight: Float,
        sums: Float,
        name: str,
        top: float | None,
        attributes: dict[str, Any],
    ) -> Tensor:
        """A convolution or dense layer with weights as wide as a batch normalisation makes them."""
        gain, bias = normalize(sums, self._rng)
        codes, scale = quantize_weights(weight * gain.reshape(-1, *[1] * (weight.ndim - 1)))
        units = (x.quantizer.scale * scale).astype(np.float32)
        steps = np.rint(bias / units).astype(np.int32)
        operands = [
            self._constant_quantized(f"{name}.weight", codes, scale, np.zeros_like(scale, np.int8)),
            self._constant_quantized(f"{name}.bias", steps, units, np.zeros_like(steps)),
        ]
        values = _clamp(sums * gain[:, None, None] + bias[:, None, None], top)
        return self._node(op, [x], values, name, extra=operands, **attributes)

    def _node(
        self,
        op: str,
        sources: Sequence[Tensor],
        values: Float,
        name: str,
        extra: Sequence[str] = (),
        **attributes: Any,
    ) -> Tensor:
        """An operator whose output gets scales of its own."""
        self._emit(op, [*(x.readable for x in sources), *extra], name, **attributes)
        return self._quantize(name, values, activation_quantizer(values))

    def _same_codes(
        self,
        op: str,
        x: Tensor,
        values: Float,
        name: str,
        extra: Sequence[str] = (),
        **attributes: Any,
    ) -> Tensor:
        """An operator that moves codes, so that its output has its input's scales."""
        self._emit(op, [x.readable, *extra], name, **attributes)
        return self._quantize(name, values, x.quantizer, x.scales)

    def _quantize(
        self, name: str, values: Float, quantizer: Quantizer, scales: str | None = None
    ) -> Tensor:
        """The tensor `name` behind QuantizeLinear and DequantizeLinear."""
        if scales is None:
            scales = name
            self._constant(f"{name}_scale", quantizer.scale)
            self._constant(f"{name}_zero_point", np.int8(quantizer.zero_point))
        tensor = Tensor(name, quantizer.round(values), quantizer, scales)
        middle = f"{name}_QuantizeLinear_Output"
        pair = [f"{scales}_scale", f"{scales}_zero_point"]
        self._append("QuantizeLinear", [name, *pair], middle, f"{name}_QuantizeLinear")
        self._append(
            "DequantizeLinear", [middle, *pair], tensor.readable, f"{name}_DequantizeLinear"
        )
        return tensor

    def _constant_quantized(self, name: str, *parts: np.ndarray) -> str:
        """DequantizeLinear of codes, scale and zero point; the name of its output."""
        ends = ("quantized", "scale", "zero_point")
        named = zip(ends, parts, strict=True)
        inputs = [self._constant(f"{name}_{end}", part) for end, part in named]
        output = f"{name}_DequantizeLinear_Output"
        self._append("DequantizeLinear", inputs, output, f"{name}_DequantizeLinear", axis=0)
        return output

    def _constant(self, name: str, value: np.ndarray | np.generic) -> str:
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _emit(self, op: str, inputs: Sequence[str], name: str, **attributes: Any) -> None:
        self._append(op, inputs, name, name, **attributes)

    def _append(
        self, op: str, inputs: Sequence[str], output: str, name: str, **attributes: Any
    ) -> None:
        self._nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))


def two(value: int | Window) -> Window:
    """Height and width; a single number means both."""
    return (value, value) if isinstance(value, int) else value


def four(value: int | Pads) -> Pads:
    """Top, left, bottom, right; a single number means all."""
    return (value, value, value, value) if isinstance(value, int) else value


def _clamp(values: Float, top: float | None) -> Float:
    return values if top is None else np.clip(values, 0, np.float32(top))


def _output_name(number: int, count: int) -> str:
    return OUTPUT if count == 1 else f"{OUTPUT}{number}"
