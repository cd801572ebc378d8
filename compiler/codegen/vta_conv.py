"""A step of a convolution in the plain VTA profile: reset, products, ALU operations."""

from collections.abc import Iterator

from vitral.compiler.codegen.acc_loads import AccLoad, LoadBias, LoadTile
from vitral.compiler.codegen.calls import Call, Loop
from vitral.compiler.codegen.gemm import gemm_calls
from vitral.compiler.codegen.vta_alu import alu_call, alu_immediate, reset_call
from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.layer_plan import LayerPlan
from vitral.compiler.schedule.steps import Step
from vitral.compiler.schedule.vta_layer import AddBias, AddTensor, Immediate, VtaConv
from vitral.compiler.schedule.vta_plan import Room, room_of
from vitral.config import CoreConfig
from vitral.isa import AluOp

__all__ = ["vta_conv_calls"]


def vta_conv_calls(step: Step, plan: LayerPlan, config: CoreConfig) -> list[Call | AccLoad]:
    """What the compute queue does in a step, in order.

    Biases and the first tensor that is added are loaded at the start of the step, while products
    run. Sums do not start with an overwriting product, which this profile lacks.
    """
    layer, geometry = plan.layer, plan.geometry
    assert isinstance(layer, VtaConv)
    assert isinstance(geometry, Geometry)
    behind = _Behind(step, layer, room_of(layer, config), config)
    calls: list[Call | AccLoad] = []
    if step.store_blocks:
        calls += behind.early_loads()
    if step.first:
        calls.append(reset_call(step.summed))
    calls += gemm_calls(step._replace(first=False), geometry, config.layout.uop_depth)
    if step.store_blocks:
        calls += behind.calls()
    return calls


class _Behind:
    """What follows the products of the output channel blocks that a step completes."""

    def __init__(self, step: Step, layer: VtaConv, room: Room, config: CoreConfig) -> None:
        self._step = step
        self._layer = layer
        self._room = room
        self._config = config
        plane = step.tile.positions
        self._sums = slice(step.stored_acc, step.stored_acc + step.store_blocks * plane)

    def early_loads(self) -> Iterator[AccLoad]:
        if self._layer.bias is not None:
            yield LoadBias(self._step.stored, self._room.biases)
        if self._layer.added:
            yield self._load(1)

    def calls(self) -> Iterator[Call | AccLoad]:
        source = 0
        for post in self._layer.post:
            match post:
                case Immediate(op=op, imm=imm):
                    yield alu_immediate(op, imm, self._sums)
                case AddBias():
                    yield self._add_bias()
                case AddTensor(shift=shift):
                    source += 1
                    if source > 1:
                        yield self._load(source)
                    yield from self._add_tensor(shift)

    def _load(self, source: int) -> AccLoad:
        return LoadTile(source, self._step.tile, self._step.stored, self._other.start)

    @property
    def _other(self) -> slice:
        """The other operands of the sums."""
        return slice(self._sums.start + self._room.sums, self._sums.stop + self._room.sums)

    def _add_bias(self) -> Call:
        blocks, plane = self._step.store_blocks, self._step.tile.positions
        loops = [Loop(blocks, plane, 1), Loop(plane, 1, 0)]
        return alu_call(AluOp.ADD, self._sums, self._room.biases, loops, self._config)

    def _add_tensor(self, shift: int) -> Iterator[Call]:
        if shift:
            yield alu_immediate(AluOp.SHR, -shift, self._other)
        loops = [Loop(self._sums.stop - self._sums.start, 1, 1)]
        yield alu_call(AluOp.ADD, self._sums, self._other.start, loops, self._config)
