"""Reads the JSON form of an NNVM graph into checked records."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vitral.errors import CompileError

__all__ = ["Node", "Symbol", "parse_symbol"]


@dataclass(frozen=True)
class Node:
    """An operator, or a variable where `op` is "null".

    `inputs` are pairs of a node's number and which of its results; `attrs` are texts.
    """

    op: str
    name: str
    inputs: tuple[tuple[int, int], ...]
    attrs: Mapping[str, str]


@dataclass(frozen=True)
class Symbol:
    """Nodes in an order in which inputs come first, results, and shapes the file states."""

    nodes: tuple[Node, ...]
    heads: tuple[tuple[int, int], ...]
    shapes: Mapping[str, tuple[int, ...]]


def parse_symbol(text: str) -> Symbol:
    """The graph of a JSON text; CompileError in one line for one that is none."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise CompileError(f"NNVM graph: line {error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(content, dict) or "nodes" not in content or "heads" not in content:
        raise CompileError("NNVM graph: needs a JSON object with nodes and heads")
    listed = content["nodes"]
    if not isinstance(listed, list) or not listed:
        raise CompileError("NNVM graph: needs at least one node, got none")
    nodes = tuple(_node(item, number) for number, item in enumerate(listed))
    for number, node in enumerate(nodes):
        for source, _ in node.inputs:
            if source >= number:
                raise CompileError(
                    f"NNVM node {node.name!r}: needs inputs that come before it (node {number}),"
                    f" got node {source}"
                )
    heads = tuple(_entry(item, len(nodes), "heads") for item in _list(content["heads"], "heads"))
    if not heads:
        raise CompileError("NNVM graph: needs at least one head, got none")
    return Symbol(nodes, heads, _shapes(content, nodes))


def _node(item: Any, number: int) -> Node:
    if not isinstance(item, dict) or not isinstance(item.get("op"), str):
        raise CompileError(f"NNVM node {number}: needs an object with op, name and inputs")
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise CompileError(f"NNVM node {number} ({item['op']}): needs a name")
    attrs = item.get("attrs", item.get("attr", {}))
    if not isinstance(attrs, dict) or not all(isinstance(v, str) for v in attrs.values()):
        raise CompileError(f"NNVM node {name!r}: needs attributes that are texts")
    listed = _list(item.get("inputs", []), f"node {name!r}: inputs")
    inputs = tuple(_entry(entry, number, f"node {name!r}") for entry in listed)
    return Node(item["op"], name, inputs, attrs)


def _entry(item: Any, count: int, where: str) -> tuple[int, int]:
    """A pair of node and result, of a graph that has `count` nodes so far."""
    whole = isinstance(item, list) and len(item) in (2, 3) and all(type(v) is int for v in item)
    if not whole or not 0 <= item[0] < count or item[1] < 0:
        raise CompileError(
            f"NNVM {where}: needs [node, result, version] of a node below {count}, got {item!r}"
        )
    return item[0], item[1]


def _list(item: Any, where: str) -> list[Any]:
    if not isinstance(item, list):
        raise CompileError(f"NNVM {where}: needs a list, got {item!r}")
    return item


def _shapes(content: Mapping[str, Any], nodes: tuple[Node, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes of variables, where the file has `attrs.shape`: one for each result of each node."""
    try:
        stated = content["attrs"]["shape"][1]
        rows = content["node_row_ptr"]
        return {
            node.name: tuple(int(size) for size in stated[rows[number]])
            for number, node in enumerate(nodes)
            if node.op == "null"
        }
    except (KeyError, IndexError, TypeError, ValueError):
        return {}
