"""Import of an ONNX model as a graph of calls, float or quantized, one call for a node."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.fold import constant_node, fold_node
from vitral.compiler.frontends.onnx.model import Node, Source, load_model
from vitral.compiler.frontends.onnx.shapes import bind_shapes
from vitral.compiler.frontends.relay import elements, qlinear, views, windows
from vitral.compiler.frontends.relay.fallback import call_node
from vitral.compiler.frontends.relay.scope import NodeScope, Unfit
from vitral.compiler.ir import Graph, GraphBuilder, TensorType
from vitral.errors import CompileError

__all__ = ["import_calls"]

_OPERATORS = {
    "": {**windows.OPERATORS, **elements.OPERATORS, **views.OPERATORS, **qlinear.OPERATORS},
    "com.microsoft": qlinear.MICROSOFT,
}
_NEVER_FOLDED = ("QuantizeLinear", "DequantizeLinear")


def import_calls(source: Source, shapes: Mapping[str, Sequence[int] | int] | None = None) -> Graph:
    """The graph of a model given as path, bytes or protobuf; names are the model's.

    A node whose operator the registry lacks becomes a call named `onnx.<operator>`. Nodes whose
    inputs are all known are computed, but quantization stays. `shapes` binds symbolic dimensions:
    input name to its whole shape, or symbol to its size.

    Raises CompileError, in one line, for a malformed model and for nodes with several results.
    """
    model = load_model(source)
    inputs = {
        given.name: TensorType(dims, given.dtype)
        for given, dims in bind_shapes(model.inputs, shapes or {})
    }
    reserved = {name for node in model.nodes for name in node.outputs}
    importer = _Importer(GraphBuilder(inputs, [*reserved, *model.constants]), model.constants)
    for node in model.nodes:
        wrong = [name for name in node.inputs if name in model.unreadable]
        if wrong:
            raise node.fail(f"needs numbers as {wrong[0]!r}, got {model.unreadable[wrong[0]]}")
        importer.add(node)
    return importer.finish(model.outputs)


class _Importer:
    def __init__(self, builder: GraphBuilder, constants: Mapping[str, npt.NDArray[Any]]) -> None:
        self._builder = builder
        self._known: dict[str, npt.NDArray[Any]] = dict(constants)
        self._placed: dict[str, str] = {}

    def add(self, node: Node) -> None:
        if node.domain == "" and node.op == "Constant":
            self._known[node.outputs[0]] = constant_node(node)
            return
        args = tuple(self._argument(name) for name in node.inputs)
        scope = NodeScope(node=node, args=args, builder=self._builder, place=self._place)
        known = self._folded(scope)
        if known is not None:
            self._known[node.outputs[0]] = known
            return
        self._emit(scope)

    def _argument(self, name: str) -> str | npt.NDArray[Any] | None:
        if not name:
            return None
        return self._known.get(name, name)

    def _folded(self, scope: NodeScope) -> npt.NDArray[Any] | None:
        node = scope.node
        if node.domain == "" and node.op == "Shape":
            shape = np.array(scope.type(0).shape, np.int64)
            return shape[node.attributes.get("start", 0) : node.attributes.get("end")]
        computed = any(isinstance(arg, str) for arg in scope.args)
        outer = node.domain != "" or node.op in _NEVER_FOLDED or len(node.outputs) > 1
        if computed or outer or not any(arg is not None for arg in scope.args):
            return None
        arrays = [None if isinstance(arg, str) else arg for arg in scope.args]
        return fold_node(node, arrays)

    def _emit(self, scope: NodeScope) -> None:
        """By the registry's operator if one means the same."""
        node = scope.node
        operator = _OPERATORS.get(node.domain, {}).get(node.op)
        start = len(self._builder.ops)
        try:
            if operator is None:
                raise Unfit
            operator(scope)
        except Unfit:
            for op in self._builder.ops[start:]:
                del self._builder.types[op.output]
            del self._builder.ops[start:]
            call_node(scope)

    def _place(self, name: str) -> str:
        """The value of a known tensor, made once."""
        if name not in self._placed:
            self._placed[name] = self._builder.constant(self._known[name], name)
        return self._placed[name]

    def finish(self, outputs: Sequence[str]) -> Graph:
        for name in outputs:
            if name in self._known:
                self._place(name)
            elif name not in self._builder.types:
                raise CompileError(f"output {name!r}: needs a node that computes it, found none")
        return self._builder.graph(*outputs)
