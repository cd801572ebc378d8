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
    """

    def __init__(self, config: CoreConfig, *, sharing: int) -> None:
        self._config = config
        self._sharing = sharing
        self._rows = config.block // sharing
        own_columns = TAPS * sharing
        own, rest = BYTE * own_columns, BYTE * (config.block - own_columns)
        self._own = [
            [Signal(own, name=f"own_{b}_{o}", reset_less=True) for o in range(self._rows)]
            for b in range(config.batch)
        ]
        self._rest = [
            Signal(rest, name=f"rest_{b}", reset_less=True) if rest else Const(0, 0)
            for b in range(config.batch)
        ]
        self._right = [
            Signal(BYTE * config.block, name=f"wgt_{o}", reset_less=True)
            for o in range(config.block)
        ]

    def left(self, batch: int, row: int) -> Value:
        """Input lanes of an output, the first in the low bits."""
        return Cat(self._own[batch][row % self._rows], self._rest[batch])

    def right(self, row: int) -> Value:
        """Weight lanes of an output."""
        return self._right[row]

    def taps(self, batch: int, row: int) -> list[Value]:
        """What left(batch, row) holds of each tap while a window is loaded."""
        own = self._own[batch][row % self._rows]
        first = TAPS * (row // self._rows)
        return [_lane(own, first + tap) for tap in range(TAPS)]

    def load_tile(self, m: Module, inp: Value, wgt: Value) -> None:
        """Assigns the operands of a tile product, under the caller's condition."""
        row_bits = BYTE * self._config.block
        for b, rest in enumerate(self._rest):
            lanes = inp[b * row_bits :][:row_bits]
            m.d.sync += [own.eq(lanes[: len(own)]) for own in self._own[b]]
            if len(rest):
                m.d.sync += rest.eq(lanes[row_bits - len(rest) :])
        m.d.sync += [row.eq(wgt[o * row_bits :][:row_bits]) for o, row in enumerate(self._right)]

    def load_window(self, m: Module, taps: list[Value], wgt: Value) -> None:
        """Assigns the operands of a window, likewise. A missing tap's lanes do not matter to the
        caller, or are 0."""
        block = self._config.block
        for b, rest in enumerate(self._rest):
            if len(rest):
                m.d.sync += rest.eq(0)
            for row, own in enumerate(self._own[b]):
                outputs = range(row, block, self._rows)
                m.d.sync += own.eq(Cat(_lane(tap, b * block + o) for o in outputs for tap in taps))
        for o, right in enumerate(self._right):
            before = BYTE * TAPS * (o // self._rows)
            lanes = Cat(_lane(wgt, tap * block + o) for tap in range(TAPS))
            m.d.sync += right.eq(Cat(Const(0, before), lanes))


def _lane(word: Value, number: int) -> Value:
    return word[BYTE * number :][:BYTE]
