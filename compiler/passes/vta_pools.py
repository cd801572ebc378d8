"""The layer of an int8 max pool."""

from vitral.compiler.ir import Call, Graph
from vitral.compiler.ir.operators import attributes_of
from vitral.compiler.ir.operators.shapes import four_pads, two
from vitral.compiler.schedule.vta_layer import VtaPool

__all__ = ["pool_layer"]


def pool_layer(graph: Graph, op: Call) -> VtaPool:
    """The layer, with the padding behind the input that its windows reach."""
    n, channels, *size = graph.types[op.inputs[0]].shape
    _, _, *outs = graph.types[op.output].shape
    attrs = attributes_of(op.op, op.attrs)
    kernel, strides = two(attrs["pool_size"], ""), two(attrs["strides"], "")
    dilations, pads = two(attrs["dilation"], ""), four_pads(attrs["padding"])
    ends = [
        (outs[i] - 1) * strides[i] - pads[i] + (kernel[i] - 1) * dilations[i] + 1 - size[i]
        for i in range(2)
    ]
    return VtaPool(
        name=op.name,
        source=op.inputs[0],
        result=op.output,
        in_shape=(n, channels, size[0], size[1]),
        out_shape=(n, channels, outs[0], outs[1]),
        kernel=kernel,
        strides=strides,
        pads=(pads[0], pads[1], max(0, ends[0]), max(0, ends[1])),
        dilations=dilations,
    )
