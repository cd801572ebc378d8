"""Instructions of the compute stage before their micro-ops have a place: `Call`, and its loops."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from vitral.compiler.codegen.changed import changed
from vitral.compiler.schedule.geometry import Axis
from vitral.compiler.schedule.steps import Step
from vitral.compiler.schedule.tiling import ITER_MAX
from vitral.isa import Alu, Gemm, Uop, Window

__all__ = ["Call", "Loop", "in_loops", "position_loops"]

Insn = TypeVar("Insn", Gemm, Window, Alu)


class Call(NamedTuple):
    """An instruction whose micro-ops are ``uops[begin:end]`` of a sequence.

    `insn` lacks its micro-op range. `inp`, `wgt` and `acc` are the elements it may touch, `window`
    the value that ConfigRegister.WINDOW must have.
    """

    insn: Gemm | Window | Alu
    uops: tuple[Uop, ...]
    begin: int
    end: int
    inp: slice
    wgt: slice
    acc: slice
    window: int | None = None

    def with_uops(self, base: int) -> Gemm | Window | Alu:
        """The instruction when the sequence lies at `base` of the UOP memory."""
        return changed(self.insn, uop_bgn=base + self.begin, uop_end=base + self.end)


class Loop(NamedTuple):
    """A loop of an instruction: its count, and what each turn adds to the indices."""

    count: int
    dst: int = 0
    src: int = 0
    wgt: int = 0


def position_loops(step: Step, y: Axis, x: Axis) -> list[Loop]:
    """Loops over the outputs of a tile, outermost first; one when rows continue each other."""
    rows, cols = step.tile.rows[1], step.tile.cols[1]
    outer = Loop(rows, cols, y.stride // step.input.step * step.input.pitch)
    inner = Loop(cols, 1, x.stride)
    if rows > 1 and cols > 1:
        if outer.src == cols * inner.src and rows * cols <= ITER_MAX:
            return [Loop(rows * cols, 1, inner.src)]
        return [outer, inner]
    return [loop for loop in (outer, inner) if loop.count > 1]


def in_loops(insn: Insn, loops: Sequence[Loop]) -> Insn:
    """The instruction with at most two loops, outermost first; an ALU's have no weights."""
    outer, inner = [Loop(1), Loop(1), *loops][-2:]
    weights = (
        {} if isinstance(insn, Alu) else {"wgt_factor_out": outer.wgt, "wgt_factor_in": inner.wgt}
    )
    return changed(
        insn,
        iter_out=outer.count,
        iter_in=inner.count,
        dst_factor_out=outer.dst,
        dst_factor_in=inner.dst,
        src_factor_out=outer.src,
        src_factor_in=inner.src,
        **weights,
    )
