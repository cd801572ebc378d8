"""Reads an ONNX file: nodes in execution order with plain attributes, constants as arrays."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import google.protobuf.message
import numpy as np
import onnx
from onnx import helper, numpy_helper

from vitral.compiler.frontends.onnx.order import execution_order
from vitral.errors import CompileError

__all__ = ["Model", "ModelInput", "Node", "Source", "element_name", "load_model"]

Source = onnx.ModelProto | bytes | str | os.PathLike[str]

_OLDEST_OPSET = 7  # broadcasting as it is today; quantized operators may be com.microsoft's
_OLDEST_IR = 3
_ELEMENT_NAMES = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
_NARROW = ("int4", "uint4", "int2", "uint2", "float8", "float4")


@dataclass(frozen=True, kw_only=True)
class Node:
    """One operator; a missing optional input is the empty name."""

    op: str
    domain: str
    name: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    @property
    def where(self) -> str:
        """Text that names this node in an error."""
        return f"node {self.name!r} ({self.op})"

    def fail(self, text: str) -> CompileError:
        """An error about this node, to be raised by the caller."""
        return CompileError(_printable(f"{self.where}: {' '.join(text.split())}"))


def _printable(text: str) -> str:
    """In one line: names in broken models hold anything, and more than newlines end lines."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@dataclass(frozen=True, kw_only=True)
class ModelInput:
    """A graph input to be fed; a dimension is its size, its symbol, or None when unknown."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


@dataclass(frozen=True, kw_only=True)
class Model:
    """Nodes that the outputs need, in execution order; constants; inputs without initializer.

    `unreadable` maps initializers of element types that the compiler lacks to the type's name.
    """

    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray]
    unreadable: Mapping[str, str]
    inputs: tuple[ModelInput, ...]
    outputs: tuple[str, ...]

    @cached_property
    def read(self) -> frozenset[str]:
        """Tensors that a node reads or that the model gives."""
        return frozenset(self.outputs).union(*(node.inputs for node in self.nodes))


def load_model(source: Source) -> Model:
    """Read a model given as protobuf, as bytes or as a path.

    Raises CompileError, in one line, for a file that is truncated or malformed, an opset or IR
    version out of range, unknown or cyclic tensor names, and element types the compiler lacks.
    """
    proto = _proto(source)
    _check_versions(proto)
    graph = proto.graph
    if not graph.output:
        raise CompileError("the model has no outputs; it may be truncated")
    unreadable = {
        t.name: element_name(t.data_type) for t in graph.initializer if _is_narrow(t.data_type)
    }
    constants = {
        t.name: _array(t, f"initializer {t.name!r}")
        for t in graph.initializer
        if t.name not in unreadable
    }
    if graph.sparse_initializer:
        raise CompileError(f"{len(graph.sparse_initializer)} sparse initializers; make them dense")
    inputs = tuple(_input(i) for i in graph.input if i.name not in {**constants, **unreadable})
    opsets = {_domain(entry.domain): entry.version for entry in proto.opset_import}
    nodes = [_node(n, i, opsets) for i, n in enumerate(graph.node)]
    outputs = tuple(o.name for o in graph.output)
    given = {*constants, *unreadable, *(i.name for i in inputs)}
    return Model(
        nodes=tuple(execution_order(nodes, given, outputs)),
        constants=constants,
        unreadable=unreadable,
        inputs=inputs,
        outputs=outputs,
    )


def element_name(number: int) -> str:
    """Lower-case name of an ONNX element type, `int8` or `float` among them."""
    return _ELEMENT_NAMES.get(number, f"type {number}")


def _is_narrow(number: int) -> bool:
    return element_name(number).startswith(_NARROW)


def _proto(source: Source) -> onnx.ModelProto:
    if isinstance(source, onnx.ModelProto):
        return source
    if isinstance(source, bytes):
        return _parse(source, "the model")
    path = Path(source)
    try:
        proto = _parse(path.read_bytes(), str(path))
        onnx.load_external_data_for_model(proto, str(path.parent))
    except OSError as error:
        raise CompileError(f"{path}: {error.strerror or error}") from None
    except (onnx.checker.ValidationError, ValueError) as error:
        if isinstance(error, CompileError):
            raise
        raise CompileError(f"{path}: {' '.join(str(error).split())}") from None
    return proto


def _parse(data: bytes, where: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except google.protobuf.message.DecodeError:
        raise CompileError(
            f"{where}: not an ONNX model, or truncated ({len(data)} bytes)"
        ) from None
    if not proto.HasField("graph"):
        raise CompileError(f"{where}: no graph in {len(data)} bytes; not an ONNX model")
    return proto


def _check_versions(proto: onnx.ModelProto) -> None:
    if proto.ir_version < _OLDEST_IR:
        raise CompileError(f"needs ir_version {_OLDEST_IR} or later, got {proto.ir_version}")
    versions = [e.version for e in proto.opset_import if _domain(e.domain) == ""]
    newest = onnx.defs.onnx_opset_version()
    if len(versions) > 1 or not all(_OLDEST_OPSET <= v <= newest for v in versions):
        raise CompileError(
            f"needs one opset in {_OLDEST_OPSET}..{newest}, got {versions};"
            " convert it with onnx.version_converter"
        )
    if not versions and any(_domain(n.domain) == "" for n in proto.graph.node):
        raise CompileError("the model imports no opset of ai.onnx")


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _array(tensor: onnx.TensorProto, where: str) -> np.ndarray:
    if _is_narrow(tensor.data_type):
        kind = element_name(tensor.data_type)
        raise CompileError(f"{where}: needs int8, uint8, int32 or float32, got {kind}")
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise CompileError(f"{where}: cannot be read: {' '.join(str(error).split())}") from None


def _input(info: onnx.ValueInfoProto) -> ModelInput:
    if info.type.WhichOneof("value") != "tensor_type":
        kind = info.type.WhichOneof("value") or "nothing"
        raise CompileError(f"input {info.name!r}: needs a tensor, got {kind}")
    tensor = info.type.tensor_type
    shape: tuple[int | str | None, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(_dimension(d) for d in tensor.shape.dim)
    kind = element_name(tensor.elem_type)
    return ModelInput(name=info.name, dtype={"float": "float32"}.get(kind, kind), shape=shape)


def _dimension(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return dim.dim_value
    return dim.dim_param or None


def _node(proto: onnx.NodeProto, index: int, opsets: Mapping[str, int]) -> Node:
    domain = _domain(proto.domain)
    name = proto.name or f"#{index}"
    where = f"node {name!r} ({proto.op_type})"
    return Node(
        op=proto.op_type,
        domain=domain,
        name=name,
        opset=opsets.get(domain, 1),
        inputs=_trimmed(proto.input),
        outputs=tuple(proto.output),
        attributes={a.name: _attribute(a, where) for a in proto.attribute},
    )


def _trimmed(names: Sequence[str]) -> tuple[str, ...]:
    """Without the empty names at the end: they mean the same as leaving the input out."""
    kept = list(names)
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


def _attribute(proto: onnx.AttributeProto, where: str) -> Any:
    if proto.type == onnx.AttributeProto.TENSOR:
        return _array(proto.t, f"{where}, attribute {proto.name!r}")
    value = helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
