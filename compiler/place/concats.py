"""Which concatenations need no copy: their parts are whole channel blocks of the result."""

from collections.abc import Sequence

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AccelOp, Concat
from vitral.compiler.schedule.regions import Join, regions_of
from vitral.config import CoreConfig

__all__ = ["by_address", "join_of"]


def by_address(graph: Graph, config: CoreConfig) -> set[str]:
    """Results of the concatenations whose parts can lie in the result from the start.

    They join int8 maps along the channels, all parts but the last of whole blocks, of one batch
    element; at least one part comes from the accelerator. A part that another concatenation has
    elsewhere stays with the later one.
    """
    there = {op.output for op in graph.ops if isinstance(op, AccelOp) and not op.on_cpu}
    found: list[Concat] = []
    for op in graph.ops:
        if not isinstance(op, Concat) or there.isdisjoint(op.inputs):
            continue
        if _aligned(graph, op, config):
            there.add(op.output)
            found.append(op)
    return {op.output for op in _compatible(graph, found, config)}


def join_of(graph: Graph, op: Concat) -> Join:
    """A concatenation that is in `by_address` for the scheduler."""
    n, c, h, w = graph.types[op.output].shape
    return Join(
        result=op.output,
        shape=(n, c, h, w),
        parts=tuple((name, graph.types[name].shape[1]) for name in op.inputs),
    )


def _aligned(graph: Graph, op: Concat, config: CoreConfig) -> bool:
    type_ = graph.types[op.output]
    channels = [graph.types[name].shape[1] for name in op.inputs] if op.axis == 1 else []
    return (
        len(type_.shape) == 4
        and len(channels) > 1
        and type_.dtype == "int8"
        and type_.shape[0] <= config.batch
        and all(count % config.block == 0 for count in channels[:-1])
        and graph.constants.keys().isdisjoint(op.inputs)
    )


def _compatible(graph: Graph, ops: Sequence[Concat], config: CoreConfig) -> list[Concat]:
    """Those of which no value would have to lie in two places; later ones go first."""
    kept: list[Concat] = []
    for op in reversed(ops):
        if regions_of([join_of(graph, one) for one in (op, *kept)], config.block) is not None:
            kept.insert(0, op)
    return kept
