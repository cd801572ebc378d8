"""Batch normalisation and constant factors and sums go into the weights of the layer before."""

import numpy as np
import onnx

from vitral.compiler.quantize.float_graph import Array, FloatGraph, attributes, set_attribute
from vitral.compiler.quantize.prepare import static_shapes
from vitral.compiler.quantize.products import Product, as_product

__all__ = ["fold_scales"]

Line = tuple[Array, Array]
"""Factor and offset for each output channel, float64 (outputs,)."""


def fold_scales(graph: FloatGraph) -> None:
    """Fold each BatchNormalization and each constant Add, Sub, Mul and Div behind a layer into it.

    The layer's result must have no other reader. A normalisation of (N, C, H, W) that stands alone
    becomes a depthwise 1x1 convolution. Sums are in float64, rounded to float32 once for each fold.
    """
    while _fold_one(graph):
        pass
    _matmuls_to_gemm(graph)
    _lone_norms_to_convs(graph)
    graph.sweep()


def _fold_one(graph: FloatGraph) -> bool:
    for node in graph.nodes:
        product = as_product(graph, node)
        reader = None if product is None else graph.only_reader(node.output[0])
        if product is None or reader is None or not product.has_bias:
            continue
        line = _line(graph, reader, node.output[0], product)
        if line is not None:
            _fold(graph, product, line)
            graph.remove(reader, instead=node.output[0])
            return True
    return False


def _line(graph: FloatGraph, node: onnx.NodeProto, source: str, product: Product) -> Line | None:
    """What `node` does to channel c of `source`: factor * x + offset; None when it is no line."""
    if node.domain:
        return None
    if node.op_type == "BatchNormalization" and len([n for n in node.output if n]) == 1:
        return _normalisation(graph, node)
    if node.op_type not in ("Add", "Sub", "Mul", "Div"):
        return None
    first = node.input[0] == source
    other = graph.array(node, 1 if first else 0)
    if other is None or (node.op_type == "Div" and not first):
        return None
    values = _per_channel(other, product)
    if values is None:
        return None
    ones, zeros = np.ones_like(values), np.zeros_like(values)
    if node.op_type == "Add":
        return ones, values
    if node.op_type == "Sub":
        return (ones, -values) if first else (-ones, values)
    if node.op_type == "Div":
        return (1 / values, zeros) if values.all() else None
    return values, zeros


def _normalisation(graph: FloatGraph, node: onnx.NodeProto) -> Line | None:
    parts = [graph.array(node, index) for index in range(1, 5)]
    if any(part is None for part in parts) or attributes(node).get("training_mode", 0):
        return None
    scale, bias, mean, variance = (np.asarray(part, np.float64) for part in parts)
    factor = scale / np.sqrt(variance + attributes(node).get("epsilon", 1e-5))
    return factor, bias - mean * factor


def _per_channel(values: Array, product: Product) -> Array | None:
    """A constant of one number, or of one along the channels of the result, as (outputs,)."""
    if values.dtype != np.float32:
        return None
    if values.size == 1:
        # more dimensions than the result has would give it another shape
        fits = values.ndim <= _result_rank(product)
        return np.full(product.outputs, values.reshape(-1)[0], np.float64) if fits else None
    behind = _result_rank(product) - 2
    shape = values.shape
    while shape[:1] == (1,) and len(shape) > behind + 1:
        shape = shape[1:]
    if shape != (product.outputs, *[1] * behind):
        return None
    return values.reshape(-1).astype(np.float64)


def _result_rank(product: Product) -> int:
    return product.weight.ndim


def _fold(graph: FloatGraph, product: Product, line: Line) -> None:
    factor, offset = line
    node, bias = product.node, product.bias
    old = np.zeros(product.outputs) if bias is None else bias.astype(np.float64)
    weight = graph.constant(f"{node.name}.weight", product.scaled(factor))
    added = graph.constant(f"{node.name}.bias", (old * factor + offset).astype(np.float32))
    node.input[:] = [node.input[0], weight, added]


def _matmuls_to_gemm(graph: FloatGraph) -> None:
    """MatMul of a matrix with constant weights, and the constant added to it, is a Gemm."""
    shapes = static_shapes(graph)
    for node in list(graph.nodes):
        product = as_product(graph, node)
        if product is None or product.has_bias or len(shapes.get(node.input[0], ())) != 2:
            continue
        reader = graph.only_reader(node.output[0])
        bias = None
        if reader is not None and reader.op_type == "Add":
            other = graph.array(reader, 1 if reader.input[0] == node.output[0] else 0)
            bias = None if other is None else _per_channel(other, product)
        node.op_type = "Gemm"
        set_attribute(node, "transB", 1)
        node.input[1] = graph.constant(
            f"{node.name}.weight", np.ascontiguousarray(product.weight.T)
        )
        if bias is not None and reader is not None:
            node.input.append(graph.constant(f"{node.name}.bias", bias.astype(np.float32)))
            graph.remove(reader, instead=node.output[0])


def _lone_norms_to_convs(graph: FloatGraph) -> None:
    shapes = static_shapes(graph)
    for node in graph.nodes:
        line = _normalisation(graph, node) if node.op_type == "BatchNormalization" else None
        if line is None or len(shapes.get(node.input[0], ())) != 4:
            continue
        factor, offset = (part.astype(np.float32) for part in line)
        weight = graph.constant(f"{node.name}.weight", factor.reshape(-1, 1, 1, 1))
        bias = graph.constant(f"{node.name}.bias", offset)
        node.input[:] = [node.input[0], weight, bias]
        node.op_type = "Conv"
        del node.attribute[:]
        set_attribute(node, "kernel_shape", [1, 1])
        set_attribute(node, "group", factor.size)
