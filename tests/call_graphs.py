"""Graphs of calls that several tests share."""

import numpy as np

from vitral.compiler.ir import Graph, GraphBuilder, TensorType

__all__ = ["global_scale"]


def global_scale() -> Graph:
    """A convolution of one weight, 96 / 128, with a shift of 7 and halves up."""
    b = GraphBuilder({"data": TensorType((1, 1, 1, 5), "float32")})
    x = b.call("cast", b.call("clip", b.call("round", b.call(
        "multiply", "data", np.float32(16))), a_min=-127, a_max=127), dtype="int8")  # fmt: skip
    x = b.call("nn.conv2d", x, np.full((1, 1, 1, 1), 96, np.int8), out_dtype="int32")
    x = b.call("right_shift", b.call("add", x, np.int32(64)), np.int32(7))
    x = b.call("cast", b.call("clip", x, a_min=-127, a_max=127), dtype="float32")
    return b.graph(b.call("multiply", x, np.float32(0.0625)))
