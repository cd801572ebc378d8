"""Operand registers of the multiplier array, which make a window look like a tile product."""

from amaranth.hdl import Cat, Const, Module, Signal, Value

from vitral.config import CoreConfig
from vitral.isa import WINDOW_FIELDS

__all__ = ["TAPS", "Operands"]

TAPS = 1 << WINDOW_FIELDS["extra_taps"].width
"""Taps of a window at most: input elements that are read at once."""

BYTE = 8


class Operands:
    """Registers from which ``dot[b][o] = sum over i of left(b, o)[i] * right(o)[i]``.

    For a tile product, left(b, o) is the input lanes of batch b and right(o) row o of the weight
    element. For a window, whose result is ``sum over t of tap[t][b][o] * wgt[t][o]``, the taps take
    the first columns of left(b, o), their weights those of right(o), and the rest is zero.

    With `sharing`, rows o, o + block / sharing, ... have the same left operands, so that one
    multiplier can serve them: group g of the rows uses columns ``TAPS * g`` to
    ``TAPS * (g + 1) - 1`` for its window. `block` is at least ``TAPS * sharing``.

    Columns beyond those of windows are alike in all rows; synthesis merges their registers.
    """

    def __init__(self, config: CoreConfig, *, sharing: int) -> None:
        self._block = config.block
        self._rows = config.block // sharing
        row_bits = BYTE * config.block
        self._left = [
            [Signal(row_bits, name=f"left_{b}_{o}", reset_less=True) for o in range(self._rows)]
            for b in range(config.batch)
        ]
        self._right = [
            Signal(row_bits, name=f"right_{o}", reset_less=True) for o in range(config.block)
        ]

    def left(self, batch: int, row: int) -> Value:
        """Input lanes of an output, the first in the low bits."""
        return self._left[batch][row % self._rows]

    def right(self, row: int) -> Value:
        """Weight lanes of an output."""
        return self._right[row]

    def taps(self, batch: int, row: int) -> list[Value]:
        """What left(batch, row) holds of each tap while a window is loaded."""
        first = TAPS * (row // self._rows)
        return [_lane(self.left(batch, row), first + tap) for tap in range(TAPS)]

    def load_tile(self, m: Module, inp: Value, wgt: Value) -> None:
        """Assigns the operands of a tile product, under the caller's condition."""
        row_bits = BYTE * self._block
        for b, rows in enumerate(self._left):
            m.d.sync += [left.eq(inp[b * row_bits :][:row_bits]) for left in rows]
        m.d.sync += [row.eq(wgt[o * row_bits :][:row_bits]) for o, row in enumerate(self._right)]

    def load_window(self, m: Module, taps: list[Value], wgt: Value) -> None:
        """Assigns the operands of a window, likewise; a tap that is not there is one of zeros."""
        for b, rows in enumerate(self._left):
            for row, left in enumerate(rows):
                outputs = range(b * self._block + row, (b + 1) * self._block, self._rows)
                m.d.sync += left.eq(Cat(_lane(tap, o) for o in outputs for tap in taps))
        for o, right in enumerate(self._right):
            before = Const(0, BYTE * TAPS * (o // self._rows))
            lanes = (_lane(wgt, tap * self._block + o) for tap in range(TAPS))
            m.d.sync += right.eq(Cat(before, *lanes))


def _lane(word: Value, number: int) -> Value:
    return word[BYTE * number :][:BYTE]
