"""NNVM graphs, a JSON graph with a parameter file, as graphs of calls."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.nnvm.attributes import Attributes
from vitral.compiler.frontends.nnvm.operators import OPERATORS
from vitral.compiler.frontends.nnvm.params import load_params
from vitral.compiler.frontends.nnvm.symbol import Node, Symbol, parse_symbol
from vitral.compiler.ir.build import GraphBuilder
from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.types import TensorType
from vitral.errors import CompileError

__all__ = ["import_nnvm"]

Params = Mapping[str, npt.NDArray[np.generic]]
Shapes = Mapping[str, Sequence[int]]


def import_nnvm(
    symbol: str | Path, params: bytes | Path | Params, shapes: Shapes | None = None
) -> Graph:
    """The graph of an NNVM model before compilation.

    Parameters
    ----------
    symbol : str or Path
        The JSON text, or the file that has it.
    params : bytes, Path or mapping
        The parameter file or its bytes; or name to array.
    shapes : mapping, optional
        Shapes of the inputs, float32; what the file states needs none.

    Raises
    ------
    CompileError
        In one line: malformed files, all operators that are not supported by name, inputs without
        a shape, attributes that do not fit.
    """
    graph = parse_symbol(_text(symbol))
    _refuse_unknown(graph)
    given = _arrays(params)
    read = {source for node in graph.nodes for source, _ in node.inputs}
    variables = [
        (number, node)
        for number, node in enumerate(graph.nodes)
        if node.op == "null" and (number in read or (number, 0) in graph.heads)
    ]
    inputs = {
        node.name: _input_type(node.name, shapes or {}, graph)
        for _, node in variables
        if node.name not in given
    }
    _refuse_strange(shapes or {}, inputs)
    builder = GraphBuilder(inputs, reserved=[node.name for node in graph.nodes])
    names: dict[int, str] = {}
    for number, node in variables:
        constant = node.name in given
        names[number] = (
            builder.constant(given[node.name], name=node.name) if constant else node.name
        )
    for number, node in enumerate(graph.nodes):
        if node.op != "null":
            names[number] = _translate(builder, node, names, graph)
    for number, result in graph.heads:
        _refuse_second(graph.nodes[number], result, "the graph's heads")
    return builder.graph(*(names[number] for number, _ in graph.heads))


def _text(symbol: str | Path) -> str:
    if isinstance(symbol, str) and symbol.lstrip().startswith("{"):
        return symbol
    try:
        return Path(symbol).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"NNVM graph {str(symbol)[:200]!r}: cannot be read: {error}") from None


def _arrays(params: bytes | Path | Params) -> Params:
    if isinstance(params, Mapping):
        return params
    if isinstance(params, bytes):
        return load_params(params)
    try:
        return load_params(Path(params).read_bytes())
    except OSError as error:
        raise CompileError(f"parameter file {str(params)!r}: cannot be read: {error}") from None


def _refuse_unknown(graph: Symbol) -> None:
    unknown = {
        node.op: node.name
        for node in reversed(graph.nodes)
        if node.op != "null" and node.op not in OPERATORS
    }
    if unknown:
        shown = ", ".join(f"{op} (node {name!r})" for op, name in sorted(unknown.items()))
        hint = (
            "; tvm_op nodes are compiled: give the graph from before compilation"
            if "tvm_op" in unknown
            else ""
        )
        raise CompileError(f"NNVM graph: operators that are not supported: {shown}{hint}")


def _refuse_strange(shapes: Shapes, inputs: Mapping[str, TensorType]) -> None:
    strange = [name for name in shapes if name not in inputs]
    if strange:
        raise CompileError(
            f"NNVM graph: needs shapes of the inputs {', '.join(inputs) or '(none)'}, got one of"
            f" {strange[0]!r}"
        )


def _input_type(name: str, shapes: Shapes, graph: Symbol) -> TensorType:
    shape = tuple(shapes.get(name, graph.shapes.get(name, ())))
    if not shape or min(shape) < 1:
        raise CompileError(
            f"NNVM input {name!r}: has no array in the parameter file and needs a shape; give it"
            f' with shapes={{"{name}": (1, 3, 224, 224)}} or the like'
        )
    return TensorType(shape, "float32")


def _translate(builder: GraphBuilder, node: Node, names: Mapping[int, str], graph: Symbol) -> str:
    where = f"NNVM node {node.name!r} ({node.op})"
    for source, result in node.inputs:
        _refuse_second(graph.nodes[source], result, where)
    attrs = Attributes(where, node.attrs)
    made = OPERATORS[node.op](builder, node.name, [names[s] for s, _ in node.inputs], attrs)
    attrs.finish()
    return made


def _refuse_second(node: Node, result: int, where: str) -> None:
    if result:
        raise CompileError(
            f"{where}: needs the first result of node {node.name!r} ({node.op}), got number"
            f" {result}"
        )
