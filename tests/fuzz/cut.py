"""Parts of a model: what some outputs need, down to tensors whose values are given."""

from collections.abc import Collection, Mapping

import onnx
from onnx import helper

from fuzz.network import Array

__all__ = ["cut"]


def cut(
    model: onnx.ModelProto, outputs: Collection[str], given: Mapping[str, Array]
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The nodes that `outputs` need, with the tensors in `given` as inputs; and their values."""
    made_by = {name: node for node in model.graph.node for name in node.output if name}
    needed: set[str] = set()
    waiting = list(outputs)
    while waiting:
        name = waiting.pop()
        if name in needed or not name:
            continue
        needed.add(name)
        if name not in given and name in made_by:
            waiting += made_by[name].input
    feeds = {name: array for name, array in given.items() if name in needed}
    nodes = [
        node
        for node in model.graph.node
        if any(o in needed and o not in given for o in node.output)
    ]
    infos = {info.name: info for info in (*model.graph.output, *model.graph.value_info)}
    results = [infos.get(name) or onnx.ValueInfoProto(name=name) for name in outputs]
    sources = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    constants = [c for c in model.graph.initializer if c.name in needed]
    graph = helper.make_graph(nodes, model.graph.name, sources, results, constants)
    part = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return part, feeds
