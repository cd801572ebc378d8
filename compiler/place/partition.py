"""Cuts a lowered graph into groups of layers for the accelerator and single CPU operators."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vitral.compiler.ir import Graph
from vitral.compiler.ir.macs import macs
from vitral.compiler.ir.ops import AccelAdd, AccelConv2d, AccelMaxPool2d, AccelOp, Concat, Op
from vitral.compiler.ir.vta import VtaOp
from vitral.compiler.place.concats import by_address, join_of
from vitral.compiler.placement.kernels import kernel_name, kernels
from vitral.compiler.schedule.layer import AccelLayer, AddLayer, ConvLayer, PoolLayer
from vitral.compiler.schedule.regions import Join
from vitral.config import CoreConfig

__all__ = ["Group", "partition"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Layers that run as one program, in order.

    `inputs` are values from outside, `outputs` those that the rest of the network reads. `joins`
    are concatenations that cost nothing, as their parts are written where they belong. `kernels`
    are names of what layers compute, by the layers' names.
    """

    name: str
    layers: tuple[AccelLayer, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    joins: tuple[Join, ...] = ()
    kernels: Mapping[str, str] = field(default_factory=dict)


def partition(graph: Graph, config: CoreConfig) -> list[Group | Op]:
    """The graph in execution order, with as few switches between CPU and accelerator as possible.

    The two sides take turns; each runs all that it can before the other goes on. Concatenations
    that need no copy on this core go with the accelerator's layers.
    """
    there = {op.output for op in graph.ops if isinstance(op, AccelOp) and not op.on_cpu}
    there |= by_address(graph, config)

    def accelerated(op: Op) -> bool:
        return op.output in there

    known = {*graph.inputs, *graph.constants}
    rest = list(graph.ops)
    steps: list[Group | Op] = []
    while rest:
        on_cpu, rest = _runnable(rest, known, lambda op: not accelerated(op))
        steps += on_cpu
        layers, rest = _runnable(rest, known, accelerated)
        if any(isinstance(op, AccelOp) for op in layers):
            number = sum(isinstance(step, Group) for step in steps)
            steps.append(_group(graph, f"segment{number}", layers))
        else:
            steps += layers
    return steps


def _runnable(
    ops: list[Op], known: set[str], wanted: Callable[[Op], bool]
) -> tuple[list[Op], list[Op]]:
    """Operators of one side whose arguments are known, and the others; adds results to `known`."""
    taken: list[Op] = []
    left: list[Op] = []
    for op in ops:
        if wanted(op) and known.issuperset(op.inputs):
            taken.append(op)
            known.add(op.output)
        else:
            left.append(op)
    return taken, left


def _group(graph: Graph, name: str, ops: list[Op]) -> Group:
    made = {op.output for op in ops}
    inside = set(map(id, ops))
    read_outside = {n for op in graph.ops if id(op) not in inside for n in op.inputs}
    read_outside.update(graph.outputs)
    sources = dict.fromkeys(n for op in ops for n in op.inputs if n not in made)
    return Group(
        name=name,
        layers=tuple(_layer(graph, op) for op in ops if isinstance(op, AccelOp)),
        inputs=tuple(sources),
        outputs=tuple(op.output for op in ops if op.output in read_outside),
        joins=tuple(join_of(graph, op) for op in ops if isinstance(op, Concat)),
        kernels={op.name: kernel_name(kernels(op, graph)) for op in ops},
    )


def _layer(graph: Graph, op: Op) -> AccelLayer:
    if isinstance(op, VtaOp):
        return op.layer
    if isinstance(op, AccelConv2d):
        return _conv_layer(graph, op)
    if isinstance(op, AccelMaxPool2d):
        return _pool_layer(graph, op)
    assert isinstance(op, AccelAdd)
    return AddLayer(
        name=op.name,
        sources=(op.inputs[0], op.inputs[1]),
        result=op.output,
        shape=_shape(graph, op.output),
        multipliers=op.multipliers,
        params=op.params,
    )


def _conv_layer(graph: Graph, op: AccelConv2d) -> ConvLayer:
    return ConvLayer(
        name=op.name,
        source=op.inputs[0],
        result=op.output,
        in_shape=_shape(graph, op.inputs[0]),
        out_shape=_shape(graph, op.output),
        weight=op.weight,
        group=op.group,
        strides=op.strides,
        pads=op.pads,
        dilations=op.dilations,
        pad_value=op.pad_value,
        params=op.params,
        useful_macs=macs(op, graph),
    )


def _pool_layer(graph: Graph, op: AccelMaxPool2d) -> PoolLayer:
    return PoolLayer(
        name=op.name,
        source=op.inputs[0],
        result=op.output,
        in_shape=_shape(graph, op.inputs[0]),
        out_shape=_shape(graph, op.output),
        kernel=op.kernel,
        strides=op.strides,
        pads=op.pads,
        dilations=op.dilations,
    )


def _shape(graph: Graph, name: str) -> tuple[int, int, int, int]:
    n, c, h, w = graph.types[name].shape
    return n, c, h, w
