"""GEMM instructions of a step: overwriting for the first tap, accumulating for the others.

The taps (input block, kernel row, kernel column, weight plane) of one output run innermost, so
that the core keeps the sum in a register. Taps at equal distances become a loop of the
instruction; others are micro-ops.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from vitral.compiler.codegen.calls import Call, Loop, in_loops, position_loops
from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.steps import Step
from vitral.compiler.schedule.tiling import ITER_MAX
from vitral.isa import Gemm, Uop

__all__ = ["gemm_calls"]

Taps = tuple[tuple[int, int], ...]
"""Distance of each tap from the first in INP and WGT elements."""


def gemm_calls(step: Step, geometry: Geometry, uop_depth: int) -> list[Call]:
    """The instructions of a step, in order; `uop_depth` limits a sequence of micro-ops."""
    taps = _taps(step, geometry)
    loops = position_loops(step, geometry.y, geometry.x)
    calls = []
    for begin, end in _ranges(step, len(taps)):
        inner = _arithmetic(taps[begin:end]) if len(loops) < 2 else None
        if inner is not None:
            calls.append(_looped(step, taps, loops, (begin, end), inner))
        else:
            calls.extend(_unrolled(step, taps, loops, (begin, end), uop_depth))
    return calls


def _taps(step: Step, geometry: Geometry) -> Taps:
    row = geometry.y.dilation // step.input.step * step.input.pitch
    kernel = (step.chunk.taps[1], geometry.x.kernel, geometry.planes)
    return _tap_offsets(step.chunk.ins[1], kernel, (step.input.plane, row, geometry.x.dilation))


@lru_cache(maxsize=256)
def _tap_offsets(blocks: int, kernel: tuple[int, int, int], strides: tuple[int, int, int]) -> Taps:
    sources = [
        block * strides[0] + row * strides[1] + col * strides[2]
        for block in range(blocks)
        for row in range(kernel[0])
        for col in range(kernel[1])
        for _ in range(kernel[2])
    ]
    return tuple((source, number) for number, source in enumerate(sources))


def _ranges(step: Step, taps: int) -> Iterator[tuple[int, int]]:
    """Tap ranges of one instruction each: the overwriting one, and one per piece of operands."""
    cuts = {0, taps} | ({1} if step.first else set())
    if step.cold:
        per_block = taps // step.chunk.ins[1]
        cuts |= set(range(0, taps, per_block))
    ordered = sorted(cuts)
    return pairwise(ordered)


def _arithmetic(taps: Taps) -> Loop | None:
    """The loop that runs through the taps, when their distances are equal."""
    if len(taps) > ITER_MAX:
        return None
    if len(taps) == 1:
        return Loop(1)
    source, weight = (taps[1][n] - taps[0][n] for n in (0, 1))
    for number, (src, wgt) in enumerate(taps):
        if src - taps[0][0] != number * source or wgt - taps[0][1] != number * weight:
            return None
    return Loop(len(taps), 0, source, weight)


def _looped(
    step: Step, taps: Taps, loops: list[Loop], bounds: tuple[int, int], inner: Loop
) -> Call:
    nest = [*loops, inner] if inner.count > 1 else loops
    uop = _uops(step, taps[bounds[0] : bounds[0] + 1])
    return _call(step, len(taps), nest, bounds, (uop, 0, 1))


def _unrolled(
    step: Step, taps: Taps, loops: list[Loop], bounds: tuple[int, int], limit: int
) -> Iterator[Call]:
    """Slices of the sequence of all taps, which instructions of all shapes share."""
    for first in range(0, len(taps), limit):
        piece = taps[first : first + limit]
        begin, end = max(bounds[0], first), min(bounds[1], first + len(piece))
        if begin < end:
            sequence = (_uops(step, piece), begin - first, end - first)
            yield _call(step, len(taps), loops, (begin, end), sequence)


def _uops(step: Step, taps: Taps) -> tuple[Uop, ...]:
    return _placed(taps, step.acc, step.input.first, step.weight.base)


@lru_cache(maxsize=4096)
def _placed(taps: Taps, dst: int, src: int, wgt: int) -> tuple[Uop, ...]:
    return tuple(Uop(dst, src + source, wgt + weight) for source, weight in taps)


def _call(
    step: Step,
    taps: int,
    loops: list[Loop],
    bounds: tuple[int, int],
    sequence: tuple[tuple[Uop, ...], int, int],
) -> Call:
    per_block = taps // step.chunk.ins[1]
    blocks = bounds[0] // per_block, -(-bounds[1] // per_block)
    insn = in_loops(Gemm(overwrite=step.first and bounds[0] == 0), loops)
    return Call(
        insn,
        *sequence,
        inp=step.input.elements(blocks[0], blocks[1] - blocks[0]),
        wgt=slice(step.weight.base + bounds[0], step.weight.base + bounds[1]),
        acc=slice(step.acc, step.acc + step.tile.positions),
    )
