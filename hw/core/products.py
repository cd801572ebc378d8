"""The two bodies of a multiplier lane: sums of products of int8 lanes, with equal results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from amaranth.hdl import Const, Value, signed

__all__ = ["BODIES", "Body", "packed_products"]

LANE = 32
BYTE = 8
PRODUCT = 16


@dataclass(frozen=True)
class Body:
    """How dot products with the same left operand are made, `sharing` of them together.

    `dots(left, rights)` gives ``sum over i of left[i] * right[i]`` for each of `sharing` rights;
    all operands are words of int8 lanes, the sums int32.
    """

    sharing: int
    dots: Callable[[Value, Sequence[Value]], list[Value]]


def _plain(left: Value, rights: Sequence[Value]) -> list[Value]:
    """A multiplier per product."""
    (right,) = rights
    total: Value = Const(0, signed(LANE))
    for x, y in zip(_lanes(left), _lanes(right), strict=True):
        total = (total + _extended(x) * _extended(y))[:LANE].as_signed()
    return [total]


def _extended(byte: Value) -> Value:
    # int8 as 16 bits, so that products and sums have the 32 bits that simulators calculate with.
    # Amaranth writes a sum with 0 as an addition, which synthesis drops, but a mere extension
    # as eight copies of the sign bit, which Verilator puts together one by one.
    return (byte + Const(0, signed(15)))[:16].as_signed()


def _packed16(left: Value, rights: Sequence[Value]) -> list[Value]:
    """A 25 x 8 bit multiplier, such as DSP48E1 has, per two products."""
    columns = zip(_lanes(left), *map(_lanes, rights), strict=True)
    pairs = [packed_products(x, first, second) for x, first, second in columns]
    return [_sum([pair[n] for pair in pairs]) for n in range(len(rights))]


def packed_products(x: Value, first: Value, second: Value) -> tuple[Value, Value]:
    """``x * first`` and ``x * second``, int8 each, of one product.

    ``(second * 2**16 + first) * x`` has x * first, which fits 16 bits, in its low half; the upper
    one is x * second, or 1 less when x * first is negative and borrows.
    """
    product = ((second << PRODUCT) + first) * x
    low, high = product[:PRODUCT].as_signed(), product[PRODUCT:].as_signed()
    return low, (high + low[-1])[:PRODUCT].as_signed()


def _sum(terms: list[Value]) -> Value:
    """As a balanced tree."""
    while len(terms) > 1:
        terms = [x + y for x, y in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


def _lanes(word: Value) -> list[Value]:
    return [word[n:][:BYTE].as_signed() for n in range(0, len(word), BYTE)]


BODIES = {"plain": Body(1, _plain), "packed16": Body(2, _packed16)}
"""By the names of `CoreConfig.mac_body`."""
