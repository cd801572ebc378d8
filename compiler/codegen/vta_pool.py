"""A step of a pool in the plain VTA profile: maxima of ACC elements.

The input lies behind the sums. Results start at the lowest code; each place of the window then
raises those results for which it is inside the input, which are a rectangle. So padding never wins,
whatever it holds.
"""

from collections.abc import Iterator

from vitral.compiler.codegen.acc_loads import AccLoad, LoadChunk
from vitral.compiler.codegen.calls import Call, Loop, in_loops
from vitral.compiler.codegen.vta_alu import alu_immediate, alu_uop, reset_call
from vitral.compiler.schedule.geometry import Axis, Span, blocks_of, split
from vitral.compiler.schedule.layer_plan import LayerPlan
from vitral.compiler.schedule.steps import Run, Step
from vitral.compiler.schedule.vta_layer import VtaPool
from vitral.compiler.schedule.vta_plan import room_of
from vitral.config import CoreConfig
from vitral.isa import Alu, AluOp

__all__ = ["vta_pool_calls"]

_LOWEST = -128
_Place = tuple[Run, int, int]
"""Outputs along an axis, the input position of the first, and the distance to the next one's."""


def vta_pool_calls(step: Step, plan: LayerPlan, config: CoreConfig) -> list[Call | AccLoad]:
    """What the compute queue does in a step, in order."""
    layer = plan.layer
    assert isinstance(layer, VtaPool)
    room = room_of(layer, config)
    calls: list[Call | AccLoad] = [LoadChunk(step.input, step.blocks, room.sums)]
    if step.first:
        calls.append(reset_call(step.summed))
        calls.append(alu_immediate(AluOp.MIN, _LOWEST, step.summed))
    calls += _maxima(step, plan, room.sums, config)
    return calls


def _maxima(step: Step, plan: LayerPlan, distance: int, config: CoreConfig) -> Iterator[Call]:
    """One instruction for all places of the window that raise the same rectangle."""
    y, x = plan.geometry.y, plan.geometry.x
    chunk = step.input
    sources: dict[tuple[Run, Run], list[int]] = {}
    strides = (max(1, y.stride // chunk.step), x.stride)  # of one row the step may be larger
    for row in range(step.chunk.taps[1]):
        rows = _inside(chunk.rows, step.tile.rows[1], strides[0], row * _jump(y, chunk.step))
        for column in range(x.kernel):
            cols = _inside(chunk.cols, step.tile.cols[1], strides[1], column * x.dilation)
            if rows is not None and cols is not None:
                first = chunk.base + distance + rows[1] * chunk.pitch + cols[1]
                sources.setdefault((rows[0], cols[0]), []).append(first)
    for (rows, cols), firsts in sources.items():
        yield from _raised(step, (rows, cols), firsts, strides, config)


def _jump(y: Axis, step: int) -> int:
    """Loaded rows between two kernel rows."""
    return y.dilation // step


def _inside(span: Span, outs: int, stride: int, offset: int) -> tuple[Run, int] | None:
    """The outputs whose input at `offset` is real, and where the first one's is; None if none."""
    start = span.skip + offset
    low = max(0, blocks_of(span.before - start, stride))
    high = min(outs - 1, (span.before + span.real - 1 - start) // stride)
    if low > high:
        return None
    return (low, high - low + 1), start + low * stride


def _raised(
    step: Step,
    where: tuple[Run, Run],
    firsts: list[int],
    strides: tuple[int, int],
    config: CoreConfig,
) -> Iterator[Call]:
    (row, rows), (col, cols) = where
    width, plane = step.tile.cols[1], step.tile.positions
    loops = [Loop(rows, width, strides[0] * step.input.pitch), Loop(cols, 1, strides[1])]
    insn = in_loops(Alu(alu_opcode=AluOp.MAX), loops)
    uops = [
        alu_uop(
            step.acc + block * plane + row * width + col, first + block * step.input.plane, config
        )
        for block in range(step.blocks)
        for first in firsts
    ]
    for begin, count in split(len(uops), config.layout.uop_depth):
        piece = tuple(uops[begin : begin + count])
        nothing = slice(0, 0)
        yield Call(insn, piece, 0, count, inp=nothing, wgt=nothing, acc=step.summed)
