"""The layer of an int8 max pool."""

import numpy as np

from vitral.compiler.ir import Call, Graph
from vitral.compiler.ir.operators import attributes_of
from vitral.compiler.ir.operators.shapes import four_pads, two
from vitral.compiler.schedule.vta_layer import VtaPool

__all__ = ["pool_layer"]


def pool_layer(graph: Graph, op: Call) -> VtaPool | None:
    """The layer; None when a window has padding alone."""
    n, channels, *size = graph.types[op.inputs[0]].shape
    _, _, *outs = graph.types[op.output].shape
    attrs = attributes_of(op.op, op.attrs)
    kernel, strides = two(attrs["pool_size"], ""), two(attrs["strides"], "")
    dilations, pads = two(attrs["dilation"], ""), four_pads(attrs["padding"])
    ends: list[int] = []
    for axis in range(2):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        starts = np.arange(outs[axis]) * strides[axis] - pads[axis]
        places = starts[:, None] + np.arange(kernel[axis]) * dilations[axis]
        if not ((places >= 0) & (places < size[axis])).any(axis=1).all():
            return None
        ends.append(max(pads[2 + axis], int(starts[-1]) + extent - size[axis]))
    return VtaPool(
        name=op.name,
        source=op.inputs[0],
        result=op.output,
        in_shape=(n, channels, size[0], size[1]),
        out_shape=(n, channels, outs[0], outs[1]),
        kernel=kernel,
        strides=strides,
        pads=(pads[0], pads[1], ends[0], ends[1]),
        dilations=dilations,
    )
