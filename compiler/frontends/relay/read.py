"""Graphs from text files, and from graphs of calls to what the passes work on."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.frontends.relay.exporter import export_calls
from vitral.compiler.ir import Call, Graph, parse_text
from vitral.compiler.passes.lower_calls import is_integer
from vitral.errors import CompileError

__all__ = ["SUFFIX", "import_graph", "is_text_file", "read_text"]

SUFFIX = ".ir"


def is_text_file(model: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Whether it is a path whose name says that text is in the file."""
    return isinstance(model, str | os.PathLike) and Path(model).suffix == SUFFIX


def read_text(path: str | os.PathLike[str]) -> Graph:
    """The graph in a file; CompileError in one line naming file, line and column."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CompileError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise CompileError(f"{path}: needs text in UTF-8, got byte {error.start}") from None
    return parse_text(text, str(path))


def import_graph(
    graph: Graph, shapes: Mapping[str, Sequence[int] | int] | None = None, cpu: str = "auto"
) -> Graph:
    """A graph of records: of calls by way of ONNX, and one of records as it is.

    Calls with products of integers stay calls: they say themselves how they are rounded. Raises
    CompileError, in one line naming the node, for calls that have no form in ONNX.
    """
    calls = [isinstance(op, Call) for op in graph.ops]
    if is_integer(graph):
        return graph
    if calls and not any(calls):
        return graph
    return import_onnx(export_calls(graph), shapes, cpu)
