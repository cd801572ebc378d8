"""Decides which operators work on codes and which tensors are rounded to them."""

from collections.abc import Collection
from dataclasses import dataclass, field

import onnx

from vitral.compiler.quantize.float_graph import FloatGraph
from vitral.compiler.quantize.products import as_product
from vitral.compiler.quantize.roles import (
    is_average,
    is_clamp,
    is_fusable,
    is_move,
    is_pointwise,
    moving_inputs,
    takes_codes,
)
from vitral.errors import QuantizeError

__all__ = ["Selection", "select"]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is quantized.

    Parameters
    ----------
    nodes : frozenset of str
        Names of nodes that read codes.
    tensors : tuple of str
        Tensors that stand between QuantizeLinear and DequantizeLinear, in execution order.
    groups : dict
        Each of `tensors` to the one whose scale it shares; itself when it has its own.
    followers : frozenset of str
        Those of `tensors` that hold nothing but elements of another of their group, so that they
        say nothing about its range.
    constants : dict
        Constants that an operator reads as codes, with the node that does.
    functions : dict
        Each result of functions of one of `tensors` to that tensor.
    """

    nodes: frozenset[str]
    tensors: tuple[str, ...]
    groups: dict[str, str]
    followers: frozenset[str]
    constants: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)


def select(graph: FloatGraph, exclude: Collection[str] = ()) -> Selection:
    """Choose, keeping the nodes named in `exclude` float.

    Layers with constant weights always work on codes. Other operators do where all their inputs
    come as codes. A Relu or Clip behind a layer or a sum is done before the rounding, so the tensor
    between them is not rounded; nor are the tensors inside a function of one tensor, such as
    x * Clip(x + 3, 0, 6) / 6, and what such a function gives as an output of the model.

    Raises
    ------
    QuantizeError
        When a name is unknown, or nothing is left to quantize.
    """
    for name in exclude:
        graph.find(name)
    nodes, sources = _reading_codes(graph, _with_clamps(graph, exclude))
    if not any(as_product(graph, node) for node in graph.nodes if node.name in nodes):
        raise QuantizeError("nothing to quantize: no Conv, Gemm or MatMul with constant weights")
    tensors, functions = _rounded(graph, nodes, sources)
    groups, followers = _groups(graph, nodes, tensors)
    return Selection(
        nodes=frozenset(nodes),
        tensors=tuple(tensors),
        groups=groups,
        followers=frozenset(followers),
        constants=_constants(graph, nodes),
        functions=functions,
    )


def _with_clamps(graph: FloatGraph, exclude: Collection[str]) -> set[str]:
    """Excluded nodes, and the clamps behind them."""
    whole = set(exclude)
    for node in graph.nodes:
        if node.name not in whole:
            continue
        reader = graph.only_reader(node.output[0])
        if reader is not None and is_clamp(reader) and is_fusable(graph, node):
            whole.add(reader.name)
    return whole


def _reading_codes(graph: FloatGraph, excluded: Collection[str]) -> tuple[set[str], set[str]]:
    """Names of nodes that read codes, and the tensors that can be rounded to codes."""
    floats = {
        i.name for i in graph.inputs if i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    }
    nodes, sources = set(), set(floats)
    for node in graph.nodes:
        if node.name in excluded:
            sources |= set(node.output)
            continue
        if not takes_codes(graph, node):
            continue
        read = moving_inputs(node) if is_move(graph, node) else node.input
        varying = [name for name in read if name and name not in graph.constants]
        if as_product(graph, node) is not None or (
            varying and all(name in sources for name in varying)
        ):
            nodes.add(node.name)
            sources |= set(node.output)
    return nodes, sources | {
        node.input[0] for node in graph.nodes if node.name in nodes and as_product(graph, node)
    }


def _rounded(
    graph: FloatGraph, nodes: set[str], sources: set[str]
) -> tuple[list[str], dict[str, str]]:
    """Tensors to round, and the results of functions of one of them."""
    readers, outputs = graph.consumers(), set(graph.output_names)
    kept: set[str] = set()
    while True:
        roots = _roots(graph, nodes, kept)
        more = {
            name
            for name, root in roots.items()
            if name not in kept
            and name != root
            and not _inside(graph, name, root, roots, readers, outputs, nodes)
        }
        if not more:
            break
        # the first in execution order: what follows it gets another root
        first = next(n for node in graph.nodes for n in node.output if n in more)
        kept.add(first)
    found: list[str] = []
    makers = graph.producers()
    touched = [*graph.input_names, *(name for node in graph.nodes for name in node.output)]
    for name in touched:
        maker = makers.get(name)
        made = maker is not None and maker.name in nodes
        read = any(node.name in nodes for node in readers.get(name, []))
        if name not in sources or not (made or read):
            continue
        if roots.get(name, name) != name and name not in kept:
            continue
        if maker is not None and made and _clamped_later(graph, maker, readers, outputs, nodes):
            continue
        found.append(name)
    return found, roots


def _roots(graph: FloatGraph, nodes: set[str], kept: set[str]) -> dict[str, str]:
    """Each result of a function of one rounded tensor to that tensor, those kept included."""
    roots: dict[str, str] = {}
    readers, outputs = graph.consumers(), set(graph.output_names)
    absorbed: set[str] = set()
    for node in graph.nodes:
        if node.name not in nodes:
            continue
        if _clamped_later(graph, node, readers, outputs, nodes):
            absorbed.add(node.output[0])
        varying = {name for name in node.input if name and name not in graph.constants}
        if not _may_be_function(graph, node, varying):
            continue
        below = {name if name in kept else roots.get(name, name) for name in varying}
        if len(below) != 1 or below & absorbed:
            continue
        (root,) = below
        roots[node.output[0]] = root
    return roots


def _may_be_function(graph: FloatGraph, node: onnx.NodeProto, varying: set[str]) -> bool:
    return is_pointwise(graph, node) or (node.op_type in ("Add", "Sub", "Mul") and len(varying) > 0)


def _inside(
    graph: FloatGraph,
    name: str,
    root: str,
    roots: dict[str, str],
    readers: dict[str, list[onnx.NodeProto]],
    outputs: set[str],
    nodes: set[str],
) -> bool:
    """Whether all that is done with a result is more of the same function, or to give it out."""
    after = readers.get(name, [])
    if name in outputs:
        return not after
    return bool(after) and all(
        node.name in nodes and roots.get(node.output[0]) == root for node in after
    )


def _clamped_later(
    graph: FloatGraph,
    node: onnx.NodeProto,
    readers: dict[str, list[onnx.NodeProto]],
    outputs: set[str],
    nodes: set[str],
) -> bool:
    """Whether the result goes nowhere but into a Relu or Clip that is done before rounding."""
    result = node.output[0]
    after = readers.get(result, [])
    if result in outputs or len(after) != 1 or not is_clamp(after[0]) or after[0].name not in nodes:
        return False
    if is_clamp(node):
        maker = graph.producers().get(node.input[0])
        return (
            maker is not None
            and maker.name in nodes
            and _clamped_later(graph, maker, readers, outputs, nodes)
        )
    return is_fusable(graph, node)


def _groups(
    graph: FloatGraph, nodes: set[str], tensors: list[str]
) -> tuple[dict[str, str], set[str]]:
    groups = {name: name for name in tensors}
    followers: set[str] = set()

    def head(name: str) -> str:
        while groups[name] != name:
            name = groups[name]
        return name

    for node in graph.nodes:
        joins = node.op_type == "Concat" and not node.domain
        if node.name not in nodes or not (joins or is_move(graph, node)):
            continue
        ends = [n for n in (*moving_inputs(node), *node.output) if n in groups]
        for name in ends[1:]:
            groups[head(name)] = head(ends[0])
        if any(n in groups for n in moving_inputs(node)):
            followers |= {n for n in node.output if n in groups}
    return {name: head(name) for name in tensors}, followers


def _constants(graph: FloatGraph, nodes: set[str]) -> dict[str, str]:
    """Constant operands of sums, products and concatenations of two tensors."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        if node.name not in nodes or is_pointwise(graph, node) or is_average(graph, node):
            continue
        if node.op_type in ("Add", "Sub", "Mul", "Concat"):
            found |= {name: node.name for name in node.input if name in graph.constants}
    return found
