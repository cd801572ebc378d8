"""Which elements a GEMM, WINDOW or ALU instruction touches, from its loops and micro-ops."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from vitral.isa import Alu, Format, Gemm, InstructionSet, Window

__all__ = ["Footprint", "IndexOverflow", "LoopWalker", "Taps", "Where"]

Indices = npt.NDArray[np.int64]
Where = slice | Indices
"""Elements of an on-chip memory: a range, or their sorted numbers."""

Taps = tuple[int, int]
"""How many INP elements each iteration of a WINDOW reads, and how far apart they are."""

_AT_ONCE = 1 << 20


class Footprint(dict[str, Where]):
    """Elements by micro-op field: `dst`, and `src` and `wgt` where they are looked at."""


class IndexOverflow(Exception):
    """An index is past its memory; the text says which."""


class LoopWalker:
    """Computes footprints; equal loops over equal micro-ops are computed once.

    Parameters
    ----------
    isa : InstructionSet
        The formats of micro-ops.
    """

    def __init__(self, isa: InstructionSet) -> None:
        layout = isa.config.layout
        self._formats = {Gemm: isa.gemm_uop, Window: isa.gemm_uop, Alu: isa.alu_uop}
        products = {"dst": layout.acc_depth, "src": layout.inp_depth, "wgt": layout.wgt_depth}
        self._depths = {
            Gemm: products,
            Window: products,
            Alu: {"dst": layout.acc_depth, "src": layout.acc_depth},
        }
        self._seen: dict[tuple[object, ...], Footprint] = {}

    def footprint(
        self, insn: Gemm | Window | Alu, words: npt.NDArray[np.uint32], taps: Taps = (1, 1)
    ) -> Footprint:
        """Elements that the instruction touches with the micro-ops `words`, and a WINDOW's taps.

        Raises
        ------
        IndexOverflow
            When one is past its memory.
        """
        taps = taps if isinstance(insn, Window) else (1, 1)
        key = (type(insn), _loops(insn), tuple(_wanted(insn)), taps, words.tobytes())
        if key not in self._seen:
            self._seen[key] = Footprint(self._fields(insn, words, taps))
        return self._seen[key]

    def _fields(
        self, insn: Gemm | Window | Alu, words: npt.NDArray[np.uint32], taps: Taps
    ) -> Iterator[tuple[str, Where]]:
        fmt, depths = self._formats[type(insn)], self._depths[type(insn)]
        for name in _wanted(insn):
            values = np.unique(_extract(words, fmt, name))
            steps = (
                (insn.iter_out, getattr(insn, f"{name}_factor_out")),
                (insn.iter_in, getattr(insn, f"{name}_factor_in")),
                *([taps] if name == "src" else []),
            )
            last = int(values[-1]) + sum((count - 1) * factor for count, factor in steps)
            if last >= depths[name]:
                raise IndexOverflow(f"{name} reaches element {last}, the memory has {depths[name]}")
            yield name, _sums(values, steps, depths[name])


def _wanted(insn: Gemm | Window | Alu) -> list[str]:
    if isinstance(insn, Alu):
        return ["dst"] if insn.use_imm else ["dst", "src"]
    if isinstance(insn, Window):
        return ["dst", "src"] if insn.maximum else ["dst", "src", "wgt"]
    return ["dst"] if insn.reset else ["dst", "src", "wgt"]


def _loops(insn: Gemm | Window | Alu) -> tuple[int, ...]:
    names = ["iter_out", "iter_in"]
    for field in ("dst", "src", "wgt"):
        names += [f"{field}_factor_out", f"{field}_factor_in"]
    return tuple(getattr(insn, name, 0) for name in names)


def _extract(words: npt.NDArray[np.uint32], fmt: Format, name: str) -> Indices:
    field = fmt[name]
    return (words.astype(np.int64) & field.mask) >> field.low


def _sums(values: Indices, steps: tuple[tuple[int, int], ...], depth: int) -> Where:
    """All of value + i * factor + j * factor ..., i, j ... below their counts."""
    for count, factor in steps:
        if factor and count > 1:
            values = _marked(values, np.arange(count) * factor, depth)
    first, last = int(values[0]), int(values[-1])
    return slice(first, last + 1) if last - first + 1 == values.size else values


def _marked(values: Indices, offsets: Indices, depth: int) -> Indices:
    """Sorted numbers of all sums; they are below `depth`."""
    mask = np.zeros(depth, bool)
    few, many = sorted((values, offsets), key=len)
    rows = max(1, _AT_ONCE // many.size)
    for start in range(0, few.size, rows):
        mask[(few[start : start + rows, None] + many).ravel()] = True
    return np.flatnonzero(mask)
