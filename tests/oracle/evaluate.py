"""Evaluate a quantized ONNX graph node by node under the arithmetic law."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx

from oracle import conv, elementwise, matmul, normalize, pool, qdq, regions, resize, shape, tables
from oracle.errors import OracleError
from oracle.graph import Graph, GraphInput, Node, load
from oracle.values import Array, Value, materialise

__all__ = ["OPERATORS", "evaluate"]

Operator = Callable[[Node, Sequence[Value | None]], Value | list[Value]]

OPERATORS: dict[tuple[str, str], Operator] = {
    **qdq.OPERATORS,
    **conv.OPERATORS,
    **matmul.OPERATORS,
    **normalize.OPERATORS,
    **pool.OPERATORS,
    **elementwise.OPERATORS,
    **regions.OPERATORS,
    **resize.OPERATORS,
    **shape.OPERATORS,
    **tables.OPERATORS,
}
"""(domain, operator) -> function of the node and its input values; a list for many outputs."""


def evaluate(
    model: onnx.ModelProto | bytes | str | os.PathLike[str],
    inputs: Mapping[str, Array],
    *,
    outputs_only: bool = False,
    unrounded: dict[str, Array] | None = None,
) -> dict[str, Array]:
    """Every tensor of the graph that has a defined value, by name; constants are left out.

    Quantized tensors come as integers. Float tensors come as float32 when they are a graph input or
    output or the result of a float operator; those inside a group DQ -> op -> Q have no value of
    their own and are absent. `outputs_only` returns the graph outputs alone. `unrounded` is filled
    with name -> float64 array of what each rounding started from, in steps of the output scale
    before the zero point: its distance from x.5 tells how near a tie an element was.

    Raises OracleError, in one line, for a model or an input outside the law.
    """
    graph = load(model)
    values: dict[str, Value] = {**graph.constants, **_checked_inputs(graph, inputs)}
    for node in graph.nodes:
        _run(node, values, unrounded)
    outputs = {name: materialise(values[name]) for name in graph.outputs}
    if outputs_only:
        return outputs
    named = {
        name: value
        for name, value in values.items()
        if isinstance(value, np.ndarray) and name not in graph.constants
    }
    return {**named, **outputs}


def _run(node: Node, values: dict[str, Value], unrounded: dict[str, Array] | None) -> None:
    operator = OPERATORS.get((node.domain, node.op))
    if operator is None:
        raise node.fail(f"needs a known operator, got {node.domain or 'ai.onnx'}::{node.op}")
    missing = [name for name in node.inputs if name and name not in values]
    if missing:
        raise node.fail(f"needs tensor {missing[0]!r} computed before it, found none")
    if unrounded is not None:
        node = replace(node, unrounded=_recorder(unrounded, node.outputs[0]))
    args = [values[name] if name else None for name in node.inputs]
    try:
        result = operator(node, args)
    except OracleError as error:
        if node.where in str(error):
            raise
        raise node.fail(str(error)) from error
    results = result if isinstance(result, list) else [result]
    values.update(zip(node.outputs, results, strict=False))


def _recorder(unrounded: dict[str, Array], name: str) -> Callable[[Array], None]:
    def record(value: Array) -> None:
        unrounded[name] = value

    return record


def _checked_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    wanted = {i.name: i for i in graph.inputs}
    unknown = [n for n in inputs if n not in wanted and n not in graph.constants]
    if unknown:
        raise OracleError(f"input {unknown[0]!r}: the model has {sorted(wanted)}")
    for name, declared in wanted.items():
        if name not in inputs:
            raise OracleError(f"input {name!r}: needs {declared.dtype}, got none")
        _check_input(declared, inputs[name])
    return dict(inputs)


def _check_input(declared: GraphInput, array: Array) -> None:
    if array.dtype != declared.dtype:
        raise OracleError(f"input {declared.name!r}: needs {declared.dtype}, got {array.dtype}")
    shape_wanted = declared.shape
    if shape_wanted is None:
        return
    fits = len(shape_wanted) == array.ndim and all(
        w in (None, n) for w, n in zip(shape_wanted, array.shape, strict=True)
    )
    if not fits or 0 in array.shape:
        wanted = [w or "?" for w in shape_wanted]
        raise OracleError(f"input {declared.name!r}: needs {wanted}, got {list(array.shape)}")
