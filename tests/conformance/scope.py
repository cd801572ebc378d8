"""Which node tests must pass: rules on the graph, never on a test's name or on what failed.

Vitral is for int8 and uint8 networks, so a test is in scope when every operator is one that such
networks are made of and every tensor has a type and rank that they have.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import onnx
from onnx import TensorProto, helper

__all__ = ["OPERATORS", "RULES", "out_of_scope"]

OPERATORS = (
    *("Conv", "ConvTranspose", "QLinearConv", "ConvInteger"),
    *("Gemm", "MatMul", "QLinearMatMul", "MatMulInteger"),
    *("QuantizeLinear", "DequantizeLinear", "Add", "Sub", "Mul"),
    *("Relu", "Clip", "LeakyRelu", "PRelu", "Sigmoid", "Tanh"),
    *("HardSwish", "HardSigmoid", "Swish", "Softmax", "ArgMax"),
    *("MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean"),
    *("Concat", "Split", "Slice", "Pad", "Transpose", "Reshape", "Flatten"),
    *("Squeeze", "Unsqueeze", "Resize", "DepthToSpace", "SpaceToDepth", "Upsample"),
    "BatchNormalization",
)
"""Operators of which quantized networks are made; onnx's tests of each are run."""

_VALUES = ("FLOAT", "INT8", "UINT8", "INT32")
_RESULTS = (*_VALUES, "INT64")
_SPATIAL = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool")
_ARITHMETIC = ("Add", "Sub", "Mul", "Clip", "MatMul", "Gemm", "Relu", "PRelu")
_PARAMETERS = {
    "QuantizeLinear": (1, 2),
    "DequantizeLinear": (1, 2),
    "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "QLinearConv": (1, 2, 4, 5, 6, 7),
}
"""Positions of scales and zero points."""

Rule = Callable[[onnx.GraphProto], Iterator[str]]


def out_of_scope(model: onnx.ModelProto) -> str | None:
    """Why a test is out of scope, in a few words; None when it is in scope."""
    return next((reason for rule in RULES for reason in rule(model.graph)), None)


def _operators(graph: onnx.GraphProto) -> Iterator[str]:
    """Only the operators of quantized networks."""
    yield from (f"operator {n.op_type}" for n in graph.node if n.op_type not in OPERATORS)


def _types(graph: onnx.GraphProto) -> Iterator[str]:
    """Data of float32, int8, uint8 or int32; results int64 too; scales float32, codes 8 bits."""
    types = {info.name: _type_name(info) for info in (*graph.input, *graph.output)}
    for node in graph.node:
        parameters = [
            node.input[i] for i in _PARAMETERS.get(node.op_type, ()) if i < len(node.input)
        ]
        for name in (node.input[0], *parameters):
            if types.get(name, "FLOAT") not in _VALUES:
                yield f"element type {types[name].lower()}"
    for info in graph.output:
        if types[info.name] not in _RESULTS:
            yield f"element type {types[info.name].lower()}"


def _integers(graph: onnx.GraphProto) -> Iterator[str]:
    """Arithmetic on real numbers, not on integers that have no scale."""
    types = {info.name: _type_name(info) for info in graph.input}
    for node in graph.node:
        if node.op_type in _ARITHMETIC and types.get(node.input[0], "FLOAT") != "FLOAT":
            yield "arithmetic on integers without scale"


def _ranks(graph: onnx.GraphProto) -> Iterator[str]:
    """One or two spatial dimensions."""
    ranks = {info.name: len(info.type.tensor_type.shape.dim) for info in graph.input}
    for node in graph.node:
        if node.op_type in _SPATIAL and ranks.get(node.input[0], 4) > 4:
            yield "three spatial dimensions"


def _empty(graph: onnx.GraphProto) -> Iterator[str]:
    """Tensors with at least one element."""
    for info in (*graph.input, *graph.output):
        if any(
            d.HasField("dim_value") and not d.dim_value for d in info.type.tensor_type.shape.dim
        ):
            yield "tensors without elements"


def _forms(graph: onnx.GraphProto) -> Iterator[str]:
    """Inference; scales per tensor or channel; nearest and linear interpolation."""
    for node in graph.node:
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if given.get("training_mode"):
            yield "training"
        if given.get("block_size"):
            yield "scales of blocks"
        if node.op_type == "MaxPool" and len(node.output) > 1:
            yield "indices of maxima"
        if node.op_type == "Resize":
            yield from _interpolation(given)


def _interpolation(given: dict[str, Any]) -> Iterator[str]:
    if given.get("mode") == b"cubic":
        yield "cubic interpolation"
    if given.get("antialias"):
        yield "antialiasing"
    if given.get("coordinate_transformation_mode") == b"tf_crop_and_resize":
        yield "cropping resize"


RULES: Sequence[Rule] = (_operators, _types, _integers, _ranks, _empty, _forms)
"""Each gives reasons why a graph is out of scope; its first docstring line is what it asks for."""


def _type_name(info: onnx.ValueInfoProto) -> str:
    return TensorProto.DataType.Name(info.type.tensor_type.elem_type)
