"""Records the quantized form of the graph's inputs and outputs."""

from dataclasses import replace

from vitral.compiler.ir import Graph, Quant
from vitral.compiler.ir.ops import (
    AveragePool,
    Binary,
    Conv2d,
    Dequantize,
    Interpolate,
    MatMul,
    Op,
    Quantize,
    Requantizing,
)

__all__ = ["note_edges"]


def note_edges(graph: Graph) -> Graph:
    """`edges` holds the scale and zero point of each input and output that has one pair of them.

    Edges that the importer knows stay where no operator tells.
    """
    readers, writers = graph.consumers(), graph.producers()
    edges = dict(graph.edges)
    for name in graph.inputs:
        found = {_read_quant(op, name) for op in readers.get(name, ())}
        quant = found.pop() if len(found) == 1 else None
        if quant is not None and quant.axis is None:
            edges[name] = quant
    for name in graph.outputs:
        op = writers.get(name)
        quant = None if op is None else _written_quant(op)
        if quant is not None and quant.axis is None:
            edges[name] = quant
    return replace(graph, edges=edges)


def _read_quant(op: Op, name: str) -> Quant | None:
    if isinstance(op, Quantize | Dequantize):
        return op.quant
    if isinstance(op, Requantizing) and op.sums:
        return None
    if isinstance(op, Conv2d | AveragePool | Interpolate):
        return op.x_quant
    if isinstance(op, Binary | MatMul):
        return op.a_quant if op.inputs[0] == name else op.b_quant
    return None


def _written_quant(op: Op) -> Quant | None:
    if isinstance(op, Quantize | Dequantize):
        return op.quant
    return op.y_quant if isinstance(op, Requantizing) else None
