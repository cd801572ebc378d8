"""Small NNVM models written by hand, as TVM wrote them before Relay."""

import json
from collections.abc import Sequence

import numpy as np

__all__ = ["SymbolWriter"]


class SymbolWriter:
    """Collects nodes; `text` is the JSON of the graph."""

    def __init__(self) -> None:
        self.nodes: list[dict] = []
        self.params: dict[str, np.ndarray] = {}

    def variable(self, name: str, value: np.ndarray | None = None) -> int:
        if value is not None:
            self.params[name] = value
        return self.node("null", name)

    def node(self, op: str, name: str, *inputs: int, **attrs: object) -> int:
        entry: dict = {"op": op, "name": name, "inputs": [[i, 0, 0] for i in inputs]}
        if attrs:
            entry["attrs"] = {key: str(value) for key, value in attrs.items()}
        self.nodes.append(entry)
        return len(self.nodes) - 1

    def text(self, *heads: int, shapes: Sequence[Sequence[int]] | None = None) -> str:
        content: dict = {
            "nodes": self.nodes,
            "arg_nodes": [i for i, node in enumerate(self.nodes) if node["op"] == "null"],
            "heads": [[head, 0, 0] for head in heads],
            "node_row_ptr": list(range(len(self.nodes) + 1)),
        }
        if shapes is not None:
            content["attrs"] = {"shape": ["list_shape", [list(shape) for shape in shapes]]}
        return json.dumps(content)
