"""Check that a graph is well formed; run between passes."""

from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.infer import infer
from vitral.compiler.ir.types import TensorType
from vitral.errors import CompileError

__all__ = ["verify"]


def verify(graph: Graph) -> None:
    """Every value is defined once, before its uses, with the type its operator gives.

    Raises CompileError in one line naming the node or value.
    """
    known: dict[str, TensorType] = {}
    for name in (*graph.inputs, *graph.constants):
        _define(graph, known, name, "the graph's inputs and constants")
    for op in graph.ops:
        where = f"node {op.name!r} ({op.kind})"
        for name in op.inputs:
            if name not in known:
                raise CompileError(f"{where}: needs value {name!r} computed before it, found none")
        result = infer(op, [known[name] for name in op.inputs])
        _define(graph, known, op.output, where)
        if known[op.output] != result:
            raise CompileError(
                f"{where}: value {op.output!r} is declared {known[op.output]}, computed {result}"
            )
    for name in graph.outputs:
        if name not in known:
            raise CompileError(f"output {name!r}: needs a node that computes it, found none")


def _define(graph: Graph, known: dict[str, TensorType], name: str, where: str) -> None:
    if name in known:
        raise CompileError(f"{where}: value {name!r} is defined a second time")
    if name not in graph.types:
        raise CompileError(f"{where}: value {name!r} needs a type, has none")
    known[name] = graph.types[name]
