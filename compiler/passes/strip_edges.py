"""Removes the QuantizeLinear of inputs and the DequantizeLinear of outputs."""

from dataclasses import replace

from vitral.compiler.ir import Graph, TensorType
from vitral.compiler.ir.ops import Dequantize, Quantize
from vitral.compiler.passes.rename import redirect, rename_value

__all__ = ["strip_edges"]


def strip_edges(graph: Graph) -> Graph:
    """Inputs and outputs keep their names and become codes wherever one scale describes them."""
    for name in graph.inputs:
        graph = _strip_input(graph, name)
    for name in graph.outputs:
        graph = _strip_output(graph, name)
    return graph


def _strip_input(graph: Graph, name: str) -> Graph:
    readers = graph.consumers().get(name, [])
    quant = graph.edges.get(name)
    if quant is None or not all(isinstance(op, Quantize) for op in readers):
        return graph
    if name in graph.outputs or any(op.output in graph.outputs for op in readers):
        return graph
    graph = redirect(graph, {op.output: name for op in readers}, drop=readers)
    codes = TensorType(graph.types[name].shape, quant.dtype)
    return replace(graph, types={**graph.types, name: codes})


def _strip_output(graph: Graph, name: str) -> Graph:
    op = graph.producers().get(name)
    if not isinstance(op, Dequantize) or op.quant.axis is not None:
        return graph
    (codes,) = op.inputs
    writer = graph.producers().get(codes)
    if writer is None or codes in graph.outputs or graph.consumers().get(name):
        return graph
    kept = tuple(o for o in graph.ops if o is not op)
    types = {n: t for n, t in graph.types.items() if n != name}
    return rename_value(replace(graph, ops=kept, types=types), codes, name)
