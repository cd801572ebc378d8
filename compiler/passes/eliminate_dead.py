"""Removes operators and constants that no output needs."""

from dataclasses import replace

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import Op

__all__ = ["eliminate_dead"]


def eliminate_dead(graph: Graph) -> Graph:
    """Only what the outputs need; inputs stay, needed or not."""
    needed = set(graph.outputs)
    kept: list[Op] = []
    for op in reversed(graph.ops):
        if op.output in needed:
            kept.append(op)
            needed.update(op.inputs)
    needed.update(graph.inputs)
    return replace(
        graph,
        ops=tuple(reversed(kept)),
        constants={n: a for n, a in graph.constants.items() if n in needed},
        types={n: t for n, t in graph.types.items() if n in needed},
    )
