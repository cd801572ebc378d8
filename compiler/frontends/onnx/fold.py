"""Evaluation of nodes whose inputs are all known, by ONNX's own reference operators."""

import warnings

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from vitral.compiler.frontends.onnx.model import Node

__all__ = ["constant_node", "fold_node", "node_proto"]

_SCALARS = {"value_float": np.float32, "value_int": np.int64}


def constant_node(node: Node) -> npt.NDArray:
    """The array of a Constant node."""
    for name, dtype in _SCALARS.items():
        for attribute in (name, f"{name}s"):
            if attribute in node.attributes:
                return np.array(node.attributes[attribute], dtype)
    value = node.attributes.get("value")
    if not isinstance(value, np.ndarray):
        raise node.fail(f"needs a dense numeric constant, got {sorted(node.attributes)}")
    return value


def fold_node(node: Node, arrays: list[npt.NDArray | None]) -> npt.NDArray:
    """First result of a node of the standard domain on constant inputs.

    The reference operators check little and raise anything; all of it means a malformed node.
    """
    try:
        return _evaluated(node, arrays)
    except Exception as error:
        raise node.fail(f"cannot be computed from its constants: {error}") from None


def node_proto(node: Node, inputs: list[str], outputs: list[str]) -> onnx.NodeProto:
    """The node with other names for its tensors."""
    proto = helper.make_node(node.op, inputs, outputs)
    for name, value in node.attributes.items():
        if isinstance(value, np.ndarray):
            value = onnx.numpy_helper.from_array(value)
        proto.attribute.append(helper.make_attribute(name, value))
    return proto


def _evaluated(node: Node, arrays: list[npt.NDArray | None]) -> npt.NDArray:
    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    feeds = {name: array for name, array in zip(names, arrays, strict=True) if array is not None}
    proto = node_proto(node, names, [f"y{i}" for i in range(len(node.outputs))])
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None)
        for name, array in feeds.items()
    ]
    output = helper.make_empty_tensor_value_info("y0")
    graph = helper.make_graph([proto], "constant", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", node.opset)])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (result,) = ReferenceEvaluator(model).run(None, feeds)
    return np.asarray(result)
