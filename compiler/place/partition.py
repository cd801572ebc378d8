"""Cuts a lowered graph into groups of convolutions for the accelerator and single CPU operators."""

from collections.abc import Callable
from dataclasses import dataclass

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AccelConv2d, Op
from vitral.compiler.schedule.layer import ConvLayer

__all__ = ["Group", "partition"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Convolutions that run as one program, in order.

    `inputs` are values from outside, `outputs` those that the rest of the network reads.
    """

    name: str
    layers: tuple[ConvLayer, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def partition(graph: Graph) -> list[Group | Op]:
    """The graph in execution order, with as few switches between CPU and accelerator as possible.

    The two sides take turns; each runs all that it can before the other goes on.
    """
    known = {*graph.inputs, *graph.constants}
    rest = list(graph.ops)
    steps: list[Group | Op] = []
    while rest:
        on_cpu, rest = _runnable(rest, known, lambda op: not _accelerated(op))
        steps += on_cpu
        convs, rest = _runnable(rest, known, _accelerated)
        if convs:
            number = sum(isinstance(step, Group) for step in steps)
            steps.append(_group(graph, f"segment{number}", convs))
    return steps


def _accelerated(op: Op) -> bool:
    return isinstance(op, AccelConv2d) and not op.on_cpu


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


def _group(graph: Graph, name: str, convs: list[Op]) -> Group:
    made = {op.output for op in convs}
    inside = set(map(id, convs))
    read_outside = {n for op in graph.ops if id(op) not in inside for n in op.inputs}
    read_outside.update(graph.outputs)
    sources = dict.fromkeys(n for op in convs for n in op.inputs if n not in made)
    return Group(
        name=name,
        layers=tuple(_layer(graph, op) for op in convs if isinstance(op, AccelConv2d)),
        inputs=tuple(sources),
        outputs=tuple(op.output for op in convs if op.output in read_outside),
    )


def _layer(graph: Graph, op: AccelConv2d) -> ConvLayer:
    return ConvLayer(
        name=op.name,
        source=op.inputs[0],
        result=op.output,
        in_shape=_four(graph.types[op.inputs[0]].shape),
        out_shape=_four(graph.types[op.output].shape),
        weight=op.weight,
        group=op.group,
        strides=op.strides,
        pads=op.pads,
        dilations=op.dilations,
        pad_value=op.pad_value,
        params=op.params,
    )


def _four(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    n, c, h, w = shape
    return n, c, h, w
