"""Graphs of operators as data and as text: what `vitral.ir` offers.

graph = vitral.ir.from_onnx("model.onnx")
print(vitral.ir.to_text(graph, metadata=False))
results = vitral.ir.evaluate(graph, {"data": x})
module = vitral.compile(graph)
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitral.compiler.ir import (
    Call,
    Graph,
    GraphBuilder,
    TensorType,
    evaluate,
    evaluate_all,
    parse_text,
    to_text,
    verify,
)
from vitral.compiler.ir.dot import to_dot

if TYPE_CHECKING:
    import onnx

    from vitral.compiler.frontends.darknet import Detector
    from vitral.compiler.frontends.onnx.model import Source

__all__ = [
    "Call",
    "Graph",
    "GraphBuilder",
    "TensorType",
    "evaluate",
    "evaluate_all",
    "from_darknet",
    "from_nnvm",
    "from_onnx",
    "parse",
    "save",
    "to_dot",
    "to_onnx",
    "to_text",
    "verify",
]

Shapes = Mapping[str, Sequence[int] | int]


def from_onnx(model: "Source", shapes: Shapes | None = None) -> Graph:
    """An ONNX model's nodes as calls, float or quantized; names are the model's.

    `model` is a path, bytes or protobuf; `shapes` binds symbolic dimensions: input name to its
    whole shape, or symbol to its size. CompileError, in one line, for a malformed model.
    """
    from vitral.compiler.frontends.relay import import_calls

    return import_calls(model, shapes)


def from_nnvm(*args: Any, **options: Any) -> Graph:
    """A graph of NNVM; arguments as of `vitral.compiler.frontends.nnvm.import_nnvm`."""
    from vitral.compiler.frontends.nnvm import import_nnvm

    return import_nnvm(*args, **options)


def from_darknet(*args: Any, **options: Any) -> "Detector":
    """A network of Darknet, its graph and how its boxes are read.

    Arguments as of `vitral.compiler.frontends.darknet.import_darknet`.
    """
    from vitral.compiler.frontends.darknet import import_darknet

    return import_darknet(*args, **options)


def to_onnx(graph: Graph) -> "onnx.ModelProto":
    """A graph of calls as an ONNX model; values and nodes keep their names.

    CompileError, in one line naming the node, for calls that have no form in ONNX.
    """
    from vitral.compiler.frontends.relay import export_calls

    return export_calls(graph)


def parse(text: str | os.PathLike[str], source: str = "<text>") -> Graph:
    """The graph of a text, or of a file given as a path or as a name that ends in `.ir`.

    Errors are one line with the place: `model.ir:3:12: needs ..., got ...`.
    """
    from vitral.compiler.frontends.relay import is_text_file, read_text

    is_path = isinstance(text, os.PathLike) or ("\n" not in text and is_text_file(text))
    return read_text(text) if is_path else parse_text(str(text), source)


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write the text form with all constants, so that `parse` gives the same graph."""
    Path(path).write_text(to_text(graph), encoding="utf-8")
