"""One ONNX model of several float operators that read each other."""

import base64
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import numpy as np
import onnx
from onnx import helper

from vitral.compiler.ir import TensorType
from vitral.compiler.placement.kernels import kernel_name
from vitral.runtime.module import CpuStep

__all__ = ["region_step"]

_IR_VERSION = 8


def region_step(
    members: Sequence[CpuStep],
    read: Collection[str],
    types: Mapping[str, TensorType],
    operators: Mapping[str, str],
) -> CpuStep:
    """A step `float.region` that does what `members` do, in their order.

    Parameters
    ----------
    members : sequence of CpuStep
        Steps of `float.onnx`, one at least, and of functions in `operators`, which gives them an
        ONNX operator. Those of `float.onnx` have models of one node each and one opset.
    read : collection of str
        What is read outside: those results are the step's.
    types : mapping
        Types of all values.
    """
    made = {name for step in members for name in step.outputs}
    inputs = tuple(dict.fromkeys(n for step in members for n in step.inputs if n not in made))
    outputs = tuple(name for step in members for name in step.outputs if name in read)
    nodes, constants, opsets = _nodes(members, operators)
    taken, given = ([_info(name, types[name]) for name in names] for names in (inputs, outputs))
    graph = helper.make_graph(nodes, "island", taken, given, constants)
    imports = [helper.make_opsetid("", opset) for opset in opsets]
    model = helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)
    kinds = [node.op_type for node in nodes]
    return CpuStep(
        name=f"{members[0].name} .. {members[-1].name}",
        op="float.region",
        inputs=inputs,
        outputs=outputs,
        attributes={
            "model": base64.b64encode(model.SerializeToString()).decode(),
            "operators": kinds,
        },
        macs=sum(step.macs for step in members),
        exact=False,
        kernel=kernel_name(tuple(kind.lower() for kind in kinds)),
    )


def _nodes(
    members: Sequence[CpuStep], operators: Mapping[str, str]
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto], set[int]]:
    """The nodes, the constants inside them, and the opsets that their models have."""
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    opsets: set[int] = set()
    for step, results in _whole(members):
        if step.op in operators:
            nodes.append(helper.make_node(operators[step.op], step.inputs, step.outputs))
            continue
        model = onnx.load_from_string(base64.b64decode(cast(str, step.attributes["model"])))
        node, inside = _renamed(model.graph, step, results)
        nodes.append(node)
        constants += inside
        opsets.add(model.opset_import[0].version)
    return nodes, constants, opsets


def _whole(members: Sequence[CpuStep]) -> list[tuple[CpuStep, dict[int, str]]]:
    """A step of each node, and its results by number; steps of one node give one result each."""
    found: list[tuple[CpuStep, dict[int, str]]] = []
    last: dict[tuple[object, ...], dict[int, str]] = {}
    for step in members:
        number = cast(int, step.attributes.get("result", 0))
        key = (step.op, step.attributes.get("model"), step.inputs)
        if key not in last or number in last[key]:  # also where a model has a node twice
            last[key] = {}
            found.append((step, last[key]))
        last[key][number] = step.outputs[0]
    return found


def _renamed(
    graph: onnx.GraphProto, step: CpuStep, results: Mapping[int, str]
) -> tuple[onnx.NodeProto, list[onnx.TensorProto]]:
    """The node of a model with the names of the region, and its constants."""
    own = f"{step.outputs[0]}/"
    names = {info.name: name for info, name in zip(graph.input, step.inputs, strict=True)}
    names |= {info.name: results.get(n, own + info.name) for n, info in enumerate(graph.output)}
    node = onnx.NodeProto()
    node.CopyFrom(graph.node[0])
    node.input[:] = [names.get(name, own + name) if name else "" for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    constants = []
    for tensor in graph.initializer:
        constants.append(onnx.TensorProto())
        constants[-1].CopyFrom(tensor)
        constants[-1].name = own + tensor.name
    return node, constants


def _info(name: str, type_: TensorType) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(type_.dtype))
    return helper.make_tensor_value_info(name, element, type_.shape)
