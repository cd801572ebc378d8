"""Layers with constant weights: where their output channels lie, and their biases."""

from dataclasses import dataclass

import numpy as np
import onnx

from vitral.compiler.quantize.float_graph import Array, FloatGraph, attributes

__all__ = ["PRODUCTS", "Product", "as_product"]

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(frozen=True, kw_only=True)
class Product:
    """A node that multiplies its first input with constant weights.

    `axis` of the weight array, `of` which there are `outputs`, holds the channels that get a scale
    each; of a grouped ConvTranspose these are `repeats` times fewer than the output channels.
    """

    node: onnx.NodeProto
    weight: Array
    bias: Array | None
    axis: int
    repeats: int

    @property
    def scales(self) -> int:
        """Channels of the weight array."""
        return self.weight.shape[self.axis]

    @property
    def outputs(self) -> int:
        """Output channels."""
        return self.scales * self.repeats

    @property
    def has_bias(self) -> bool:
        """Whether the operator has a bias at all: MatMul does not."""
        return self.node.op_type != "MatMul"

    def along(self, values: Array) -> Array:
        """One value per channel of the weight array, in a shape that broadcasts to it."""
        return values.reshape([-1 if i == self.axis else 1 for i in range(self.weight.ndim)])

    def scaled(self, factors: Array) -> Array:
        """Weights with each output channel times its factor, (outputs,) float64."""
        if self.repeats == 1:
            return (self.weight * self.along(factors)).astype(np.float32)
        # (channels, per group, ...) of ConvTranspose: each group has factors of its own
        wide = factors.reshape(self.repeats, 1, self.scales, *[1] * (self.weight.ndim - 2))
        groups = self.weight.reshape(self.repeats, -1, *self.weight.shape[1:])
        return (groups * wide).astype(np.float32).reshape(self.weight.shape)


def as_product(graph: FloatGraph, node: onnx.NodeProto) -> Product | None:
    """The node as a layer, None when it is none or its weights are computed."""
    if node.op_type not in PRODUCTS or node.domain:
        return None
    weight = graph.array(node, 1)
    biased = len(node.input) > 2 and bool(node.input[2])
    bias = graph.array(node, 2) if biased else None
    if weight is None or (biased and bias is None) or weight.dtype != np.float32:
        return None
    values = attributes(node)
    if node.op_type == "MatMul":
        return _product(node, weight, None, 1) if weight.ndim == 2 else None
    if node.op_type == "Gemm":
        plain = values.get("transB", 0) == 1 and values.get("transA", 0) == 0
        return _product(node, weight, bias, 0) if plain and weight.ndim == 2 else None
    if node.op_type == "Conv":
        return _product(node, weight, bias, 0)
    return _product(node, weight, bias, 1, values.get("group", 1))


def _product(
    node: onnx.NodeProto, weight: Array, bias: Array | None, axis: int, repeats: int = 1
) -> Product:
    return Product(node=node, weight=weight, bias=bias, axis=axis, repeats=repeats)
