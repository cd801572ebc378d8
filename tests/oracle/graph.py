"""The ONNX protobuf as the oracle reads it: nodes with plain attributes, constants as arrays."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from oracle.errors import OracleError
from oracle.values import Array

__all__ = ["Graph", "GraphInput", "Node", "load"]

_DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True, kw_only=True)
class Node:
    """One operator; `unrounded` is told the value that each rounding of this node started from."""

    op: str
    domain: str
    name: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    unrounded: Callable[[Array], None] | None = None

    @property
    def where(self) -> str:
        """Text that names this node in an error."""
        return f"node {self.name!r} ({self.op})"

    def get(self, attribute: str, default: Any) -> Any:
        """The attribute's value, or `default` when the node does not have it."""
        return self.attributes.get(attribute, default)

    def fail(self, text: str) -> OracleError:
        """An error about this node, to be raised by the caller."""
        return OracleError(f"{self.where}: {text}")


@dataclass(frozen=True, kw_only=True)
class GraphInput:
    """A graph input to be fed: its dtype and dimensions, None where symbolic or unknown."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A model: nodes in order, constants by name, the inputs without an initializer, outputs."""

    nodes: tuple[Node, ...]
    constants: dict[str, Array]
    inputs: tuple[GraphInput, ...]
    outputs: tuple[str, ...]


def load(model: onnx.ModelProto | bytes | str | os.PathLike[str]) -> Graph:
    """Read a model given as protobuf, as bytes or as a path."""
    proto = _proto(model)
    opsets = {_domain(entry.domain): entry.version for entry in proto.opset_import}
    constants = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    inputs = tuple(_input(i) for i in proto.graph.input if i.name not in constants)
    nodes = [_node(n, i, opsets) for i, n in enumerate(proto.graph.node)]
    for node in nodes:
        if node.op == "Constant" and node.domain == "":
            constants[node.outputs[0]] = _constant(node)
    return Graph(
        nodes=tuple(n for n in nodes if n.outputs[0] not in constants),
        constants=constants,
        inputs=inputs,
        outputs=tuple(o.name for o in proto.graph.output),
    )


def _proto(model: onnx.ModelProto | bytes | str | os.PathLike[str]) -> onnx.ModelProto:
    if isinstance(model, onnx.ModelProto):
        return model
    if isinstance(model, bytes):
        return onnx.load_model_from_string(model)
    return onnx.load_model(Path(model))


def _domain(domain: str) -> str:
    return "" if domain in _DEFAULT_DOMAINS else domain


def _input(info: onnx.ValueInfoProto) -> GraphInput:
    tensor = info.type.tensor_type
    shape: tuple[int | None, ...] | None = None
    if tensor.HasField("shape"):
        dims = tensor.shape.dim
        shape = tuple(d.dim_value if d.dim_value > 0 else None for d in dims)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    return GraphInput(name=info.name, dtype=dtype, shape=shape)


def _node(proto: onnx.NodeProto, index: int, opsets: dict[str, int]) -> Node:
    domain = _domain(proto.domain)
    return Node(
        op=proto.op_type,
        domain=domain,
        name=proto.name or f"#{index}",
        opset=opsets.get(domain, 1),
        inputs=tuple(proto.input),
        outputs=tuple(proto.output),
        attributes={a.name: _attribute(a) for a in proto.attribute},
    )


def _attribute(proto: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value


def _constant(node: Node) -> Array:
    for name, dtype in (("value_float", np.float32), ("value_int", np.int64)):
        for attribute in (name, f"{name}s"):
            if attribute in node.attributes:
                return np.array(node.attributes[attribute], dtype=dtype)
    if "value" in node.attributes:
        return node.attributes["value"]
    raise node.fail(f"needs a dense numeric constant, got {sorted(node.attributes)}")
