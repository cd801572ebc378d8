"""Cross-layer equalisation: channels between two layers get ranges that are alike.

Relu, LeakyRelu and pooling let a positive factor per channel pass, so the factor taken out of a
layer's output channel can be put into the next layer's input channel. With factors
sqrt(r1 / r2), r1 and r2 the channel's largest weights before and behind, both layers use their
codes evenly (Nagel, van Baalen, Blankevoort, Welling: Data-Free Quantization Through Weight
Equalization and Bias Correction, 2019). Clip at 6 lets no factor pass; such pairs are left alone.
"""

from dataclasses import dataclass

import numpy as np
import onnx

from vitral.compiler.quantize.float_graph import Array, FloatGraph, attributes
from vitral.compiler.quantize.products import Product, as_product

__all__ = ["equalize"]

PASSABLE = ("Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool")
_ROUNDS = 20
_SETTLED = 1e-3
_MOST = 1e4


@dataclass(frozen=True, kw_only=True)
class _Pair:
    first: onnx.NodeProto
    second: onnx.NodeProto


def equalize(graph: FloatGraph) -> int:
    """Even out neighbouring layers in place; the number of pairs.

    The function of the graph stays the same but for rounding in float32. Pairs are visited until no
    factor moves, since a layer in the middle of three belongs to two of them.
    """
    pairs = [pair for node in graph.nodes if (pair := _pair(graph, node)) is not None]
    for _ in range(_ROUNDS):
        moves = [_balance(graph, pair) for pair in pairs]
        if max(moves, default=0.0) < _SETTLED:
            break
    graph.sweep()
    return len(pairs)


def _pair(graph: FloatGraph, node: onnx.NodeProto) -> _Pair | None:
    first = as_product(graph, node)
    if first is None or first.repeats != 1 or node.op_type == "MatMul":
        return None
    name = node.output[0]
    while (reader := graph.only_reader(name)) is not None and reader.op_type in PASSABLE:
        if reader.op_type == "LeakyRelu" and attributes(reader).get("alpha", 0.01) < 0:
            return None
        name = reader.output[0]
    second = None if reader is None or reader.input[0] != name else as_product(graph, reader)
    if reader is None or second is None or _inputs_of(second) != first.outputs:
        return None
    return _Pair(first=node, second=reader)


def _inputs_of(product: Product) -> int | None:
    """Input channels where a factor for each of them can be taken in, else None."""
    group = attributes(product.node).get("group", 1)
    if product.node.op_type == "Conv":
        return product.weight.shape[1] * group
    if product.node.op_type == "Gemm":
        return product.weight.shape[1]
    return product.weight.shape[0] if product.node.op_type == "MatMul" else None


def _balance(graph: FloatGraph, pair: _Pair) -> float:
    """Move factors across one pair; the largest |log| of a factor."""
    first, second = as_product(graph, pair.first), as_product(graph, pair.second)
    assert first is not None
    assert second is not None
    before = np.abs(first.weight).reshape(first.outputs, -1).max(axis=1).astype(np.float64)
    peaks = np.abs(_input_view(second)).max(axis=(2, 3)).reshape(-1).astype(np.float64)
    live = (before > 0) & (peaks > 0)
    factor = np.ones_like(before)
    factor[live] = np.clip(np.sqrt(before[live] / peaks[live]), 1 / _MOST, _MOST)
    _replace(graph, first, first.scaled(1 / factor), factor)
    _replace(graph, second, _taken_in(second, factor), None)
    return float(np.abs(np.log(factor)).max(initial=0.0))


def _input_view(product: Product) -> Array:
    """Weights as (group, inputs per group, outputs per group, taps)."""
    group = attributes(product.node).get("group", 1) if product.node.op_type == "Conv" else 1
    weight = product.weight.T if product.node.op_type == "MatMul" else product.weight
    split = weight.reshape(group, weight.shape[0] // group, weight.shape[1], -1)
    return split.transpose(0, 2, 1, 3)


def _taken_in(product: Product, factor: Array) -> Array:
    view = _input_view(product)
    scaled = view * factor.reshape(view.shape[0], view.shape[1], 1, 1)
    weight = scaled.transpose(0, 2, 1, 3)
    if product.node.op_type == "MatMul":
        return np.ascontiguousarray(weight.reshape(product.weight.T.shape).T).astype(np.float32)
    return weight.reshape(product.weight.shape).astype(np.float32)


def _replace(graph: FloatGraph, product: Product, weight: Array, factor: Array | None) -> None:
    node = product.node
    node.input[1] = graph.constant(f"{node.name}.weight", weight)
    if factor is not None and product.bias is not None:
        bias = (product.bias.astype(np.float64) / factor).astype(np.float32)
        node.input[2] = graph.constant(f"{node.name}.bias", bias)
