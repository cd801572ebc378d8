"""How far float32 arithmetic may stray, value by value: a graph of the magnitudes.

A float32 evaluation of n operations strays from the exact value by at most n * 2^-24 times the
value of the same expression with every operand made positive. That expression is added to the
graph beside the original, so that onnxruntime computes both.
"""

from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["Magnitudes"]

_BOUNDED = ("Sigmoid", "HardSigmoid", "Softplus")
"""Functions that are not 0 at 0, where their magnitude must not be 0."""
_GENTLE = (
    *("Relu", "Clip", "LeakyRelu", "PRelu", "Elu", "Celu", "Tanh", "HardSwish", "Neg", "Abs"),
    *("Softsign", "Mish", "Gelu"),
)
"""Functions that grow no faster than their argument (HardSwish: half as fast again)."""
_AS_ADD = ("Add", "Sub", "Max", "Min")
_LINEAR = (
    *("Conv", "ConvTranspose", "Gemm", "MatMul", "Mul", "MaxPool", "AveragePool"),
    *("GlobalAveragePool", "ReduceMean", "Concat", "Transpose", "Reshape", "Flatten", "Slice"),
    *("Squeeze", "Unsqueeze", "Pad", "Resize", "Gather", "DepthToSpace", "SpaceToDepth", "Split"),
)
"""Operators whose result for positive operands bounds that for operands of any sign."""


class Magnitudes:
    """Nodes that compute, for each QuantizeLinear, the magnitude of what it rounds.

    `names` maps the result of a QuantizeLinear to that magnitude; `terms` to the operations that
    led there. `nodes` and `constants` are to be added to the graph.

    Parameters
    ----------
    graph : onnx.GraphProto
        In QDQ form.
    shapes : dict
        Of quantized tensors, by name.
    """

    def __init__(self, graph: onnx.GraphProto, shapes: dict[str, tuple[int, ...]]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants = [numpy_helper.from_array(np.array(1, np.float32), "magnitude.one")]
        self.names: dict[str, str] = {}
        self.terms: dict[str, int] = {}
        self._shapes = shapes | {c.name: tuple(c.dims) for c in graph.initializer}
        self._floats = {c.name for c in graph.initializer if c.data_type == onnx.TensorProto.FLOAT}
        self._known: dict[str, tuple[str, int]] = {}
        for node in graph.node:
            self._follow(node)

    def _follow(self, node: onnx.NodeProto) -> None:
        if node.op_type == "DequantizeLinear":
            self._know(node, "Abs", [node.output[0]], 2)
        elif not any(name in self._known for name in node.input):
            return
        elif node.op_type == "QuantizeLinear":
            self.names[node.output[0]], self.terms[node.output[0]] = self._known[node.input[0]]
        elif node.op_type in _BOUNDED:
            self._know(node, "Add", [self._operand(node.input[0]), "magnitude.one"], 8)
        elif node.op_type in _GENTLE:
            self._know(node, "Identity", [self._operand(node.input[0])], 8)
        elif node.op_type in _AS_ADD:
            self._know(node, "Add", [self._operand(name) for name in node.input], 2)
        elif node.op_type == "BatchNormalization":
            x, gain, bias, mean = (self._operand(name) for name in node.input[:4])
            below = f"{mean}.negative"
            self.nodes.append(helper.make_node("Neg", [mean], [below]))
            inputs = [x, gain, bias, below, node.input[4]]
            self._know(node, "BatchNormalization", inputs, 8, node.attribute)
        elif node.op_type in _LINEAR:
            inputs = [self._operand(name) for name in node.input]
            self._know(node, node.op_type, inputs, self._sum_of(node), node.attribute)

    def _know(
        self,
        node: onnx.NodeProto,
        op: str,
        inputs: list[str],
        terms: int,
        attributes: object = (),
    ) -> None:
        """The magnitude of a node's result, after `terms` more operations than its operands had."""
        output = node.output[0]
        made = helper.make_node(op, inputs, [f"{output}.magnitude"])
        made.attribute.extend(attributes)  # type: ignore[arg-type]
        self.nodes.append(made)
        self._shapes.setdefault(output, self._shapes.get(node.input[0], ()))
        before = max((self._known[n][1] for n in node.input if n in self._known), default=0)
        self._known[output] = (f"{output}.magnitude", before + terms)

    def _operand(self, name: str) -> str:
        if name in self._known:
            return self._known[name][0]
        if name not in self._floats:
            return name
        self.nodes.append(helper.make_node("Abs", [name], [f"{name}.magnitude"]))
        self._known[name] = (f"{name}.magnitude", 0)
        return f"{name}.magnitude"

    def _sum_of(self, node: onnx.NodeProto) -> int:
        """How many products or elements one result adds up, or a few more."""
        shapes = [self._shapes.get(name, ()) for name in node.input]
        if node.op_type in ("Conv", "ConvTranspose"):
            return 2 * prod(shapes[1]) // min(shapes[1][:2]) + 2
        if node.op_type in ("Gemm", "MatMul"):
            return 2 * max(max(shapes[1]), shapes[0][-1] if node.op_type == "MatMul" else 1)
        if node.op_type in ("GlobalAveragePool", "ReduceMean", "AveragePool"):
            return prod(shapes[0][2:]) + 2
        return 4
