"""Turns flatten and dense behind an image into one convolution over the whole plane."""

from dataclasses import replace

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AveragePool, Binary, Conv2d, MaxPool, Op, Requantizing, Reshape

__all__ = ["fold_flatten"]


def fold_flatten(graph: Graph) -> Graph:
    """conv2d(1x1) of reshape(x: [N, C, H, W]) to [N, C·H·W, 1, 1] becomes conv2d(HxW) of x.

    Only where x may come from the accelerator, as codes of a convolution, a pool or a sum: then
    both run in one program, and no tensor has to leave the accelerator to be reordered.
    """
    writers = graph.producers()
    return replace(graph, ops=tuple(_folded(graph, writers, op) for op in graph.ops))


def _folded(graph: Graph, writers: dict[str, Op], op: Op) -> Op:
    if not isinstance(op, Conv2d) or op.weight.shape[2:] != (1, 1):
        return op
    view = writers.get(op.inputs[0])
    if (
        not isinstance(view, Reshape)
        or view.device not in (None, op.device)
        or any(op.pads)
        or op.group != 1
    ):
        return op
    source = writers.get(view.inputs[0])
    if source is None or not _gives_codes(source) or len(graph.types[source.output].shape) != 4:
        return op
    batch, *plane = graph.types[source.output].shape
    if view.shape != (batch, op.weight.shape[1], 1, 1):
        return op
    weight = op.weight.reshape(op.weight.shape[0], *plane)
    return replace(op, inputs=(source.output,), weight=weight, strides=(1, 1), dilations=(1, 1))


def _gives_codes(op: Op) -> bool:
    if isinstance(op, Requantizing):
        return isinstance(op, Conv2d | AveragePool | Binary) and op.y_quant is not None
    return isinstance(op, MaxPool)
