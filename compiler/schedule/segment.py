"""Compiles consecutive convolutions into one instruction stream: `schedule_segment`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vitral.compiler.codegen.arena import Arena
from vitral.compiler.codegen.constants import pack_params, pack_weights
from vitral.compiler.codegen.emit import Emitter, Operands
from vitral.compiler.codegen.gemm import GemmCall, gemm_calls
from vitral.compiler.codegen.microops import MicroOps
from vitral.compiler.codegen.tensors import TensorView, tensor_bytes
from vitral.compiler.schedule.geometry import blocks_of
from vitral.compiler.schedule.layer import ConvLayer
from vitral.compiler.schedule.plan import LayerPlan, Prefetch, plan_layers
from vitral.compiler.schedule.steps import Chunk
from vitral.compiler.schedule.unroll import task_chunks
from vitral.config import INSN_BYTES, PARAM_LANE_BYTES, CoreConfig
from vitral.errors import CompileError
from vitral.isa import Finish, Instruction, InstructionSet
from vitral.runtime.module import ArenaTensor, Layer, Segment

__all__ = ["schedule_segment"]

Pads = tuple[int, int, int, int]


def schedule_segment(
    layers: Sequence[ConvLayer],
    config: CoreConfig,
    *,
    name: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    arena: Arena,
) -> Segment:
    """One program for `layers`, in that order; its constants and instructions go to `arena`.

    Every layer reads one of `inputs` or the result of an earlier layer. `inputs` are written by
    the host before each run and `outputs` read after it; all base registers point to the start
    of the arena.

    Raises
    ------
    CompileError
        For a layer that does not fit on chip, contradicts itself or another layer, or reads a
        value that nobody produces.
    """
    _check(layers, name, inputs, outputs)
    plans = plan_layers(layers, config)
    tensors = _place_tensors(plans, config, inputs, outputs, arena)
    operands = [_operands(plan, tensors, config, arena) for plan in plans]
    calls = [
        [gemm_calls(step, plan.geometry, config.layout.uop_depth) for step in plan.steps]
        for plan in plans
    ]
    insns, marks = _emit(plans, operands, calls, config, arena)
    isa = InstructionSet.of(config)
    words = b"".join(isa.encode(insn).to_bytes(INSN_BYTES, "little") for insn in insns)
    return Segment(
        name=name,
        insn_offset=arena.place(np.frombuffer(words, np.uint8)),
        insn_count=len(insns),
        inputs=tuple(tensors[value] for value in inputs),
        outputs=tuple(tensors[value] for value in outputs),
        layers=tuple(_records(plans, marks)),
    )


def _check(
    layers: Sequence[ConvLayer], name: str, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> None:
    if not layers:
        raise CompileError(f"segment {name}: needs at least one layer, got none")
    shapes: dict[str, tuple[int, int, int, int]] = {}
    for layer in layers:
        if layer.source not in shapes and layer.source not in inputs:
            raise CompileError(
                f"{layer.name}: reads {layer.source}, which is neither an input of segment {name}"
                " nor the result of an earlier layer"
            )
        known = shapes.setdefault(layer.source, layer.in_shape)
        if known != layer.in_shape:
            raise CompileError(
                f"{layer.name}: reads {layer.source} as {layer.in_shape}, but its shape is {known}"
            )
        if layer.result in shapes or layer.result in inputs:
            raise CompileError(f"{layer.name}: {layer.result} already has a value; rename it")
        shapes[layer.result] = layer.out_shape
    for value in (*inputs, *outputs):
        if value not in shapes:
            raise CompileError(f"segment {name}: no layer reads or gives {value}")


@dataclass(frozen=True)
class _Border:
    """Padding of a tensor in DRAM and its value."""

    pads: Pads = (0, 0, 0, 0)
    value: int = 0


def _borders(plans: Sequence[LayerPlan]) -> dict[str, _Border]:
    """The widest padding that any reader of a tensor needs in DRAM."""
    borders: dict[str, _Border] = {}
    for plan in plans:
        pads = _memory_pads(plan)
        if not any(pads):
            continue
        layer = plan.layer
        border = borders.get(layer.source, _Border(value=layer.pad_value))
        if border.value != layer.pad_value:
            raise CompileError(
                f"{layer.name}: pads {layer.source} with {layer.pad_value}, another layer with"
                f" {border.value}; borders wider than 15 must have one value"
            )
        wide = [max(pair) for pair in zip(border.pads, pads, strict=True)]
        borders[layer.source] = _Border((wide[0], wide[1], wide[2], wide[3]), border.value)
    return borders


def _memory_pads(plan: LayerPlan) -> Pads:
    """(top, left, bottom, right) that lie in DRAM for this layer."""
    _, _, height, width = plan.layer.in_shape
    top = plan.layer.pads[0] - plan.geometry.y.before
    left = plan.layer.pads[1] - plan.geometry.x.before
    bottom, right = plan.geometry.y.size - height - top, plan.geometry.x.size - width - left
    in_memory = (top, left, bottom, right) != (0, 0, 0, 0)
    return (top, left, bottom, right) if in_memory else (0, 0, 0, 0)


def _place_tensors(
    plans: Sequence[LayerPlan],
    config: CoreConfig,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    arena: Arena,
) -> dict[str, ArenaTensor]:
    """Where each value lies: inputs, outputs and padded ones for good, others while they live."""
    borders = _borders(plans)
    last_use = {plan.layer.source: number for number, plan in enumerate(plans)}
    tensors: dict[str, ArenaTensor] = {}
    borrowed: dict[str, int] = {}

    def place(value: str, shape: tuple[int, int, int, int], *, live: bool) -> None:
        border = borders.get(value, _Border())
        size = tensor_bytes(shape, border.pads, config)
        if value in inputs:
            offset = arena.reserve(size)
        elif any(border.pads):
            offset = arena.place(np.full(size, border.value, np.int8))
        elif value in outputs or not live:
            offset = arena.reserve(size)
        else:
            offset = borrowed[value] = arena.borrow(size)
        tensors[value] = ArenaTensor(
            name=value, offset=offset, shape=shape, pads=border.pads, pad_value=border.value
        )

    for number, plan in enumerate(plans):
        layer = plan.layer
        if layer.source not in tensors:
            place(layer.source, layer.in_shape, live=True)
        place(layer.result, layer.out_shape, live=layer.result in last_use)
        if last_use[layer.source] == number and layer.source in borrowed:
            arena.release(borrowed.pop(layer.source))
    return tensors


def _operands(
    plan: LayerPlan, tensors: dict[str, ArenaTensor], config: CoreConfig, arena: Arena
) -> Operands:
    layer, layout = plan.layer, config.layout
    source, result = tensors[layer.source], tensors[layer.result]
    own = _memory_pads(plan)
    weights = pack_weights(layer, plan.geometry, _task_chunks(plan), config)
    return Operands(
        name=layer.name,
        source=TensorView.of(source, source.pads[0] - own[0], source.pads[1] - own[1], config),
        result=TensorView.of(result, result.pads[0], result.pads[1], config),
        weights=arena.place(weights) // layout.wgt_bytes,
        params=arena.place(pack_params(layer, config)) // layout.param_bytes,
        blocks=blocks_of(layer.out_shape[1], config.block),
        pad_value=layer.pad_value,
        rounding=layer.params.rounding,
    )


def _task_chunks(plan: LayerPlan) -> list[list[Chunk]]:
    """The chunks of each task, in the order of their weights."""
    return [task_chunks(plan.geometry, plan.tiling, task) for task in plan.geometry.tasks]


def _emit(
    plans: Sequence[LayerPlan],
    operands: Sequence[Operands],
    calls: Sequence[Sequence[Sequence[GemmCall]]],
    config: CoreConfig,
    arena: Arena,
) -> tuple[list[Instruction], list[int]]:
    """The instructions, and for each layer the number of its last one."""
    uops = MicroOps(config, ([call.uops for step in layer for call in step] for layer in calls))
    uop_dram = arena.place(uops.image) // config.layout.uop_bytes
    emitter, prefetch = Emitter(config), Prefetch(plans, config)
    flat = [call for layer in calls for call in layer]
    halfway = set(_halfway_to_store(plans))
    last: list[int] = []
    for number, step in enumerate(prefetch.steps):
        for ahead in prefetch.due(number):
            emitter.load_operands(ahead, operands[ahead.layer])
        for n, call in enumerate(flat[number]):
            base, loads = uops.request(step.layer, call.uops, uop_dram)
            for insn in loads:
                emitter.load_uop(insn)
            handle = emitter.gemm(call, base)
            if n == 0 and number in halfway:
                first = plans[step.layer].geometry.tasks[0].first_out
                emitter.load_params(step.layer, first, operands[step.layer], after=handle)
        if step.store_blocks:
            emitter.store(step, operands[step.layer])
        if number + 1 == len(prefetch.steps) or prefetch.steps[number + 1].layer != step.layer:
            last.append(len(emitter.stream) - 1)
    emitter.stream.append(Finish())
    insns, positions = emitter.stream.finish()
    return insns, [positions[handle] for handle in last]


def _halfway_to_store(plans: Sequence[LayerPlan]) -> Iterator[int]:
    """For each layer the step, counted over all layers, at which its parameters are fetched."""
    start = 0
    for plan in plans:
        storing = (n for n, step in enumerate(plan.steps) if step.store_blocks)
        yield start + next(storing) // 2
        start += len(plan.steps)


def _records(plans: Sequence[LayerPlan], marks: Sequence[int]) -> list[Layer]:
    records, first = [], 0
    for plan, mark in zip(plans, marks, strict=True):
        layer = plan.layer
        n, channels, _, width = layer.in_shape
        outs = layer.out_shape[1]
        records.append(
            Layer(
                name=layer.name,
                op="depthwise" if 1 < layer.group == channels else "conv",
                macs=layer.macs,
                first=first,
                last=mark,
                read_bytes=n * channels * _rows_read(plan) * width
                + layer.weight.size
                + outs * PARAM_LANE_BYTES,
                write_bytes=int(np.prod(layer.out_shape)),
            )
        )
        first = mark + 1
    return records


def _rows_read(plan: LayerPlan) -> int:
    """Rows of the real input that any window touches."""
    axis, height = plan.geometry.y, plan.layer.in_shape[2]
    top = plan.layer.pads[0]
    rows = {
        out * axis.stride + tap * axis.dilation - top
        for out in range(axis.out)
        for tap in range(axis.kernel)
    }
    return sum(0 <= row < height for row in rows)
