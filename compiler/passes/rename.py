"""Replaces and renames values of a graph."""

from collections.abc import Collection, Container, Mapping
from dataclasses import replace

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import Op

__all__ = ["redirect", "rename_value", "rewired", "unused_name"]


def unused_name(name: str, taken: Container[str]) -> str:
    """The name itself, or with underscores behind it, so that it is none of `taken`."""
    while name in taken:
        name += "_"
    return name


def rewired(op: Op, names: Mapping[str, str]) -> Op:
    """The operator with its arguments replaced; itself when none is."""
    if not any(name in names for name in op.inputs):
        return op
    return replace(op, inputs=tuple(names.get(name, name) for name in op.inputs))


def redirect(graph: Graph, names: Mapping[str, str], *, drop: Collection[Op]) -> Graph:
    """Readers of each key read its value instead; the operators `drop` are gone.

    A value that is itself a key is followed to its end. Graph outputs are not keys.
    """
    final = {name: _end(names, name) for name in names}
    gone = set(map(id, drop))
    ops = tuple(rewired(op, final) for op in graph.ops if id(op) not in gone)
    dropped = {op.output for op in drop}
    types = {name: t for name, t in graph.types.items() if name not in dropped}
    return replace(graph, ops=ops, types=types)


def rename_value(graph: Graph, old: str, new: str) -> Graph:
    """The graph with an operator's result called `new`, a name that has no type yet."""
    ops = tuple(
        replace(op, output=new if op.output == old else op.output)
        for op in (rewired(op, {old: new}) for op in graph.ops)
    )
    types = {new if name == old else name: type_ for name, type_ in graph.types.items()}
    return replace(graph, ops=ops, types=types)


def _end(names: Mapping[str, str], name: str) -> str:
    while name in names:
        name = names[name]
    return name
