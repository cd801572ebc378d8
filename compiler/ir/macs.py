"""Multiply-accumulates of an operator."""

import numpy as np

from vitral.compiler.ir.call import Call
from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.ops import AccelConv2d, Conv2d, FloatOp, MatMul, Op
from vitral.compiler.ir.vta import VtaOp

__all__ = ["macs"]


def macs(op: Op, graph: Graph) -> int:
    """Multiply-accumulates of real shapes, padding included; 0 for all but sums of products.

    A lowered convolution has those of the operator that it was lowered from.
    """
    results = graph.types[op.output].size
    if isinstance(op, VtaOp):
        return op.layer.macs
    model = op.origin if isinstance(op, AccelConv2d) else op
    if isinstance(model, Conv2d):
        return results * int(np.prod(model.weight.shape[1:]))
    if isinstance(model, MatMul):
        return results * graph.types[op.inputs[0]].shape[-1]
    if isinstance(model, Call):
        return _of_call(model, graph)
    return model.macs if isinstance(model, FloatOp) else 0


def _of_call(op: Call, graph: Graph) -> int:
    """Products of the text form, whose weights are the second argument."""
    results = graph.types[op.output].size
    if op.op in ("nn.conv2d", "nn.dense"):
        return results * int(np.prod(graph.types[op.inputs[1]].shape[1:]))
    if op.op == "nn.conv2d_transpose":
        return graph.types[op.inputs[0]].size * int(np.prod(graph.types[op.inputs[1]].shape[1:]))
    return results * graph.types[op.inputs[0]].shape[-1] if op.op == "matmul" else 0
