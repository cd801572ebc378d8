"""Leaves pools and additions that follow no layer of the accelerator to the CPU."""

from dataclasses import replace

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AccelConv2d, AccelOp, Concat, Conv2d, Op

__all__ = ["place_followers"]


def place_followers(graph: Graph) -> Graph:
    """Pools, averages and additions run where at least one of their arguments was computed.

    They move more bytes than they compute, so a tensor does not go to the accelerator for them,
    unless somebody has said that they run there.
    """
    there: set[str] = set()
    ops: list[Op] = []
    for op in graph.ops:
        if isinstance(op, AccelOp):
            follows = not there.isdisjoint(op.inputs)
            if not (_leads(op) or follows):
                op = replace(op, on_cpu=True)
            if not op.on_cpu:
                there.add(op.output)
        elif isinstance(op, Concat) and not there.isdisjoint(op.inputs):
            there.add(op.output)
        ops.append(op)
    return replace(graph, ops=tuple(ops))


def _leads(op: Op) -> bool:
    """Whether the operator is worth the way to the accelerator."""
    if op.device == "accelerator":
        return True
    return isinstance(op, AccelConv2d) and isinstance(op.origin, Conv2d)
