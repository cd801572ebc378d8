"""Multiply-accumulates of an operator."""

import numpy as np

from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.ops import AccelConv2d, Conv2d, FloatOp, MatMul, Op

__all__ = ["macs"]


def macs(op: Op, graph: Graph) -> int:
    """Multiply-accumulates of real shapes, padding included; 0 for all but sums of products.

    A lowered convolution has those of the operator that it was lowered from.
    """
    results = graph.types[op.output].size
    model = op.origin if isinstance(op, AccelConv2d) else op
    if isinstance(model, Conv2d):
        return results * int(np.prod(model.weight.shape[1:]))
    if isinstance(model, MatMul):
        return results * graph.types[op.inputs[0]].shape[-1]
    return model.macs if isinstance(model, FloatOp) else 0
