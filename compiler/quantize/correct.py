"""Bias correction: the mean error of each output channel goes out by its bias."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

from vitral.compiler.quantize.codes import Affine, layer_codes
from vitral.compiler.quantize.collect import Step, open_session, run_tensors
from vitral.compiler.quantize.config import QuantizeConfig
from vitral.compiler.quantize.float_graph import Array, FloatGraph, set_attribute
from vitral.compiler.quantize.products import Product, as_product
from vitral.compiler.quantize.samples import Samples
from vitral.compiler.quantize.select import Selection

__all__ = ["correct_biases"]


def correct_biases(
    graph: FloatGraph,
    selection: Selection,
    codes: Mapping[str, Affine],
    samples: Samples,
    config: QuantizeConfig,
    step: Step | None = None,
) -> int:
    """Change biases in place by E[W * x - W' * x'], W' and x' rounded; the number of layers.

    x are the float inputs of the layer on the samples, so each layer's own error is measured, and
    none is corrected twice. Padding is part of the mean. Layers without a bias get one.
    """
    probes = FloatGraph(graph.to_model())
    outputs: dict[str, str] = {}
    for node in graph.nodes:
        product = as_product(graph, node)
        if product is None or node.name not in selection.nodes or not product.has_bias:
            continue
        outputs[node.name] = _probe(probes, product, codes[node.input[0]], config)
    session = open_session(probes.to_model(), outputs.values())
    sums: dict[str, Array | float] = dict.fromkeys(outputs, 0.0)
    count = 0
    for tensors in run_tensors(session, samples, list(outputs.values()), step):
        size = min(samples.batch, samples.count - count)
        count += size
        for name, output in outputs.items():
            sums[name] = sums[name] + tensors[output].astype(np.float64) * size
    for name, total in sums.items():
        _move(graph, name, np.asarray(total) / count)
    return len(outputs)


def _probe(probes: FloatGraph, product: Product, source: Affine, config: QuantizeConfig) -> str:
    """Adds (W - W') * x + W' * (x - x') and its mean over all but the channels; its name."""
    node = product.node
    weights = layer_codes(product, source, config)
    rounded = weights.weight * product.along(
        np.broadcast_to(weights.scale, (product.scales,))
    ).astype(np.float32)
    scale = probes.constant(f"{node.name}.probe_scale", np.array(source.scale))
    zero = probes.constant(f"{node.name}.probe_zero", np.array(source.zero_point))
    names = [probes.unique(f"{node.name}.probe{number}") for number in range(6)]
    _append(probes, "QuantizeLinear", [node.input[0], scale, zero], names[0])
    _append(probes, "DequantizeLinear", [names[0], scale, zero], names[1])
    for weight, x, y in (
        (product.weight, node.input[0], names[2]),
        (rounded.astype(np.float32), names[1], names[3]),
    ):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [x, probes.constant(f"{y}.weight", weight)]
        copy.output[:] = [y]
        copy.name = y
        probes.nodes.append(copy)
    _append(probes, "Sub", names[2:4], names[4])
    _append(probes, "ReduceMean", [names[4]], names[5])
    axes = [0, *range(2, product.weight.ndim)]
    if probes.opsets[""] < 18:
        set_attribute(probes.nodes[-1], "axes", axes)
    else:
        probes.nodes[-1].input.append(probes.constant(f"{names[5]}.axes", np.array(axes)))
    set_attribute(probes.nodes[-1], "keepdims", 0)
    return names[5]


def _append(probes: FloatGraph, op: str, inputs: list[str], output: str) -> None:
    probes.nodes.append(helper.make_node(op, inputs, [output], name=output))


def _move(graph: FloatGraph, name: str, error: Array) -> None:
    node = graph.find(name)
    product = as_product(graph, node)
    assert product is not None
    bias = np.zeros(product.outputs) if product.bias is None else product.bias
    moved = graph.constant(f"{name}.bias", (bias + error).astype(np.float32))
    node.input[:] = [node.input[0], node.input[1], moved]
