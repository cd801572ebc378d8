"""Compiles consecutive layers into one instruction stream: `schedule_segment`."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from vitral.compiler.codegen.arena import Arena
from vitral.compiler.codegen.calls import Call
from vitral.compiler.codegen.constants import pack_params, pack_weights
from vitral.compiler.codegen.emit import Emitter, Operands
from vitral.compiler.codegen.gemm import gemm_calls
from vitral.compiler.codegen.microops import MicroOps
from vitral.compiler.codegen.tensors import TensorView
from vitral.compiler.codegen.window import window_calls
from vitral.compiler.codegen.window_weights import pack_add_weights, pack_window_weights
from vitral.compiler.schedule.geometry import Geometry, blocks_of
from vitral.compiler.schedule.layer import AccelLayer, AddLayer, PoolLayer
from vitral.compiler.schedule.placing import memory_pads, pad_value, place_tensors
from vitral.compiler.schedule.plan import LayerPlan, Prefetch, plan_layers
from vitral.compiler.schedule.records import layer_records
from vitral.compiler.schedule.steps import Chunk
from vitral.compiler.schedule.unroll import task_chunks
from vitral.compiler.schedule.windows import WindowGeometry
from vitral.config import INSN_BYTES, CoreConfig
from vitral.errors import CompileError
from vitral.isa import Finish, Instruction, InstructionSet, Rounding
from vitral.runtime.module import ArenaTensor, Segment

__all__ = ["schedule_segment"]


def schedule_segment(
    layers: Sequence[AccelLayer],
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
    tensors = place_tensors(plans, config, inputs, outputs, arena)
    operands = [_operands(plan, tensors, config, arena) for plan in plans]
    calls = [_calls(plan, config) for plan in plans]
    insns, marks = _emit(plans, operands, calls, config, arena)
    isa = InstructionSet.of(config)
    words = b"".join(isa.encode(insn).to_bytes(INSN_BYTES, "little") for insn in insns)
    return Segment(
        name=name,
        insn_offset=arena.place(np.frombuffer(words, np.uint8)),
        insn_count=len(insns),
        inputs=tuple(tensors[value] for value in inputs),
        outputs=tuple(tensors[value] for value in outputs),
        layers=tuple(layer_records(plans, marks)),
    )


def _check(
    layers: Sequence[AccelLayer], name: str, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> None:
    if not layers:
        raise CompileError(f"segment {name}: needs at least one layer, got none")
    shapes: dict[str, tuple[int, int, int, int]] = {}
    for layer in layers:
        for source in layer.sources:
            if source not in shapes and source not in inputs:
                raise CompileError(
                    f"{layer.name}: reads {source}, which is neither an input of segment {name}"
                    " nor the result of an earlier layer"
                )
            known = shapes.setdefault(source, layer.in_shape)
            if known != layer.in_shape:
                raise CompileError(
                    f"{layer.name}: reads {source} as {layer.in_shape}, but its shape is {known}"
                )
        if layer.result in shapes or layer.result in inputs:
            raise CompileError(f"{layer.name}: {layer.result} already has a value; rename it")
        shapes[layer.result] = layer.out_shape
    for value in (*inputs, *outputs):
        if value not in shapes:
            raise CompileError(f"segment {name}: no layer reads or gives {value}")


def _operands(
    plan: LayerPlan, tensors: dict[str, ArenaTensor], config: CoreConfig, arena: Arena
) -> Operands:
    layer, layout = plan.layer, config.layout
    result = tensors[layer.result]
    top, left, _, _ = memory_pads(plan)
    sources = [tensors[source] for source in layer.sources]
    params = None if isinstance(layer, PoolLayer) else layer.params
    weights = _weights(plan, config)
    return Operands(
        name=layer.name,
        sources=tuple(
            TensorView.of(source, source.pads[0] - top, source.pads[1] - left, config)
            for source in sources
        ),
        result=TensorView.of(result, result.pads[0], result.pads[1], config),
        weights=0 if weights is None else arena.place(weights) // layout.wgt_bytes,
        params=None
        if isinstance(layer, PoolLayer)
        else arena.place(pack_params(layer, config)) // layout.param_bytes,
        blocks=blocks_of(layer.out_shape[1], config.block),
        pad_value=pad_value(plan),
        rounding=Rounding.HALF_EVEN if params is None else params.rounding,
    )


def _weights(plan: LayerPlan, config: CoreConfig) -> npt.NDArray[np.int8] | None:
    match plan.layer, plan.geometry:
        case PoolLayer(), _:
            return None
        case AddLayer() as layer, _:
            return pack_add_weights(layer, config)
        case layer, WindowGeometry() as geometry:
            return pack_window_weights(layer, geometry, plan.tiling, config)
        case layer, geometry:
            return pack_weights(layer, geometry, _task_chunks(plan, geometry), config)


def _task_chunks(plan: LayerPlan, geometry: Geometry) -> list[list[Chunk]]:
    """The chunks of each task, in the order of their weights."""
    return [task_chunks(geometry, plan.tiling, task) for task in geometry.tasks]


def _calls(plan: LayerPlan, config: CoreConfig) -> list[list[Call]]:
    """The compute instructions of each step."""
    depth = config.layout.uop_depth
    if isinstance(plan.geometry, WindowGeometry):
        return [window_calls(step, plan.geometry, plan.tiling, depth) for step in plan.steps]
    return [gemm_calls(step, plan.geometry, depth) for step in plan.steps]


def _emit(
    plans: Sequence[LayerPlan],
    operands: Sequence[Operands],
    calls: Sequence[Sequence[Sequence[Call]]],
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
            handle = emitter.compute(call, base)
            if n == 0 and number in halfway:
                emitter.load_params(step.layer, 0, operands[step.layer], after=handle)
        if step.store_blocks:
            emitter.store(step, operands[step.layer])
        if number + 1 == len(prefetch.steps) or prefetch.steps[number + 1].layer != step.layer:
            last.append(len(emitter.stream) - 1)
    emitter.stream.append(Finish())
    insns, positions = emitter.stream.finish()
    return insns, [positions[handle] for handle in last]


def _halfway_to_store(plans: Sequence[LayerPlan]) -> Iterator[int]:
    """For each layer with parameters the step, counted over all, at which they are fetched."""
    start = 0
    for plan in plans:
        storing = (n for n, step in enumerate(plan.steps) if step.store_blocks)
        if not isinstance(plan.layer, PoolLayer):
            yield start + next(storing) // 2
        start += len(plan.steps)
