"""WINDOW instructions of a step: overwriting for the first operation of a sum, then combining.

The operations of one output (kernel row, group of columns, weight plane) run innermost, so that
the core keeps the sum in a register.
"""

from collections.abc import Iterator
from functools import lru_cache

from vitral.compiler.codegen.calls import Call, Loop, in_loops, position_loops
from vitral.compiler.schedule.geometry import split
from vitral.compiler.schedule.steps import Step
from vitral.compiler.schedule.tiling import Tiling
from vitral.compiler.schedule.window_tiling import window_distance
from vitral.compiler.schedule.windows import ADD_SHIFT, WindowGeometry, WindowKind
from vitral.isa import Alu, AluOp, Uop, Window, window_value

__all__ = ["window_calls"]

_NOTHING = slice(0, 0)


def window_calls(
    step: Step, geometry: WindowGeometry, tiling: Tiling, uop_depth: int
) -> list[Call]:
    """The instructions of a step, in order; `uop_depth` limits a sequence of micro-ops."""
    if geometry.kind is WindowKind.ADD:
        return _add(step, geometry, tiling)
    return _Windows(step, geometry, tiling, uop_depth).calls()


class _Windows:
    def __init__(
        self, step: Step, geometry: WindowGeometry, tiling: Tiling, uop_depth: int
    ) -> None:
        self._step = step
        self._geometry = geometry
        self._register = window_value(geometry.taps, window_distance(geometry, tiling))
        self._uop_depth = uop_depth

    def calls(self) -> list[Call]:
        step, geometry = self._step, self._geometry
        loops = position_loops(step, geometry.y, geometry.x)
        operations = _operations(
            step.chunk.taps[1],
            geometry.groups,
            geometry.planes,
            geometry.y.dilation // step.input.step * step.input.pitch,
            geometry.x.dilation,
        )
        first = operations[: int(step.first)]
        rest = operations[int(step.first) :]
        return [*self._pass(loops, first, overwrite=True), *self._pass(loops, rest)]

    def _pass(
        self, loops: list[Loop], operations: tuple[tuple[int, int], ...], *, overwrite: bool = False
    ) -> Iterator[Call]:
        """Some of the operations of every output; channel blocks are a loop if one is free."""
        weighted = self._geometry.row_weights > 0
        per_block = 0 if self._geometry.shared else self._step.weight.count // self._step.blocks
        stride = Loop(
            self._step.blocks, self._step.tile.positions, self._step.input.plane, per_block
        )
        looped = len(loops) < 2 and stride.count > 1
        blocks = 1 if looped else stride.count
        uops = [
            Uop(
                self._step.acc + block * stride.dst,
                self._step.input.first + block * stride.src + source,
                self._step.weight.base + (block * stride.wgt + number if weighted else 0),
            )
            for block in range(blocks)
            for source, number in operations
        ]
        nest = [stride, *loops] if looped else loops
        for begin, count in split(len(uops), self._uop_depth):
            yield self._call(nest, tuple(uops[begin : begin + count]), overwrite=overwrite)

    def _call(self, loops: list[Loop], uops: tuple[Uop, ...], *, overwrite: bool) -> Call:
        step = self._step
        maximum = self._geometry.kind is WindowKind.MAXIMUM
        insn = in_loops(Window(maximum=maximum, overwrite=overwrite), loops)
        return Call(
            insn,
            uops,
            0,
            len(uops),
            inp=step.input.elements(0, step.blocks),
            wgt=slice(step.weight.base, step.weight.base + step.weight.count),
            acc=step.summed,
            window=self._register,
        )


@lru_cache(maxsize=256)
def _operations(
    rows: int, groups: tuple[int, ...], planes: int, row: int, column: int
) -> tuple[tuple[int, int], ...]:
    """INP elements from the first to each operation's first tap, and its weight element."""
    sources = [
        number * row + first * column
        for number in range(rows)
        for first in groups
        for _ in range(planes)
    ]
    return tuple((source, number) for number, source in enumerate(sources))


def _add(step: Step, geometry: WindowGeometry, tiling: Tiling) -> list[Call]:
    """Both inputs' digits in one or two passes, with a shift of the sums between two."""
    assert step.other is not None
    register = window_value(2, window_distance(geometry, tiling))
    loops = [Loop(step.blocks * step.tile.positions, 1, 1)]
    inp = slice(step.input.base, step.other.elements(0, step.blocks).stop)
    calls = []
    for digit in range(geometry.planes):
        if digit:
            calls.append(_shift(step, loops))
        wgt = step.weight.base + digit
        calls.append(
            Call(
                in_loops(Window(overwrite=digit == 0), loops),
                (Uop(step.acc, step.input.base, wgt),),
                0,
                1,
                inp=inp,
                wgt=slice(wgt, wgt + 1),
                acc=step.summed,
                window=register,
            )
        )
    return calls


def _shift(step: Step, loops: list[Loop]) -> Call:
    (loop,) = loops
    insn = Alu(
        alu_opcode=AluOp.SHR,
        use_imm=True,
        imm=-ADD_SHIFT,
        iter_out=1,
        iter_in=loop.count,
        dst_factor_in=loop.dst,
    )
    uops = (Uop(step.acc),)  # without src and wgt, the forms of GEMM and ALU are the same
    return Call(insn, uops, 0, 1, inp=_NOTHING, wgt=_NOTHING, acc=step.summed)
