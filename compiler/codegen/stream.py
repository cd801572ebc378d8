"""The instruction stream of planned layers: `compute_calls`, then `emit_stream`."""

from collections.abc import Iterator, Sequence

from vitral.compiler.codegen.acc_loads import AccLoad
from vitral.compiler.codegen.calls import Call
from vitral.compiler.codegen.emit import Emitter, Operands
from vitral.compiler.codegen.gemm import gemm_calls
from vitral.compiler.codegen.microops import MicroOps
from vitral.compiler.codegen.vta_conv import vta_conv_calls
from vitral.compiler.codegen.vta_pool import vta_pool_calls
from vitral.compiler.codegen.window import window_calls
from vitral.compiler.schedule.layer import PoolLayer
from vitral.compiler.schedule.layer_plan import LayerPlan
from vitral.compiler.schedule.order import order_steps
from vitral.compiler.schedule.prefetch import Prefetch
from vitral.compiler.schedule.vta_layer import VtaConv, VtaPool
from vitral.compiler.schedule.windows import WindowGeometry
from vitral.config import CoreConfig
from vitral.isa import Finish, Instruction, Uop

__all__ = ["Calls", "compute_calls", "emit_stream"]

Calls = Sequence[Sequence[Sequence[Call | AccLoad]]]
"""The compute instructions of each step of each layer, and the LOADs between them."""


def compute_calls(plans: Sequence[LayerPlan], config: CoreConfig) -> tuple[MicroOps, Calls]:
    """The compute instructions, and where their micro-ops lie."""
    calls = [_calls(plan, config) for plan in plans]
    return MicroOps(config, map(_sequences, calls)), calls


def _sequences(layer: Sequence[Sequence[Call | AccLoad]]) -> list[tuple[Uop, ...]]:
    return [call.uops for step in layer for call in step if isinstance(call, Call)]


def _calls(plan: LayerPlan, config: CoreConfig) -> Sequence[Sequence[Call | AccLoad]]:
    depth = config.layout.uop_depth
    if isinstance(plan.layer, VtaConv):
        return [vta_conv_calls(step, plan, config) for step in plan.steps]
    if isinstance(plan.layer, VtaPool):
        return [vta_pool_calls(step, plan, config) for step in plan.steps]
    if isinstance(plan.geometry, WindowGeometry):
        return [window_calls(step, plan.geometry, plan.tiling, depth) for step in plan.steps]
    return [gemm_calls(step, plan.geometry, depth) for step in plan.steps]


def emit_stream(
    plans: Sequence[LayerPlan],
    operands: Sequence[Operands],
    calls: Calls,
    uops: MicroOps,
    uop_dram: int,
    config: CoreConfig,
) -> tuple[list[Instruction], list[int]]:
    """The instructions, and for each layer the number of its last one.

    `uop_dram` is the DRAM element at which the image of `uops` lies; `uops` serves one stream.
    """
    order = order_steps(plans)
    emitter, prefetch = Emitter(config), Prefetch(plans, order, config)
    halfway = set(_halfway_to_store(plans))
    last = [0] * len(plans)
    for number, (layer, own) in enumerate(order):
        step = plans[layer].steps[own]
        for ahead in prefetch.due(number):
            emitter.load_operands(ahead, operands[ahead.layer])
        for n, call in enumerate(calls[layer][own]):
            if not isinstance(call, Call):
                emitter.load_acc(call, operands[layer])
                continue
            base, loads = uops.request(step.layer, call.uops, uop_dram)
            for insn in loads:
                emitter.load_uop(insn)
            handle = emitter.compute(call, base)
            if n == 0 and (layer, own) in halfway:
                emitter.load_params(layer, 0, operands[layer], after=handle)
        if step.store_blocks:
            emitter.store(step, operands[layer])
        last[layer] = len(emitter.stream) - 1
    emitter.stream.append(Finish())
    insns, positions = emitter.stream.finish()
    return insns, [positions[handle] for handle in last]


def _halfway_to_store(plans: Sequence[LayerPlan]) -> Iterator[tuple[int, int]]:
    """Each layer with parameters, and the number of its step at which they are fetched."""
    for number, plan in enumerate(plans):
        storing = (n for n, step in enumerate(plan.steps) if step.store_blocks)
        if not isinstance(plan.layer, PoolLayer):
            yield number, next(storing) // 2
