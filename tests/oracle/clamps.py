"""Which quantized tensors pile up on the zero of a Relu, found in the graph alone."""

import os

import onnx

from oracle.graph import Graph, Node, load
from oracle.values import Array

__all__ = ["clamp_values"]

_CLAMPING = ("Relu", "Clip")
_PASSING = (
    "DequantizeLinear",
    "Flatten",
    "Identity",
    "MaxPool",
    "QuantizeLinear",
    "Reshape",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
_OUTPUT_ZERO_POINT = {
    "QuantizeLinear": 2,
    "QLinearConv": 7,
    "QLinearMatMul": 7,
    "QLinearAdd": 7,
    "QGemm": 8,
}


def clamp_values(
    model: onnx.ModelProto | bytes | str | os.PathLike[str],
) -> dict[str, int]:
    """Tensor name -> the integer that stands for real 0 behind a Relu (or Clip at 0).

    A tensor counts as clamped when a Relu or Clip comes before its QuantizeLinear, directly or
    through operators that only move or choose elements, or when its zero point is the lowest value
    of its type, which clamps at 0 all by itself (quantizers drop the Relu then).
    """
    graph = load(model)
    clamped: set[str] = set()
    found: dict[str, int] = {}
    for node in graph.nodes:
        output = node.outputs[0]
        source_clamped = node.op in _PASSING and node.inputs[0] in clamped
        if node.op in _CLAMPING or source_clamped:
            clamped.add(output)
        zero = _zero_point(graph, node)
        if zero is not None:
            if output in clamped or int(zero) == _lowest(zero):
                clamped.add(output)
                found[output] = int(zero)
        elif source_clamped and node.inputs[0] in found and node.op != "DequantizeLinear":
            found[output] = found[node.inputs[0]]
    return found


def _zero_point(graph: Graph, node: Node) -> Array | None:
    index = _OUTPUT_ZERO_POINT.get(node.op)
    if index is None or index >= len(node.inputs):
        return None
    zero = graph.constants.get(node.inputs[index])
    return zero if zero is not None and zero.size == 1 else None


def _lowest(zero: Array) -> int:
    return -128 if zero.dtype.kind == "i" else 0
