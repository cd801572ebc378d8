"""Native requantisation of one lane; `vitral.arithmetic.requantize` is the definition."""

from collections.abc import Callable

from vitral.isa import PARAM_FIELDS, Rounding
from vitral.sim.functional.decode import field_of
from vitral.sim.functional.emit import Ptr, Value

__all__ = ["Lane", "requantized"]

FLOAT_BITS = 24
DOUBLE_FIRST_SHIFT = 31
VANISHING_SHIFT = 64
"""Products are below 2**63: such a shift leaves less than one half of them."""


class Lane:
    """The parameters of one output channel, as int64 values."""

    def __init__(self, words: Ptr) -> None:
        low, high = words[0], words[1]
        fields = {field.name: field_of(low, high, field) for field in PARAM_FIELDS}
        self.bias = fields["bias"]
        self.mult = fields["mult"]
        self.shift = fields["shift"]
        self.zero_point = fields["zero_point"]
        self.low = fields["low"]
        self.high = fields["high"]


def requantized(value: Value, lane: Lane, mode: Rounding) -> Value:
    """The clamped result, int64, of an accumulator lane, int64."""
    total = value + lane.bias
    rounded = _ROUND[mode](total, lane.mult, lane.shift) + lane.zero_point
    return rounded.max(lane.low).min(lane.high)


def _split(magnitude: Value, shift: Value) -> tuple[Value, Value, Value]:
    """Integer part, remainder, and one half in units of the remainder."""
    vanishes = shift >= VANISHING_SHIFT
    amount = shift.min(VANISHING_SHIFT - 1)
    one = shift.code.number(1)
    whole = vanishes.where(shift.code.number(0), magnitude >> amount)
    rest = vanishes.where(shift.code.number(0), magnitude & ((one << amount) - 1))
    half = (amount > 0).where(one << (amount - 1).max(0), 1)
    return whole, rest, half


def _signed(like: Value, magnitude: Value) -> Value:
    return (like < 0).where(-magnitude, magnitude)


def _half_even(value: Value, shift: Value) -> Value:
    whole, rest, half = _split(value.abs(), shift)
    up = (rest > half) | (rest.eq(half) & (whole & 1).ne(0))
    return _signed(value, whole + up.zext(whole.type))


def _half_up(value: Value, shift: Value) -> Value:
    whole, rest, half = _split(value.abs(), shift)
    up = (rest > half) | (rest.eq(half) & (value > 0))
    return _signed(value, whole + up.zext(whole.type))


def _half_away(value: Value, shift: Value) -> Value:
    whole, rest, half = _split(value.abs(), shift)
    return _signed(value, whole + (rest >= half).zext(whole.type))


def _even_product(total: Value, mult: Value, shift: Value) -> Value:
    return _half_even(total * mult, shift)


def _up_product(total: Value, mult: Value, shift: Value) -> Value:
    return _half_up(total * mult, shift)


def _double_product(total: Value, mult: Value, shift: Value) -> Value:
    first = shift.min(DOUBLE_FIRST_SHIFT)
    return _half_away(_half_up(total * mult, first), shift - first)


def _float_product(total: Value, mult: Value, shift: Value) -> Value:
    magnitude = total.abs()
    excess = (magnitude.bit_length() - FLOAT_BITS).max(0)
    whole, rest, half = _split((_half_even(magnitude, excess) << excess) * mult, shift)
    exponent = whole.bit_length() - 1
    scale = shift.min(VANISHING_SHIFT - 1) + exponent - FLOAT_BITS
    one = shift.code.number(1)
    tolerance = (scale >= 0).where(one << scale.max(0).min(62), 0)
    tie = ((rest - half).abs() <= tolerance) & (shift > 0)
    up = tie.where((whole & 1).ne(0), rest > half)
    return _signed(total, whole + up.zext(whole.type))


_ROUND: dict[Rounding, Callable[[Value, Value, Value], Value]] = {
    Rounding.HALF_EVEN: _even_product,
    Rounding.HALF_UP: _up_product,
    Rounding.DOUBLE: _double_product,
    Rounding.FLOAT32: _float_product,
}
