"""A float ONNX graph that the passes of quantization change in place."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from vitral.errors import QuantizeError

__all__ = ["Array", "FloatGraph", "attributes", "set_attribute"]

Array = npt.NDArray[Any]


class FloatGraph:
    """Nodes in execution order, constants as arrays, and who makes and reads each tensor.

    Parameters
    ----------
    model : onnx.ModelProto
        Left as it is. Initializers become `constants`; they are no graph inputs any more.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self.constants: dict[str, Array] = {
            t.name: numpy_helper.to_array(t) for t in graph.initializer
        }
        self.nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.domain = _domain(node.domain)
            self.nodes.append(copy)
        self.inputs = [i for i in graph.input if i.name not in self.constants]
        self.outputs = list(graph.output)
        self.name = graph.name or "graph"
        self.opsets = {_domain(e.domain): e.version for e in model.opset_import}
        self.ir_version = model.ir_version
        self._names = {name for node in self.nodes for name in (*node.input, *node.output)}
        self._names |= {*self.constants, *(i.name for i in self.inputs)}
        self._name_nodes()

    @property
    def input_names(self) -> list[str]:
        return [i.name for i in self.inputs]

    @property
    def output_names(self) -> list[str]:
        return [o.name for o in self.outputs]

    def unique(self, hint: str) -> str:
        """A tensor name that nothing else has; it counts as taken."""
        name, number = hint, 1
        while name in self._names:
            number += 1
            name = f"{hint}.{number}"
        self._names.add(name)
        return name

    def constant(self, hint: str, value: Array) -> str:
        """A new constant's name."""
        name = self.unique(hint)
        self.constants[name] = np.asarray(value)
        return name

    def producers(self) -> dict[str, onnx.NodeProto]:
        """The node that makes each tensor."""
        return {name: node for node in self.nodes for name in node.output if name}

    def consumers(self) -> dict[str, list[onnx.NodeProto]]:
        """The nodes that read each tensor, each as often as it reads it."""
        readers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.nodes:
            for name in node.input:
                if name:
                    readers.setdefault(name, []).append(node)
        return readers

    def only_reader(self, name: str) -> onnx.NodeProto | None:
        """The one node that reads a tensor, None when there are more or it is an output."""
        if name in self.output_names:
            return None
        readers = [node for node in self.nodes for n in node.input if n == name]
        return readers[0] if len(readers) == 1 else None

    def array(self, node: onnx.NodeProto, index: int) -> Array | None:
        """Input `index` of a node where it is constant, else None."""
        if index >= len(node.input):
            return None
        return self.constants.get(node.input[index])

    def remove(self, node: onnx.NodeProto, *, instead: str) -> None:
        """Drop a node of one result; what read the result reads `instead`.

        A graph output keeps its name: the node that made `instead` makes it, or an Identity does.
        """
        result = node.output[0]
        self.nodes = [n for n in self.nodes if n is not node]
        if result in self.output_names:
            maker = self.producers().get(instead)
            if maker is None or instead in self.output_names:
                self.nodes.append(helper.make_node("Identity", [instead], [result], name=node.name))
                return
            self.rename(instead, result)
            return
        self.rename(result, instead)

    def rename(self, old: str, new: str) -> None:
        """Everything that says `old` says `new`."""
        for node in self.nodes:
            node.input[:] = [new if name == old else name for name in node.input]
            node.output[:] = [new if name == old else name for name in node.output]

    def sweep(self) -> None:
        """Drop nodes and constants that no output needs."""
        needed, kept = set(self.output_names), []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                kept.append(node)
                needed |= set(node.input)
        self.nodes = kept[::-1]
        self.constants = {n: a for n, a in self.constants.items() if n in needed}

    def to_model(
        self, *, value_info: Iterable[onnx.ValueInfoProto] = (), producer: str = "vitral"
    ) -> onnx.ModelProto:
        """The graph as a model; constants that a node reads become initializers."""
        graph = helper.make_graph(
            self.nodes,
            self.name,
            self.inputs,
            self.outputs,
            [
                numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), n)
                for n, a in self.constants.items()
            ],
            value_info=list(value_info),
        )
        used = {node.domain for node in self.nodes}
        opsets = [helper.make_opsetid(d, v) for d, v in self.opsets.items() if d in used or not d]
        return helper.make_model(
            graph, producer_name=producer, opset_imports=opsets, ir_version=self.ir_version
        )

    def find(self, name: str) -> onnx.NodeProto:
        """A node by its name."""
        for node in self.nodes:
            if node.name == name:
                return node
        close = ", ".join(node.name for node in self.nodes[:5])
        raise QuantizeError(f"no node {name!r} in the model; it has {close} ...")

    def _name_nodes(self) -> None:
        """Every node a name of its own: errors, reports and exclusions speak of names."""
        taken: set[str] = set()
        for number, node in enumerate(self.nodes):
            name = hint = node.name or f"{node.op_type}_{number}"
            while name in taken:
                name = f"{hint}.{number}"
                hint = name
            taken.add(name)
            node.name = name


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes by name; text as str."""
    values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return {k: v.decode() if isinstance(v, bytes) else v for k, v in values.items()}


def set_attribute(node: onnx.NodeProto, name: str, value: Any) -> None:
    """Give an attribute, in place of the one there is."""
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])
