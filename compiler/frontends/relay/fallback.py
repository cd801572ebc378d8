"""Nodes that the registry has no operator for: calls named `onnx.<operator>`."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from vitral.compiler.frontends.relay.scope import NodeScope
from vitral.compiler.ir import TensorType
from vitral.compiler.ir.operators.foreign import PREFIX

__all__ = ["call_node", "node_of", "result_of"]

_OWN = ("inputs", "opset", "result")


def call_node(scope: NodeScope) -> str:
    """The node as it is; its result's type is found by computing it on zeros.

    Raises CompileError in one line, naming the node, when that fails or it has several results.
    """
    node = scope.node
    more = [name for name in node.outputs[1:] if name]
    if more:
        raise node.fail(f"needs one result, got a second one, {more[0]!r}")
    wrong = [k for k, v in node.attributes.items() if isinstance(v, onnx.GraphProto)]
    if wrong:
        raise node.fail(f"needs attributes of numbers and text, got the graph {wrong[0]!r}")
    present = [i for i, arg in enumerate(scope.args) if arg is not None]
    attrs: dict[str, Any] = {k: _plain(v) for k, v in node.attributes.items()}
    attrs["opset"] = node.opset
    if present != list(range(len(present))):
        attrs["inputs"] = tuple(present)
    name = f"{PREFIX}{node.domain}.{node.op}" if node.domain else f"{PREFIX}{node.op}"
    zeros = [_zeros(scope, i) for i in present]
    try:
        found = result_of(name, attrs, zeros)
    except Exception as error:
        text = " ".join(str(error).split())
        raise node.fail(f"needs a node that can be computed: {text}") from None
    if not found.size:
        raise node.fail("needs inputs whose values tell the result's shape, got computed ones")
    if found.dtype.kind not in "fiub":
        raise node.fail(f"needs a result of numbers, got {found.dtype}")
    attrs["result"] = TensorType(found.shape, str(found.dtype))
    return scope.call(name, *(scope.need(i) for i in present), **attrs)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _zeros(scope: NodeScope, index: int) -> npt.NDArray[Any]:
    """What is known of an argument, zeros where nothing is."""
    arg = scope.args[index]
    if isinstance(arg, np.ndarray):
        return arg
    if arg in scope.builder.constants:
        return scope.builder.constants[arg]
    type_ = scope.type(index)
    return np.zeros(type_.shape, type_.dtype)


def node_of(op: str, attrs: dict[str, Any], inputs: list[str], output: str) -> onnx.NodeProto:
    """The ONNX node of a call."""
    domain, _, kind = op.removeprefix(PREFIX).rpartition(".")
    places = attrs.get("inputs", range(len(inputs)))
    names = [""] * (max(places, default=-1) + 1)
    for place, name in zip(places, inputs, strict=True):
        names[place] = name
    node = helper.make_node(kind, names, [output], domain=domain)
    for name, value in attrs.items():
        if name not in _OWN:
            array = isinstance(value, np.ndarray)
            shown = numpy_helper.from_array(value) if array else value
            node.attribute.append(helper.make_attribute(name, shown))
    return node


def result_of(op: str, attrs: dict[str, Any], args: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """What the node computes, by ONNX's reference operators."""
    from onnx.reference import ReferenceEvaluator

    names = [f"x{i}" for i in range(len(args))]
    node = node_of(op, attrs, names, "y")
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None)
        for name, array in zip(names, args, strict=True)
    ]
    graph = helper.make_graph([node], "call", inputs, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid(node.domain, attrs["opset"])]
    model = helper.make_model(graph, opset_imports=opsets)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (result,) = ReferenceEvaluator(model).run(None, dict(zip(names, args, strict=True)))
    return np.asarray(result)
