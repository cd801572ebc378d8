"""Drops tables that change nothing and folds those that clamp into the layer before them."""

from dataclasses import replace

import numpy as np

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AccelAdd, AccelConv2d, Op, Table
from vitral.compiler.passes.rename import redirect

__all__ = ["fold_tables"]

_CODES = np.arange(-128, 128)


def fold_tables(graph: Graph) -> Graph:
    """A table that equals clamp(code, low, high) becomes low and high of a lowered layer.

    Only where nothing else reads the layer's result. An identity table is dropped.
    """
    for name in [op.output for op in graph.ops if isinstance(op, Table)]:
        table = graph.producers().get(name)
        if isinstance(table, Table) and table.table.dtype == np.int8:
            graph = _folded(graph, table)
    return graph


def _folded(graph: Graph, table: Table) -> Graph:
    (source,) = table.inputs
    low, high = int(table.table.min()), int(table.table.max())
    if not np.array_equal(table.table, np.clip(_CODES, low, high)):
        return graph
    if (low, high) == (-128, 127) and table.output not in graph.outputs:
        return redirect(graph, {table.output: source}, drop=[table])
    if table.device == "cpu":
        return graph
    writer = graph.producers().get(source)
    alone = graph.consumers()[source] == [table] and source not in graph.outputs
    if not isinstance(writer, AccelConv2d | AccelAdd) or not alone:
        return graph
    merged = _clamped(writer, low, high, table.output)
    ops: list[Op] = [merged if op is writer else op for op in graph.ops if op is not table]
    types = {name: type_ for name, type_ in graph.types.items() if name != source}
    return replace(graph, ops=tuple(ops), types=types)


def _clamped(layer: AccelConv2d | AccelAdd, low: int, high: int, output: str) -> Op:
    params = layer.params
    edges = {
        name: np.clip(getattr(params, name), low, high).astype(np.int16) for name in ("low", "high")
    }
    return replace(layer, output=output, params=replace(params, **edges))
