"""Ranges end where the function behind a tensor is flat.

A tensor that only HardSwish reads need not tell -20 from -3: both give 0. Codes spent on values
beyond which all functions of it are constant would say nothing, so the range is cut there:
saturation does what the function does anyhow.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from vitral.compiler.quantize.float_graph import Array, FloatGraph
from vitral.compiler.quantize.ranges import Range
from vitral.compiler.quantize.select import Selection

__all__ = ["cut_flat_ends"]

_POINTS = 2049
_FLAT = 1 / 1020
"""Of the function's span: a quarter of a code of its result."""


def cut_flat_ends(
    graph: FloatGraph, selection: Selection, seen: Mapping[str, Range]
) -> dict[str, Range]:
    """Least and largest values, cut for tensors that nothing but functions of them read.

    The functions must have constants of one number only. Tensors that share a scale are left alone.
    """
    found = dict(seen)
    shared = [head for name, head in selection.groups.items() if name != head]
    for name in selection.tensors:
        if selection.groups[name] != name or name in shared:
            continue
        curves = _curves(graph, selection, name, seen[name])
        if curves is not None:
            found[name] = _cut(seen[name], *curves)
    return found


def _curves(
    graph: FloatGraph, selection: Selection, name: str, span: Range
) -> tuple[Array, list[Array]] | None:
    """Points of the range, and what each function of them gives; None when there are others."""
    readers = [node for node in graph.nodes if name in node.input]
    part = [node for node in graph.nodes if selection.functions.get(node.output[0]) == name]
    known = {node.name for node in part}
    if not part or name in graph.output_names or any(n.name not in known for n in readers):
        return None
    made = {result for node in part for result in node.output}
    read = {n for node in part for n in node.input if n} - made - {name}
    if any(n not in graph.constants or graph.constants[n].size != 1 for n in read):
        return None
    rounded = {*selection.tensors, *graph.output_names}
    points = np.linspace(min(span[0], 0.0), max(span[1], 0.0), _POINTS, dtype=np.float32)
    values = _evaluate(graph, part, name, sorted(made & rounded), read, points)
    return None if values is None else (points, values)


def _evaluate(
    graph: FloatGraph,
    part: list[onnx.NodeProto],
    name: str,
    ends: list[str],
    constants: set[str],
    points: Array,
) -> list[Array] | None:
    shaped = points.reshape(1, 1, 1, -1)
    kind = onnx.TensorProto.FLOAT
    body = helper.make_graph(
        part,
        "functions",
        [helper.make_tensor_value_info(name, kind, shaped.shape)],
        [helper.make_tensor_value_info(end, kind, None) for end in ends],
        [onnx.numpy_helper.from_array(graph.constants[n], n) for n in constants],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in graph.opsets.items()]
    try:
        with np.errstate(all="ignore"):  # the reference's exponentials overflow, to the right ends
            model = helper.make_model(body, opset_imports=opsets)
            results = ReferenceEvaluator(model).run(ends, {name: shaped})
    except Exception:  # a function that the reference lacks is taken as one without flat ends
        return None
    curves = [np.asarray(result, np.float64).reshape(-1) for result in results]
    return curves if all(np.isfinite(curve).all() for curve in curves) else None


def _cut(span: Range, points: Array, curves: list[Array]) -> Range:
    """0 is inside; `points` go from end to end of the range with it."""
    flat_low = min(_flat(curve) for curve in curves)
    flat_high = min(_flat(curve[::-1]) for curve in curves)
    if flat_low + flat_high >= len(points) - 1:
        return span
    low = min(float(points[flat_low]), 0.0)
    high = max(float(points[len(points) - 1 - flat_high]), 0.0)
    return low, high


def _flat(curve: Array) -> int:
    """Index of the last point from the left before which nothing moves by more than a little."""
    moved = np.abs(curve - curve[0]) > _FLAT * (curve.max() - curve.min())
    return int(np.argmax(moved)) - 1 if moved.any() else len(curve) - 1
