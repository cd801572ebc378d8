"""Moves tables behind the maximum that reads them, where there are fewer codes to look up."""

from dataclasses import replace

import numpy as np

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import MaxPool, Op, Table
from vitral.compiler.passes.rename import unused_name

__all__ = ["sink_tables"]


def sink_tables(graph: Graph) -> Graph:
    """max_pool(table(x)) becomes table(max_pool(x)) where the table never falls.

    Only where nothing else reads the table's result. The pool then follows the layer that gives x.
    """
    for name in [op.output for op in graph.ops if isinstance(op, MaxPool)]:
        pool = graph.producers()[name]
        assert isinstance(pool, MaxPool)
        table = graph.producers().get(pool.inputs[0])
        if isinstance(table, Table) and table.device == pool.device and _sinks(graph, table):
            graph = _swapped(graph, table, pool)
    return graph


def _sinks(graph: Graph, table: Table) -> bool:
    alone = len(graph.consumers()[table.output]) == 1 and table.output not in graph.outputs
    return alone and table.table.dtype == np.int8 and bool((np.diff(table.table) >= 0).all())


def _swapped(graph: Graph, table: Table, pool: MaxPool) -> Graph:
    """The maximum of x gets a name of its own; the table's result is gone."""
    largest = unused_name(f"{table.inputs[0]}.largest", graph.types)
    first = replace(pool, inputs=table.inputs, output=largest)
    then = replace(table, inputs=(largest,), output=pool.output)
    ops: list[Op] = []
    for op in graph.ops:
        if op is pool:
            ops += [first, then]
        elif op is not table:
            ops.append(op)
    types = {name: type_ for name, type_ in graph.types.items() if name != table.output}
    types[largest] = graph.types[pool.output]
    return replace(graph, ops=tuple(ops), types=types)
