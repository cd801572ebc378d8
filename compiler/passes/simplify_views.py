"""Joins chains of reshapes and drops those that change nothing."""

from dataclasses import replace

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import Op, Reshape
from vitral.compiler.passes.rename import redirect, rename_value, rewired

__all__ = ["simplify_views"]


def simplify_views(graph: Graph) -> Graph:
    """Every reshape reads a value that is no reshape; one to the shape it has is gone.

    One that only gives a graph output its name is gone too where the value can take that name: it
    is neither an input nor a constant nor another output.
    """
    graph = _joined(graph)
    idle = [op for op in graph.ops if _is_idle(graph, op) and op.output not in graph.outputs]
    graph = redirect(graph, {op.output: op.inputs[0] for op in idle}, drop=idle)
    for name in graph.outputs:
        graph = _named(graph, name)
    return graph


def _joined(graph: Graph) -> Graph:
    source: dict[str, str] = {}
    ops: list[Op] = []
    for op in graph.ops:
        if isinstance(op, Reshape):
            op = rewired(op, source)
            source[op.output] = op.inputs[0]
        ops.append(op)
    return replace(graph, ops=tuple(ops))


def _is_idle(graph: Graph, op: Op) -> bool:
    return isinstance(op, Reshape) and graph.types[op.inputs[0]].shape == op.shape


def _named(graph: Graph, output: str) -> Graph:
    writers = graph.producers()
    view = writers.get(output)
    if view is None or not _is_idle(graph, view):
        return graph
    (source,) = view.inputs
    if source not in writers or source in graph.outputs:
        return graph
    ops = tuple(op for op in graph.ops if op is not view)
    types = {name: type_ for name, type_ in graph.types.items() if name != view.output}
    return rename_value(replace(graph, ops=ops, types=types), source, view.output)
