"""The meaning of a graph of calls: its results, operator by operator, in numpy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.call import Call
from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.operators import Misfit, evaluate_call
from vitral.compiler.ir.ops import Op
from vitral.compiler.ir.types import TensorType
from vitral.errors import CompileError

__all__ = ["evaluate", "evaluate_all"]

Array = npt.NDArray[Any]


def evaluate(graph: Graph, feeds: Mapping[str, Array]) -> list[Array]:
    """The graph's results, in the order of its outputs.

    Parameters
    ----------
    graph : Graph
        Of `Call` operators only.
    feeds : mapping
        Input name to its array, of the input's type.

    Raises
    ------
    CompileError
        In one line, for a missing or wrong feed or an operator that has no meaning here.
    """
    values = evaluate_all(graph, feeds)
    return [values[name] for name in graph.outputs]


def evaluate_all(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Every value of the graph by its name: inputs, constants and results, in this order."""
    unknown = [name for name in feeds if name not in graph.inputs]
    if unknown:
        raise CompileError(f"needs inputs {', '.join(graph.inputs)}, got {', '.join(unknown)}")
    values = {name: _fed(name, graph.types[name], feeds) for name in graph.inputs}
    values.update(graph.constants)
    for op in graph.ops:
        values[op.output] = _result(op, [values[name] for name in op.inputs], graph)
    return values


def _fed(name: str, wanted: TensorType, feeds: Mapping[str, Array]) -> Array:
    if name not in feeds:
        raise CompileError(f"needs input {name!r} of {wanted}, got none")
    array = np.asarray(feeds[name])
    got = TensorType(array.shape, str(array.dtype))
    if got != wanted:
        raise CompileError(f"needs input {name!r} of {wanted}, got {got}")
    return array


def _result(op: Op, args: list[Array], graph: Graph) -> Array:
    if not isinstance(op, Call):
        raise CompileError(f"node {op.name!r} ({op.kind}): only calls are evaluated")
    try:
        result = evaluate_call(op.op, op.attrs, args)
    except Misfit as error:
        raise CompileError(f"node {op.name!r} ({op.op}): {error}") from None
    got, told = TensorType(result.shape, str(result.dtype)), graph.types[op.output]
    if got != told:
        raise CompileError(f"node {op.name!r} ({op.op}): needs a result of {told}, got {got}")
    return result
