"""What each operator is to quantization."""

import onnx

from vitral.compiler.quantize.float_graph import FloatGraph, attributes
from vitral.compiler.quantize.products import PRODUCTS, as_product

__all__ = ["is_average", "is_fusable", "is_move", "is_pointwise", "moving_inputs", "takes_codes"]

POINTWISE = frozenset(
    (
        *("Abs", "BatchNormalization", "Celu", "Clip", "Elu", "Erf", "Gelu", "HardSigmoid"),
        *("HardSwish", "LeakyRelu", "Mish", "Neg", "PRelu", "Relu", "Selu", "Sigmoid", "Softplus"),
        *("Softsign", "Swish", "Tanh", "ThresholdedRelu"),
    )
)
"""Functions of one tensor, element by element; their other inputs are constant."""

ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Max", "Min")
"""Pointwise where all arguments but one are constant."""

TWO = ("Add", "Sub", "Mul")
"""Of two tensors too."""

MOVES = frozenset(
    (
        *("DepthToSpace", "Expand", "Flatten", "Gather", "MaxPool", "Pad", "Reshape", "Resize"),
        *("Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    )
)
"""Results hold nothing but elements of the first input, so that they have its codes."""

AVERAGES = ("AveragePool", "GlobalAveragePool", "ReduceMean")
CLAMPS = ("Relu", "Clip")
_SPATIAL = 2


def is_pointwise(graph: FloatGraph, node: onnx.NodeProto) -> bool:
    """A function of one tensor: what it makes of 256 codes is a table."""
    if node.domain:
        return False
    varying = {name for name in node.input if name and name not in graph.constants}
    if node.op_type in POINTWISE:
        return varying == {node.input[0]}
    if node.op_type not in ARITHMETIC:
        return False
    return len(varying) == 1 and _small_constants(graph, node)


def _small_constants(graph: FloatGraph, node: onnx.NodeProto) -> bool:
    """Constants of one number or of one axis: the others make a tensor of their own."""
    return all(
        sum(n != 1 for n in graph.constants[name].shape) <= 1
        for name in node.input
        if name in graph.constants
    )


def is_clamp(node: onnx.NodeProto) -> bool:
    return node.op_type in CLAMPS and not node.domain


def is_fusable(graph: FloatGraph, node: onnx.NodeProto) -> bool:
    """Whether a Relu or Clip behind it is done before the result is rounded."""
    if as_product(graph, node) is not None or is_average(graph, node):
        return True
    return node.op_type in TWO and not node.domain and not is_pointwise(graph, node)


def is_average(graph: FloatGraph, node: onnx.NodeProto) -> bool:
    """Pooling by mean; ReduceMean over height and width only, not as part of a layer norm."""
    if node.op_type not in AVERAGES or node.domain:
        return False
    if node.op_type != "ReduceMean":
        return True
    given = graph.array(node, 1)
    axes = attributes(node).get("axes", [] if given is None else given.reshape(-1).tolist())
    return sorted(axes) in ([_SPATIAL, _SPATIAL + 1], [-2, -1])


def is_move(graph: FloatGraph, node: onnx.NodeProto) -> bool:
    """Whether results have the codes of the first input."""
    if node.op_type not in MOVES or node.domain:
        return False
    constant = all(name in graph.constants for name in node.input[1:] if name)
    values = attributes(node)
    if node.op_type in ("Resize", "Pad") and not constant:
        return False
    if node.op_type == "Resize":
        return values.get("mode", "nearest") == "nearest"
    if node.op_type == "MaxPool":
        return len(node.output) == 1
    if node.op_type == "Pad":
        pad = graph.array(node, 2)
        return values.get("mode", "constant") != "constant" or pad is None or not pad.any()
    return True


def moving_inputs(node: onnx.NodeProto) -> list[str]:
    """Inputs that share codes with the results, for moves and concatenations."""
    return list(node.input) if node.op_type == "Concat" else [node.input[0]]


def takes_codes(graph: FloatGraph, node: onnx.NodeProto) -> bool:
    """Whether there is an int8 form of the operator at all, whatever its inputs are."""
    if node.domain:
        return False
    if node.op_type in PRODUCTS:
        return as_product(graph, node) is not None
    if is_pointwise(graph, node) or is_move(graph, node) or is_average(graph, node):
        return True
    if node.op_type == "Resize":
        return all(name in graph.constants for name in node.input[1:] if name)
    return node.op_type in (*TWO, "Concat")
