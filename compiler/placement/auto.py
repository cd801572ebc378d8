"""Where each operator of a lowered graph runs: all on one side, or what takes the least time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, inf, prod

from vitral.compiler.cycles import Prediction, layer_cycles, predict_segment
from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AccelOp, Concat, Op
from vitral.compiler.place.concats import by_address
from vitral.compiler.placement.costs import COPY, LAUNCH, CpuTable
from vitral.compiler.placement.cut import Item, split
from vitral.config import CoreConfig
from vitral.runtime.module import ArenaTensor, CpuStep, Module, Segment

__all__ = [
    "DEFAULT_CLOCK_MHZ",
    "PLACES",
    "Build",
    "Estimate",
    "Rates",
    "estimate",
    "on_host",
    "place_cheapest",
    "place_graph",
]

PLACES = ("accelerator", "cpu", "auto")
DEFAULT_CLOCK_MHZ = 100
"""For cores that are simulated only: what a Zynq-7020 may reach."""

Build = Callable[[Graph], Module]
_PATCHES = "patches"


@dataclass(frozen=True)
class Rates:
    """What time is made of: the host's table and the core's clock in cycles per second."""

    table: CpuTable
    clock: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds that a module is expected to take for one run, by what takes them.

    Parameters
    ----------
    accelerator : float
        Its programs, by the cycle model.
    host : float
        Operators on the CPU, by the table.
    copies : float
        Tensors packed for the accelerator and unpacked, and programs started.
    """

    accelerator: float
    host: float
    copies: float

    @property
    def total(self) -> float:
        """All of them, one after the other."""
        return self.accelerator + self.host + self.copies


def place_graph(graph: Graph, config: CoreConfig, place: str, rates: Rates, build: Build) -> Module:
    """The module of a lowered graph with its operators placed by one of `PLACES`."""
    if place == "auto":
        return place_cheapest(graph, config, rates, build)
    return build(on_host(graph) if place == "cpu" else graph)


def on_host(graph: Graph) -> Graph:
    """The graph with every operator on the CPU, but those that were given another device."""
    return _with_host(graph, lambda op: op.device != "accelerator")


def place_cheapest(graph: Graph, config: CoreConfig, rates: Rates, build: Build) -> Module:
    """The module that takes the least time by the model: split, all that can be on the
    accelerator, or all on the host. `graph` has on the accelerator what can run there.

    Operators that were given a device stay there.
    """
    widest = build(graph)
    predictions = _predictions(widest)
    items = _items(graph, config, _layer_seconds(graph, widest, predictions, rates.clock), rates)
    there = split(items, _copies(graph, config, rates), graph.outputs)
    chosen = _with_host(graph, lambda op: op.output not in there)
    candidates = [(_estimated(graph, widest, predictions, rates).total, widest)]
    tried = {_placed(graph)}
    for other in (chosen, on_host(graph)):
        if _placed(other) not in tried:
            module = build(other)
            candidates.append((estimate(other, module, rates).total, module))
            tried.add(_placed(other))
    return min(candidates, key=lambda pair: pair[0])[1]


def estimate(graph: Graph, module: Module, rates: Rates) -> Estimate:
    """What a module of a placed graph costs.

    Parameters
    ----------
    graph : Graph
        What `module` was built from; layers that its core refused count as the host's.
    """
    return _estimated(graph, module, _predictions(module), rates)


def _predictions(module: Module) -> list[Prediction]:
    """Of each program."""
    return [predict_segment(module, segment) for segment in module.segments]


def _estimated(
    graph: Graph, module: Module, predictions: Sequence[Prediction], rates: Rates
) -> Estimate:
    cycles = sum(prediction.cycles for prediction in predictions)
    moved = [tensor for segment in module.segments for tensor in _tensors(segment)]
    copies = sum(rates.table.seconds(COPY, _bytes(tensor, module.config)) for tensor in moved)
    layouts = [
        step.outputs[0]
        for step in module.steps
        if isinstance(step, CpuStep) and step.op == _PATCHES
    ]
    sizes = {tensor.name: prod(tensor.shape) for tensor in moved}
    return Estimate(
        accelerator=cycles / rates.clock,
        host=sum(rates.table.op_seconds(op, graph) for op in _host_ops(graph, module))
        + sum(rates.table.seconds(_PATCHES, sizes.get(name, 0)) for name in layouts),
        copies=copies + rates.table.seconds(LAUNCH) * len(module.segments),
    )


def _tensors(segment: Segment) -> chain[ArenaTensor]:
    return chain(segment.inputs, segment.outputs)


def _host_ops(graph: Graph, module: Module) -> list[Op]:
    layers = {n for segment in module.segments for layer in segment.layers for n in layer.names}
    joined = by_address(graph, module.config)
    return [
        op
        for op in graph.ops
        if op.output not in joined and not (isinstance(op, AccelOp) and op.name in layers)
    ]


def _items(graph: Graph, config: CoreConfig, seconds: dict[str, float], rates: Rates) -> list[Item]:
    """`seconds` are the accelerator's, by the node's name."""
    joined = by_address(graph, config)
    return [
        Item(
            output=op.output,
            inputs=op.inputs,
            host=inf if _fixed(op, "accelerator") else rates.table.op_seconds(op, graph),
            accelerator=_accelerator_seconds(op, seconds, joined),
        )
        for op in graph.ops
    ]


def _fixed(op: Op, device: str) -> bool:
    return isinstance(op, AccelOp) and not op.on_cpu and op.device == device


def _accelerator_seconds(op: Op, seconds: dict[str, float], joined: set[str]) -> float:
    if isinstance(op, Concat) and op.output in joined:
        return 0.0
    if not isinstance(op, AccelOp) or op.on_cpu or op.device == "cpu":
        return inf
    return seconds.get(op.name, inf)


def _layer_seconds(
    graph: Graph, module: Module, predictions: Sequence[Prediction], clock: float
) -> dict[str, float]:
    """Seconds of an operator by its node's name; those of two layers in one in equal parts."""
    share: dict[str, float] = {}
    for segment, prediction in zip(module.segments, predictions, strict=True):
        cycles = layer_cycles(module, segment, prediction)
        for layer, spent in zip(segment.layers, cycles, strict=True):
            for name in layer.names:
                share[name] = share.get(name, 0.0) + spent / clock / len(layer.names)
    counts: dict[str, int] = {}
    for op in graph.ops:
        counts[op.name] = counts.get(op.name, 0) + isinstance(op, AccelOp)
    return {name: spent / max(counts.get(name, 1), 1) for name, spent in share.items()}


def _copies(graph: Graph, config: CoreConfig, rates: Rates) -> dict[str, float]:
    """Seconds to move each value, as bytes in whole channel blocks."""
    block = config.block
    found = {}
    for name, type_ in graph.types.items():
        shape = type_.shape
        channels = ceil(shape[1] / block) * block if len(shape) > 1 else 1
        size = prod(shape) // max(shape[1], 1) * channels if len(shape) > 1 else prod(shape)
        found[name] = rates.table.seconds(COPY, size)
    return found


def _bytes(tensor: ArenaTensor, config: CoreConfig) -> int:
    n, c, h, w = tensor.shape
    return n * ceil(c / config.block) * config.block * h * w


def _with_host(graph: Graph, moved: Callable[[AccelOp], bool]) -> Graph:
    ops = tuple(
        replace(op, on_cpu=True) if isinstance(op, AccelOp) and moved(op) else op
        for op in graph.ops
    )
    return replace(graph, ops=ops)


def _placed(graph: Graph) -> frozenset[str]:
    return frozenset(op.output for op in graph.ops if isinstance(op, AccelOp) and not op.on_cpu)
