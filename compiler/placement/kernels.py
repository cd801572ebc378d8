"""Names of what an operator computes, as in the text form."""

import math
from dataclasses import replace

from vitral.compiler.ir import Graph
from vitral.compiler.ir.call import Call
from vitral.compiler.ir.ops import (
    AccelAdd,
    AccelConv2d,
    AccelMaxPool2d,
    AveragePool,
    Binary,
    Bounds,
    CodeOp,
    Conv2d,
    Dequantize,
    FloatOp,
    Interpolate,
    MatMul,
    Op,
    Pick,
    Quantize,
    Requantizing,
    Table,
)
from vitral.compiler.ir.vta import VtaOp

__all__ = ["kernel_name", "kernels"]

_FUNCTIONS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "max": "maximum",
    "min": "minimum",
    "prelu": "nn.prelu",
}
_KINDS: dict[type[Op], str] = {
    AccelMaxPool2d: "nn.max_pool2d",
    AveragePool: "nn.avg_pool2d",
    Dequantize: "qnn.dequantize",
    Interpolate: "image.resize2d",
    MatMul: "matmul",
    Pick: "take",
    Quantize: "qnn.quantize",
}


def kernels(op: Op, graph: Graph) -> tuple[str, ...]:
    """What an operator computes, one name after the other: ("nn.conv2d", "nn.relu")."""
    if isinstance(op, AccelConv2d | AccelAdd):
        behind = () if isinstance(op.origin, Table | AveragePool) else _behind(op)
        origin = replace(op.origin, inputs=op.inputs)  # its own may not be in the graph any more
        return tuple(dict.fromkeys([*kernels(origin, graph), *behind]))
    if isinstance(op, Requantizing):
        return (_of_sums(op, graph), *map(_clamp, _without_repeats(op.bounds)))
    if isinstance(op, Table):
        return (op.label,)
    if isinstance(op, Call):
        return (op.op,)
    if isinstance(op, VtaOp):
        return op.computes or (op.kind,)
    if isinstance(op, FloatOp | CodeOp):
        return (op.function.removeprefix("float."),)
    return (_KINDS.get(type(op), op.kind),)


def kernel_name(names: tuple[str, ...]) -> str:
    """One name for the code of several: "fused_nn_conv2d_nn_relu", "nn_conv2d"."""
    words = "_".join(name.replace(".", "_") for name in names)
    return words if len(names) == 1 else f"fused_{words}"


def _of_sums(op: Requantizing, graph: Graph) -> str:
    if isinstance(op, Conv2d):
        plane = graph.types[op.inputs[0]].shape[2:]
        return "nn.dense" if plane == op.weight.shape[2:] == (1, 1) else "nn.conv2d"
    if isinstance(op, Binary):
        return _FUNCTIONS.get(op.function, op.function)
    return _KINDS.get(type(op), op.kind)


def _behind(op: AccelConv2d | AccelAdd) -> tuple[str, ...]:
    """A clamp that became part of the layer after it was lowered."""
    low, high = int(op.params.low.max()), int(op.params.high.min())
    zero = int(op.params.zero_point[0])
    if low == zero and high == 127 and low > -128:
        return ("nn.relu",)
    return () if (low, high) == (-128, 127) else ("clip",)


def _without_repeats(bounds: Bounds) -> Bounds:
    return tuple(dict.fromkeys(bounds))


def _clamp(bound: tuple[float, float]) -> str:
    return "nn.relu" if bound == (0, math.inf) else "clip"
