"""Moves constant factors of channels into the weights beside them, and joins constant summands."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Call, Graph, TensorType
from vitral.compiler.ir.operators import attributes_of
from vitral.compiler.ir.ops import Op
from vitral.compiler.passes.eliminate_dead import eliminate_dead
from vitral.compiler.passes.rename import rewired
from vitral.compiler.quantize.global_scale.rewriter import call_of

__all__ = ["fold_scales"]

Array = npt.NDArray[Any]
_PRODUCTS = {"nn.conv2d": 4, "nn.dense": 2}  # and the rank whose axis 1 are the channels


def fold_scales(graph: Graph) -> Graph:
    """multiply(conv(x, w) [+ b], s) becomes conv(x, w · s) [+ b · s], conv(multiply(x, s), w)
    becomes conv(x, w · s), and x + a + b becomes x + (a + b), for constants a, b, s, w; products
    are rounded to float32 once each. Only where nobody else reads the value in between."""
    while (changed := _once(graph)) is not None:
        graph = changed
    return graph


def _once(graph: Graph) -> Graph | None:
    for op in graph.ops:
        for rule in (_scale_behind, _scale_before, _two_summands):
            changed = rule(graph, call_of(op))
            if changed is not None:
                return changed
    return None


def _scale_behind(graph: Graph, op: Call) -> Graph | None:
    """A factor behind a product, or behind the summand that follows it."""
    parts = _with_constant(graph, op, "multiply")
    source = _only_read(graph, parts[0]) if parts else None
    if parts is None or source is None:
        return None
    if _is_product(graph, source):
        factor = _per_channel(parts[1], graph.types[op.output])
        if factor is None:
            return None
        weight = graph.constants[source.inputs[1]]
        scaled = weight * factor.reshape(-1, *(1,) * (weight.ndim - 1))
        return _with_weight(graph, source, scaled, drop=op, value=source.output)
    inner = _with_constant(graph, source, "add")
    if inner is None or not _chain_of_product(graph, inner[0]):
        return None
    return _swapped(graph, source, op, inner, parts[1])


def _chain_of_product(graph: Graph, name: str) -> bool:
    """Whether a value that is read once is a product."""
    source = _only_read(graph, name)
    return source is not None and _is_product(graph, source)


def _swapped(
    graph: Graph, first: Call, second: Call, parts: tuple[str, Array], factor: Array
) -> Graph:
    """add then multiply as multiply then add."""
    value, summand = parts
    product = (summand * factor).astype(np.float32)
    scale_name, shift_name = _fresh(graph, "scale"), _fresh(graph, "summand")
    multiply = replace(second, inputs=(value, scale_name), output=first.output)
    add = replace(first, inputs=(first.output, shift_name), output=second.output)
    swap = {id(first): multiply, id(second): add}
    ops = tuple(swap.get(id(op), op) for op in graph.ops)
    graph = _with_constants(graph, {scale_name: factor, shift_name: product})
    return eliminate_dead(replace(graph, ops=ops))


def _scale_before(graph: Graph, op: Call) -> Graph | None:
    """A factor in front of a product without groups."""
    if not _is_product(graph, op):
        return None
    if attributes_of(op.op, op.attrs).get("groups", 1) != 1:
        return None
    source = _only_read(graph, op.inputs[0])
    parts = _with_constant(graph, source, "multiply") if source is not None else None
    if parts is None or source is None:
        return None
    factor = _per_channel(parts[1], graph.types[source.output])
    if factor is None:
        return None
    weight = graph.constants[op.inputs[1]]
    scaled = weight * factor.reshape(1, -1, *(1,) * (weight.ndim - 2))
    return _with_weight(graph, op, scaled, drop=source, value=parts[0])


def _two_summands(graph: Graph, op: Call) -> Graph | None:
    parts = _with_constant(graph, op, "add")
    source = _only_read(graph, parts[0]) if parts else None
    inner = _with_constant(graph, source, "add") if source is not None else None
    if parts is None or inner is None or source is None:
        return None
    if graph.types[source.output] != graph.types[op.output]:
        return None
    name = _fresh(graph, "summand")
    joined = replace(op, inputs=(inner[0], name))
    ops = tuple(joined if one is op else one for one in graph.ops if one is not source)
    graph = _with_constants(graph, {name: (parts[1] + inner[1]).astype(np.float32)})
    return eliminate_dead(replace(graph, ops=ops))


def _with_weight(graph: Graph, product: Call, weight: Array, *, drop: Call, value: str) -> Graph:
    """A product with another weight; readers of what `drop` gave read `value`.

    The result of the whole keeps the name of its last operator, which may be an output.
    """
    name = _fresh(graph, "weight")
    behind = drop.inputs[0] == product.output or product.output in drop.inputs
    changed = replace(product, inputs=(product.inputs[0], name))
    if behind:
        changed = replace(changed, output=drop.output)
    ops = tuple(
        rewired(changed if op is product else op, {} if behind else {drop.output: value})
        for op in graph.ops
        if op is not drop
    )
    graph = _with_constants(graph, {name: weight.astype(np.float32)})
    return eliminate_dead(replace(graph, ops=ops))


def _is_product(graph: Graph, op: Call) -> bool:
    rank = _PRODUCTS.get(op.op)
    return rank == len(graph.types[op.output].shape) and op.inputs[1] in graph.constants


def _with_constant(graph: Graph, op: Call, kind: str) -> tuple[str, Array] | None:
    """The value and the constant of an add or multiply that keeps the value's shape."""
    if op.op != kind:
        return None
    for value, other in (op.inputs, op.inputs[::-1]):
        array = graph.constants.get(other)
        if array is None or value in graph.constants:
            continue
        if graph.types[value] == graph.types[op.output] and array.dtype == np.float32:
            return value, array
    return None


def _only_read(graph: Graph, name: str) -> Call | None:
    """The operator that gives a value, when one operator reads it once and it is no output."""
    writers, readers = _links(graph)
    reads = sum(op.inputs.count(name) for op in readers.get(name, ()))
    if reads != 1 or name not in writers or name in graph.outputs:
        return None
    return call_of(writers[name])


@lru_cache(maxsize=2)
def _links(graph: Graph) -> tuple[dict[str, Op], dict[str, list[Op]]]:
    return graph.producers(), graph.consumers()


def _per_channel(factor: Array, type_: TensorType) -> Array | None:
    """float64 (C,), C along axis 1, of a factor that is the same at all other positions."""
    rank, channels = len(type_.shape), type_.shape[1] if len(type_.shape) > 1 else 0
    shape = (*(1,) * (rank - factor.ndim), *factor.shape)
    if channels == 0 or any(size != 1 for axis, size in enumerate(shape) if axis != 1):
        return None
    return np.broadcast_to(factor.reshape(-1).astype(np.float64), channels)


def _fresh(graph: Graph, stem: str) -> str:
    number = 0
    while (name := f"{stem}.{number}") in graph.types:
        number += 1
    return name


def _with_constants(graph: Graph, arrays: dict[str, Array]) -> Graph:
    types = {name: TensorType(a.shape, str(a.dtype)) for name, a in arrays.items()}
    return replace(
        graph,
        constants={**graph.constants, **arrays},
        types={**graph.types, **types},
    )
