"""Schedules a lowered graph for one core and packs the module."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from vitral.compiler.codegen.arena import Arena
from vitral.compiler.ir import Graph, verify
from vitral.compiler.ir.macs import macs
from vitral.compiler.ir.ops import AccelOp
from vitral.compiler.place.cpu_steps import StepWriter, cpu_steps
from vitral.compiler.place.host_layouts import lay_out_images
from vitral.compiler.place.islands import merge_islands
from vitral.compiler.place.partition import Group, partition
from vitral.compiler.progress import Doing, Tell
from vitral.compiler.schedule.segment import schedule_segment
from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.isa import Profile
from vitral.runtime.module import TOGETHER, CpuStep, Module, Segment, TensorInfo

__all__ = ["OnCpu", "Plan", "assemble", "plan"]

OnCpu = Callable[[Graph, Mapping[str, str]], Graph]
"""Places the layers that give some values on the CPU; the reason is beside each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """A network cut into CPU steps and groups of layers, before scheduling."""

    graph: Graph
    steps: tuple[CpuStep | Group, ...]
    arrays: Mapping[str, npt.NDArray[Any]]


def plan(graph: Graph, config: CoreConfig | None = None) -> Plan:
    """Cut a lowered graph into steps; a notice for each CPU operator that multiplies."""
    writer = StepWriter(graph)
    for name in graph.constants:
        writer.constant(name)
    steps: list[CpuStep | Group] = [*writer.take()]
    notices: list[str] = []
    for item in partition(graph, config or CoreConfig()):
        if isinstance(item, Group):
            steps.append(item)
            continue
        cpu_steps(writer, item)
        steps += writer.take()
        if macs(item, graph) and not isinstance(item, AccelOp):
            notices.append(f"node {item.name!r} ({item.kind}) runs on the CPU")
    merged = merge_islands(steps, graph)
    return Plan(graph=graph.noted(*notices), steps=merged, arrays=writer.arrays)


def assemble(
    graph: Graph,
    config: CoreConfig,
    tell: Tell,
    host_layout: str = "auto",
    on_cpu: OnCpu | None = None,
    profile: Profile = Profile.VITRAL,
) -> Module:
    """The module of a lowered graph; layers that do not fit the core go to the CPU with a notice.

    `tell` is told what is scheduled next; `host_layout` is that of `lay_out_images`. `on_cpu`
    places layers on the CPU, by default those that know the law that they were lowered from.
    """
    refused: dict[str, str] = {}
    while True:
        placed = lay_out_images((on_cpu or _on_cpu)(graph, refused), config, host_layout)
        verify(placed)
        planned = plan(placed, config)
        arena = Arena()
        steps = _scheduled(planned, config, arena, tell, refused, profile)
        if steps is not None:
            return _module(planned, config, _packed(planned, steps, config), arena)


def _scheduled(
    planned: Plan,
    config: CoreConfig,
    arena: Arena,
    tell: Tell,
    refused: dict[str, str],
    profile: Profile,
) -> tuple[CpuStep | Segment, ...] | None:
    """The steps with their programs, or None after adding layers to `refused`."""
    steps: list[CpuStep | Segment] = []
    for step in planned.steps:
        if isinstance(step, CpuStep):
            steps.append(step)
            continue
        try:
            told = _layer_teller(tell, step, planned)
            steps.append(_named(_program(step, config, arena, profile, told), step.kernels))
        except CompileError:
            found = _refusals(step, config, profile)
            if not found:
                raise
            refused.update(found)
            return None
    return tuple(steps)


def _layer_teller(tell: Tell, group: Group, planned: Plan) -> Callable[[int], None]:
    """Tells about a layer of a group by its number."""
    groups = [step for step in planned.steps if isinstance(step, Group)]
    total = sum(len(one.layers) for one in groups)
    before = sum(len(one.layers) for one in groups[: groups.index(group)])

    def told(number: int) -> None:
        text = f"scheduling {group.name}, layer {number + 1} of {len(group.layers)}"
        tell(Doing(text, 0.1 + 0.5 * (before + number) / total))

    return told


def _program(
    group: Group,
    config: CoreConfig,
    arena: Arena,
    profile: Profile,
    told: Callable[[int], None] | None = None,
) -> Segment:
    return schedule_segment(
        group.layers,
        config,
        name=group.name,
        inputs=group.inputs,
        outputs=group.outputs,
        arena=arena,
        joins=group.joins,
        told=told,
        profile=profile,
    )


def _named(segment: Segment, kernels: Mapping[str, str]) -> Segment:
    """The segment whose layers have the names of their kernels; two together have both."""
    layers = tuple(
        replace(layer, kernel=TOGETHER.join(kernels.get(n, n) for n in layer.names))
        for layer in segment.layers
    )
    return replace(segment, layers=layers)


def _refusals(group: Group, config: CoreConfig, profile: Profile) -> dict[str, str]:
    """Result name to the reason, for each layer that cannot run on this core even alone."""
    found: dict[str, str] = {}
    for layer in group.layers:
        alone = Group(
            name=group.name,
            layers=(layer,),
            inputs=tuple(dict.fromkeys(layer.sources)),
            outputs=(layer.result,),
        )
        try:
            _program(alone, config, Arena(), profile)
        except CompileError as error:
            found[layer.result] = str(error)
    return found


def _on_cpu(graph: Graph, refused: Mapping[str, str]) -> Graph:
    """The graph with the layers that write `refused` values placed on the CPU."""
    ops = tuple(
        replace(op, on_cpu=True) if isinstance(op, AccelOp) and op.output in refused else op
        for op in graph.ops
    )
    notices = (f"runs on the CPU: {reason}" for reason in refused.values())
    return replace(graph, ops=ops).noted(*notices)


def _packed(
    planned: Plan, steps: tuple[CpuStep | Segment, ...], config: CoreConfig
) -> tuple[CpuStep | Segment, ...]:
    """Windows that only programs read are written in the accelerator's form at once."""
    on_host = {name for step in steps if isinstance(step, CpuStep) for name in step.inputs}
    on_host.update(planned.graph.outputs)
    padded = {
        tensor.name
        for step in steps
        if isinstance(step, Segment)
        for tensor in step.inputs
        if any(tensor.pads)
    }
    form = {"packed": [config.batch, config.block]}
    return tuple(
        replace(step, attributes={**step.attributes, **form})
        if isinstance(step, CpuStep)
        and step.op == "patches"
        and not {*step.outputs} & (on_host | padded)
        else step
        for step in steps
    )


def _module(
    planned: Plan, config: CoreConfig, steps: tuple[CpuStep | Segment, ...], arena: Arena
) -> Module:
    graph = planned.graph
    return Module(
        config=config,
        inputs=tuple(_info(graph, name) for name in graph.inputs),
        outputs=tuple(_info(graph, name) for name in graph.outputs),
        steps=steps,
        arrays=planned.arrays,
        arena_bytes=arena.size,
        image=arena.image,
        macs=sum(macs(op, graph) for op in graph.ops),
        notices=graph.notices,
    )


def _info(graph: Graph, name: str) -> TensorInfo:
    type_, quant = graph.types[name], graph.edges.get(name)
    return TensorInfo(
        name=name,
        shape=type_.shape,
        dtype=type_.dtype,
        scale=None if quant is None else quant.tensor_scale,
        zero_point=None if quant is None else quant.tensor_zero,
    )
