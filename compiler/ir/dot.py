"""A graph as a drawing, in the language of Graphviz."""

import json
from collections.abc import Mapping, Sequence

from vitral.compiler.ir.graph import Graph

__all__ = ["to_dot"]


def to_dot(graph: Graph) -> str:
    """A node for each operator, input and output, an edge for each value that flows.

    Constants are not drawn; an edge tells the value's type.
    """
    lines = ["digraph {", '  node [shape=box, fontname="sans-serif"];']
    source: dict[str, str] = {}
    for name in graph.inputs:
        lines.append(f"  {_id('in', name)} [label={json.dumps(name)}, shape=ellipse];")
        source[name] = _id("in", name)
    for number, op in enumerate(graph.ops):
        lines.append(f"  op{number} [label={json.dumps(_label(op.kind, op.name))}];")
        source[op.output] = f"op{number}"
        lines += _edges(graph, op.inputs, f"op{number}", source)
    for name in graph.outputs:
        lines.append(f"  {_id('out', name)} [label={json.dumps(name)}, shape=ellipse];")
        lines += _edges(graph, [name], _id("out", name), source)
    return "\n".join([*lines, "}", ""])


def _edges(graph: Graph, names: Sequence[str], to: str, source: Mapping[str, str]) -> list[str]:
    drawn = [name for name in names if name in source]
    return [
        f"  {source[name]} -> {to} [label={json.dumps(_short(graph, name))}];" for name in drawn
    ]


def _short(graph: Graph, name: str) -> str:
    type_ = graph.types[name]
    return f"{'x'.join(map(str, type_.shape))} {type_.dtype}"


def _label(kind: str, name: str) -> str:
    return kind if name == kind else f"{kind}\n{name}"


def _id(kind: str, name: str) -> str:
    return json.dumps(f"{kind} {name}")
