"""Multiply-accumulates of an ONNX model, from the shapes that onnx infers."""

from math import prod

import onnx
from onnx import shape_inference

from vitral.errors import VitralError

__all__ = ["count_macs"]

_WEIGHT_AT = {"Conv": 1, "ConvTranspose": 1, "Gemm": 1, "MatMul": 1, "QLinearConv": 3}
_WEIGHT_AT |= {"QLinearMatMul": 3, "ConvInteger": 1, "MatMulInteger": 1}


def count_macs(model: onnx.ModelProto) -> int:
    """Products of convolutions, matrix products and their kin; padding counts as data.

    Raises
    ------
    VitralError
        When a shape is not known.
    """
    graph = shape_inference.infer_shapes(model, strict_mode=False, data_prop=True).graph
    shapes = {
        info.name: [d.dim_value for d in info.type.tensor_type.shape.dim]
        for info in (*graph.input, *graph.value_info, *graph.output)
    }
    shapes |= {constant.name: list(constant.dims) for constant in graph.initializer}
    return sum(_of_node(node, shapes) for node in graph.node if node.op_type in _WEIGHT_AT)


def _of_node(node: onnx.NodeProto, shapes: dict[str, list[int]]) -> int:
    source, weight, result = node.input[0], node.input[_WEIGHT_AT[node.op_type]], node.output[0]
    for name in (source, weight, result):
        if name not in shapes or 0 in shapes[name]:
            raise VitralError(f"node {node.name!r}: the shape of {name!r} is not known")
    if node.op_type == "ConvTranspose":
        return prod(shapes[source]) * prod(shapes[weight][1:])
    if "Conv" in node.op_type:
        return prod(shapes[result]) * prod(shapes[weight][1:])
    attributes = {a.name: a.i for a in node.attribute}
    inner = shapes[source][0 if attributes.get("transA") else -1]
    return prod(shapes[result]) * inner
