"""Compiles consecutive layers into one instruction stream: `schedule_segment`."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vitral.compiler.codegen.arena import Arena
from vitral.compiler.codegen.constants import pack_bias, pack_params, pack_weights
from vitral.compiler.codegen.emit import Operands
from vitral.compiler.codegen.stream import compute_calls, emit_stream
from vitral.compiler.codegen.tensors import TensorView
from vitral.compiler.codegen.window_weights import pack_add_weights, pack_window_weights
from vitral.compiler.schedule.geometry import Geometry, blocks_of
from vitral.compiler.schedule.layer import AccelLayer, AddLayer, PoolLayer
from vitral.compiler.schedule.placing import memory_pads, pad_value, place_tensors
from vitral.compiler.schedule.plan import LayerPlan, plan_layers
from vitral.compiler.schedule.records import layer_records
from vitral.compiler.schedule.regions import Join, Region, regions_of
from vitral.compiler.schedule.steps import Chunk
from vitral.compiler.schedule.trial import trial_cycles
from vitral.compiler.schedule.unroll import task_chunks
from vitral.compiler.schedule.vta_layer import VtaConv, VtaPool
from vitral.compiler.schedule.vta_plan import plan_vta_layers
from vitral.compiler.schedule.windows import WindowGeometry
from vitral.config import INSN_BYTES, CoreConfig
from vitral.errors import CompileError
from vitral.isa import InstructionSet, Profile, Rounding
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
    joins: Sequence[Join] = (),
    told: Callable[[int], None] | None = None,
    profile: Profile = Profile.VITRAL,
) -> Segment:
    """One program for `layers`, in that order; its constants and instructions go to `arena`.

    Every layer reads one of `inputs`, the result of an earlier layer, or that of one of `joins`,
    which are concatenations by address: whoever writes a part writes into the result. `inputs` are
    written by the host before each run and `outputs` read after it; all base registers point to the
    start of the arena. `told` is called with the number of each layer before its search. In the
    VTA profile all layers are of `vta_layer`.

    Raises
    ------
    CompileError
        For a layer that does not fit on chip, contradicts itself or another layer, or reads a
        value that nobody produces.
    """
    _check(layers, name, inputs, outputs, joins)
    regions = regions_of(joins, config.block)
    if regions is None:
        raise CompileError(f"segment {name}: a value is part of two concatenations; copy it first")
    plans = _plans(layers, config, regions, told)
    tensors = place_tensors(plans, config, inputs, outputs, arena, joins)
    operands = [_operands(plan, tensors, config, arena) for plan in plans]
    uops, calls = compute_calls(plans, config)
    uop_dram = arena.place(uops.image) // config.layout.uop_bytes
    insns, marks = emit_stream(plans, operands, calls, uops, uop_dram, config)
    isa = InstructionSet.of(config)
    words = b"".join(isa.encode(insn, profile).to_bytes(INSN_BYTES, "little") for insn in insns)
    return Segment(
        name=name,
        insn_offset=arena.place(np.frombuffer(words, np.uint8)),
        insn_count=len(insns),
        inputs=tuple(tensors[value] for value in inputs),
        outputs=tuple(tensors[value] for value in outputs),
        layers=tuple(layer_records(plans, marks)),
        profile=profile.name.lower(),
    )


def _plans(
    layers: Sequence[AccelLayer],
    config: CoreConfig,
    regions: Mapping[str, Region],
    told: Callable[[int], None] | None,
) -> list[LayerPlan]:
    plain = [layer for layer in layers if isinstance(layer, VtaConv | VtaPool)]
    if len(plain) == len(layers):
        return plan_vta_layers(plain, config, regions, told)
    return plan_layers(layers, config, trial_cycles, regions, told)


def _check(
    layers: Sequence[AccelLayer],
    name: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    joins: Sequence[Join],
) -> None:
    if not layers:
        raise CompileError(f"segment {name}: needs at least one layer, got none")
    shapes: dict[str, tuple[int, int, int, int]] = {}
    for join in joins:
        shapes[join.result] = join.shape
    for layer in layers:
        for source, shape in zip(layer.sources, layer.source_shapes, strict=True):
            if source not in shapes and source not in inputs:
                raise CompileError(
                    f"{layer.name}: reads {source}, which is neither an input of segment {name}"
                    " nor the result of an earlier layer"
                )
            known = shapes.setdefault(source, shape)
            if known != shape:
                raise CompileError(
                    f"{layer.name}: reads {source} as {shape}, but its shape is {known}"
                )
        if layer.result in shapes or layer.result in inputs:
            raise CompileError(f"{layer.name}: {layer.result} already has a value; rename it")
        shapes[layer.result] = layer.out_shape
    for join in joins:
        for part, shape in join.part_shapes:
            if part not in shapes and part not in inputs:
                raise CompileError(
                    f"segment {name}: {join.result} joins {part}, which has no value"
                )
            if shapes.setdefault(part, shape) != shape:
                raise CompileError(
                    f"segment {name}: {join.result} joins {part} as {shape}, but its shape is"
                    f" {shapes[part]}"
                )
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
    roots = [tensors[region.root] for region in plan.reads]
    params = None if isinstance(layer, PoolLayer | VtaConv) else layer.params
    bias = layer.bias if isinstance(layer, VtaConv) else None
    weights = _weights(plan, config)
    return Operands(
        name=layer.name,
        sources=tuple(
            TensorView.of(source, source.pads[0] - top, source.pads[1] - left, config, root)
            for source, root in zip(sources, roots, strict=True)
        ),
        result=TensorView.of(
            result, result.pads[0], result.pads[1], config, tensors[plan.writes.root]
        ),
        weights=0 if weights is None else arena.place(weights) // layout.wgt_bytes,
        params=None
        if isinstance(layer, PoolLayer | VtaConv)
        else arena.place(pack_params(layer, config)) // layout.param_bytes,
        blocks=blocks_of(layer.out_shape[1], config.block),
        pad_value=pad_value(plan),
        rounding=Rounding.HALF_EVEN if params is None else params.rounding,
        biases=0 if bias is None else arena.place(pack_bias(bias, config)) // layout.acc_bytes,
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
