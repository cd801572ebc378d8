"""What follows the products of a layer, in ALU operations: `Clamp`, `Shift`, `AddConstant` and
`AddTensor` in any order become few operations with 16-bit immediates and one bias.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.compiler.schedule.vta_layer import AddBias, AddTensor, Immediate, Post
from vitral.isa import AluOp

__all__ = ["AddConstant", "Clamp", "Interval", "Operation", "Shift", "vta_posts"]

_LOW, _HIGH = -(1 << 31), (1 << 31) - 1
_IMMEDIATE = range(-(1 << 15), 1 << 15)

Interval = tuple[int, int]
"""Least and largest value, both inclusive."""


@dataclass(frozen=True)
class Clamp:
    """min(max(acc, low), high); None where open."""

    low: int | None
    high: int | None


@dataclass(frozen=True)
class Shift:
    """acc >> amount, rounding down; acc << -amount below 0."""

    amount: int


@dataclass(frozen=True, eq=False)
class AddConstant:
    """acc += values, int32 of shape () or (O,)."""

    values: npt.NDArray[np.int32]


Operation = Clamp | Shift | AddConstant | AddTensor


def vta_posts(
    operations: Sequence[Operation], values: Interval, channels: int
) -> tuple[Post, ...] | None:
    """The same function in the ALU's operations; None when it needs immediates that do not fit.

    Clamps move behind constants and shifts as long as nothing wraps around, so that they are few
    and small; constants join, also across added tensors, as additions wrap around alike in any
    order. `values` are the sums that products can give.
    """
    writer = _Writer(values)
    for operation in operations:
        writer.take(operation)
    writer.flush()
    return _encoded(writer.written, channels)


class _Writer:
    """Operations so far, with a clamp that is still to come behind them.

    `_values` hold what the accumulator can be before that clamp.
    """

    def __init__(self, values: Interval) -> None:
        self.written: list[Operation] = []
        self._values = values
        self._pending = Clamp(None, None)

    def take(self, operation: Operation) -> None:
        match operation:
            case Clamp():
                self._pending = _composed(self._pending, operation)
            case Shift(amount=amount):
                if amount < 0 and not _fits(_shifted(self._values, amount)):
                    self.flush()
                self._pending = _moved(self._pending, lambda bound: _shift(bound, amount))
                self._write(operation, _shifted(self._values, amount))
            case AddConstant(values=values) if values.ndim == 0:
                summand = int(values)
                changed = self._values[0] + summand, self._values[1] + summand
                if not _fits(changed):
                    self.flush()
                    changed = self._values[0] + summand, self._values[1] + summand
                self._pending = _moved(self._pending, lambda bound: bound + summand)
                self._write(operation, changed)
            case AddConstant(values=values):
                self.flush()
                least, most = int(values.min()), int(values.max())
                self._write(operation, (self._values[0] + least, self._values[1] + most))
            case AddTensor(shift=shift):
                self.flush()
                least, most = -128 << shift, 127 << shift
                self._write(operation, (self._values[0] + least, self._values[1] + most))

    def _write(self, operation: Operation, values: Interval) -> None:
        self._values = values if _fits(values) else (_LOW, _HIGH)
        before = len(self.written)
        while before and isinstance(self.written[before - 1], AddTensor):
            before -= 1
        last = self.written[before - 1] if before else None
        if isinstance(operation, AddConstant) and isinstance(last, AddConstant):
            with np.errstate(over="ignore"):
                self.written[before - 1] = AddConstant(np.add(last.values, operation.values))
        else:
            self.written.append(operation)

    def flush(self) -> None:
        """Write the clamp, as far as it does anything."""
        low, high = self._values
        if self._pending.low is not None and self._pending.low > low:
            low, high = self._pending.low, max(high, self._pending.low)
            self.written.append(Clamp(low, None))
        if self._pending.high is not None and self._pending.high < high:
            low, high = min(low, self._pending.high), self._pending.high
            self.written.append(Clamp(None, high))
        self._values = low, high
        self._pending = Clamp(None, None)


def _fits(values: Interval) -> bool:
    return values[0] >= _LOW and values[1] <= _HIGH


def _shift(value: int, amount: int) -> int:
    return value >> amount if amount >= 0 else value << -amount


def _shifted(values: Interval, amount: int) -> Interval:
    return _shift(values[0], amount), _shift(values[1], amount)


def _moved(clamp: Clamp, change: Callable[[int], int]) -> Clamp:
    return Clamp(
        None if clamp.low is None else change(clamp.low),
        None if clamp.high is None else change(clamp.high),
    )


def _composed(first: Clamp, second: Clamp) -> Clamp:
    """One clamp that does what both do one after the other."""
    low, high = first.low, first.high
    if second.low is not None:
        low = second.low if low is None else max(low, second.low)
        high = None if high is None else max(high, second.low)
    if second.high is not None:
        low = None if low is None else min(low, second.high)
        high = second.high if high is None else min(high, second.high)
    return Clamp(low, high)


def _encoded(operations: Sequence[Operation], channels: int) -> tuple[Post, ...] | None:
    posts: list[Post] = []
    for operation in operations:
        match operation:
            case AddTensor():
                posts.append(operation)
            case AddConstant(values=values):
                posts += _added(values, channels)
            case Shift(amount=amount):
                posts += [Immediate(AluOp.SHR, amount)] if amount else []
            case Clamp(low=low, high=high):
                posts += [Immediate(AluOp.MAX, low)] if low is not None else []
                posts += [Immediate(AluOp.MIN, high)] if high is not None else []
    biases = sum(isinstance(post, AddBias) for post in posts)
    small = all(post.imm in _IMMEDIATE for post in posts if isinstance(post, Immediate))
    return tuple(posts) if small and biases <= 1 else None


def _added(values: npt.NDArray[np.int32], channels: int) -> list[Post]:
    if not values.any():
        return []
    if values.ndim == 0 and int(values) in _IMMEDIATE:
        return [Immediate(AluOp.ADD, int(values))]
    return [AddBias(np.broadcast_to(values, (channels,)).astype(np.int32))]
