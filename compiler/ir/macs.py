"""Multiply-accumulates of an operator."""

import numpy as np

from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.ops import AccelConv2d, Conv2d, FloatOp, MatMul, Op

__all__ = ["macs"]


def macs(op: Op, graph: Graph) -> int:
    """Multiply-accumulates of real shapes, padding included; 0 for all but sums of products."""
    results = graph.types[op.output].size
    if isinstance(op, Conv2d | AccelConv2d):
        return results * int(np.prod(op.weight.shape[1:]))
    if isinstance(op, MatMul):
        return results * graph.types[op.inputs[0]].shape[-1]
    return op.macs if isinstance(op, FloatOp) else 0
