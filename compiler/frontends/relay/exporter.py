"""A graph of calls as an ONNX model, for everything that reads ONNX: the compiler among them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from vitral.compiler.frontends.relay.fallback import node_of
from vitral.compiler.frontends.relay.nodes import FUSED, WRITERS, window
from vitral.compiler.ir import Call, Graph, TensorType
from vitral.compiler.ir.operators import Misfit, attributes_of
from vitral.compiler.ir.operators.foreign import PREFIX
from vitral.compiler.ir.ops import Op
from vitral.errors import CompileError

__all__ = ["export_calls", "has_onnx_form"]

_OPSET = 19  # averages have dilations since then
_IR_VERSION = 9


def export_calls(graph: Graph) -> onnx.ModelProto:
    """The model, opset 19; values and nodes keep their names, a bias goes into its convolution.

    Raises CompileError, in one line naming the node, for a call that has no form in ONNX, such as
    shifts of signed integers and sums of int8 products.
    """
    return _Exporter(graph).model()


def has_onnx_form(graph: Graph) -> bool:
    """Whether `export_calls` accepts the graph's operators."""
    try:
        export_calls(graph)
    except CompileError:
        return False
    return True


class _Exporter:
    """Collects nodes and initializers; what the functions of `nodes` write to."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: list[onnx.NodeProto] = []
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._taken = set(graph.types)
        self._name = ""
        self._opsets: dict[str, int] = {"": _OPSET}
        self._fused = _fused_biases(graph)
        skipped = {op.output for op in self._fused.values()}
        self._coming = Counter(op.name for op in graph.ops if op.output not in skipped)
        self._named: set[str] = set()

    def model(self) -> onnx.ModelProto:
        graph = self._graph
        skipped = {op.output for op in self._fused.values()}
        for op in graph.ops:
            if op.output not in skipped:
                self._op(op)
        self._check_outputs()
        read = {name for node in self._nodes for name in node.input}
        arrays = {n: a for n, a in graph.constants.items() if n in read or n in graph.outputs}
        proto = helper.make_graph(
            self._nodes,
            "vitral",
            [_info(name, graph.types[name]) for name in graph.inputs],
            [_info(name, graph.types[name]) for name in graph.outputs],
            [numpy_helper.from_array(a, n) for n, a in {**arrays, **self._arrays}.items()],
        )
        opsets = [helper.make_opsetid(domain, v) for domain, v in self._opsets.items()]
        return helper.make_model(
            proto, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="vitral"
        )

    def node(
        self, kind: str, inputs: Sequence[str], output: str | None = None, **attrs: Any
    ) -> str:
        result = output or self._fresh(f"{self._name}_{kind.lower()}")
        name = self._node_name(self._name if output else f"{self._name}_{kind.lower()}")
        self._nodes.append(helper.make_node(kind, list(inputs), [result], name, **attrs))
        return result

    def _node_name(self, wanted: str) -> str:
        """Unique, as onnxruntime wants; the last node of a name's operators keeps it."""
        self._coming[wanted] = self._coming.get(wanted, 1) - 1
        name, number = wanted, 0
        while name in self._named or (name == wanted and self._coming[wanted] > 0):
            number += 1
            name = f"{wanted}_{number}"
        self._named.add(name)
        return name

    def array(self, value: npt.NDArray[Any]) -> str:
        name = self._fresh(f"{self._name}_constant")
        self._arrays[name] = value
        return name

    def type(self, name: str) -> TensorType:
        return self._graph.types[name]

    def _fresh(self, stem: str) -> str:
        name, number = stem, 0
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

    def _op(self, op: Op) -> None:
        self._name = op.name
        if not isinstance(op, Call):
            raise CompileError(
                f"node {op.name!r} ({op.kind}): has no form in ONNX, only calls have"
            )
        try:
            if op.op.startswith(PREFIX):
                self._foreign(op)
            elif op.output in self._fused:
                self._sums(self._fused[op.output], op)
            else:
                self._call(op)
        except Misfit as error:
            raise CompileError(f"node {op.name!r} ({op.op}): {error}") from None

    def _call(self, op: Call) -> None:
        if op.op not in WRITERS:
            raise Misfit("has no form in ONNX")
        WRITERS[op.op](self, op, attributes_of(op.op, op.attrs))

    def _sums(self, sums: Call, bias: Call) -> None:
        """A convolution or matrix product with its bias."""
        self._name = sums.name
        attrs = attributes_of(sums.op, sums.attrs)
        inputs = [*sums.inputs, bias.inputs[1]]
        if not sums.op.startswith("nn.conv2d"):
            self.node("Gemm", inputs, bias.output, transB=int(sums.op == "nn.dense"))
            return
        more: dict[str, Any] = {**window(attrs), "group": attrs["groups"]}
        if sums.op == "nn.conv2d":
            self.node("Conv", inputs, bias.output, **more)
            return
        self.node(
            "ConvTranspose", inputs, bias.output, output_padding=attrs["output_padding"], **more
        )

    def _foreign(self, op: Call) -> None:
        node = node_of(op.op, dict(op.attrs), list(op.inputs), op.output)
        node.name = self._node_name(op.name)
        self._nodes.append(node)
        self._require(op, node, op.attrs)

    def _require(self, op: Call, node: onnx.NodeProto, attrs: Mapping[str, Any]) -> None:
        """The node has to mean the same in the model's opset as in the one that it comes from."""
        opset = attrs["opset"]
        if node.domain:
            self._opsets[node.domain] = max(opset, self._opsets.get(node.domain, 1))
            return
        here = onnx.defs.get_schema(node.op_type, max_inclusive_version=_OPSET).since_version
        there = onnx.defs.get_schema(node.op_type, max_inclusive_version=opset).since_version
        if here != there:
            raise Misfit(f"has no form in opset {_OPSET}, it is of opset {opset}")

    def _check_outputs(self) -> None:
        for name in self._graph.outputs:
            if name in self._graph.inputs:
                raise CompileError(f"output {name!r}: needs a node between input and output")


def _fused_biases(graph: Graph) -> dict[str, Call]:
    """Result of a bias_add to the sums in front of it that nothing else reads."""
    producers, readers = graph.producers(), graph.consumers()
    found: dict[str, Call] = {}
    for op in graph.ops:
        if not isinstance(op, Call) or op.op != "nn.bias_add":
            continue
        sums = producers.get(op.inputs[0])
        alone = len(readers[op.inputs[0]]) == 1 and op.inputs[0] not in graph.outputs
        if alone and isinstance(sums, Call) and _takes_bias(sums, op, graph):
            found[op.output] = sums
    return found


def _takes_bias(sums: Call, bias: Call, graph: Graph) -> bool:
    axis = FUSED.get(sums.op)
    if axis is None or graph.types[sums.output].dtype != "float32":
        return False
    rank = len(graph.types[sums.output].shape)
    same = bias.attrs.get("axis", 1) % rank == axis % rank
    return same and (axis == 1 or all(len(graph.types[n].shape) == 2 for n in sums.inputs))


def _info(name: str, type_: TensorType) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(type_.dtype))
    return helper.make_tensor_value_info(name, kind, list(type_.shape))
