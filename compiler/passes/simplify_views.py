"""Joins chains of reshapes and drops those that change nothing."""

from dataclasses import replace

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import Op, Reshape
from vitral.compiler.passes.rename import redirect, rewired

__all__ = ["simplify_views"]


def simplify_views(graph: Graph) -> Graph:
    """Every reshape reads a value that is no reshape; one to the shape it has is gone.

    A reshape that gives a graph output its name stays.
    """
    source: dict[str, str] = {}
    ops: list[Op] = []
    for op in graph.ops:
        if isinstance(op, Reshape):
            op = rewired(op, source)
            source[op.output] = op.inputs[0]
        ops.append(op)
    graph = replace(graph, ops=tuple(ops))
    idle = [
        op
        for op in graph.ops
        if isinstance(op, Reshape)
        and op.output not in graph.outputs
        and graph.types[op.inputs[0]].shape == op.shape
    ]
    return redirect(graph, {op.output: op.inputs[0] for op in idle}, drop=idle)
