"""Softmax of int8 codes as TFLite's kernels compute it, over the last axis."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS", "high_product", "shift_left", "shift_right"]

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]

_ONE = (1 << 31) - 1
_48_OVER_17 = 1515870810
_32_OVER_17 = 1010580540
"""Newton's first guess for a reciprocal, in units of 2**-29."""
_SUM_BITS = 12
"""Sums of exponentials have 12 bits before the point."""
_CODE_BITS = 8
_INT32 = np.iinfo(np.int32)


def high_product(a: Int64, b: Int64 | int) -> Int64:
    """a * b / 2**31 of int32 values, ties up, saturated."""
    return np.minimum((a * b + (1 << 30)) >> 31, _INT32.max)


def shift_right(value: Int64, bits: Int64 | int) -> Int64:
    """value / 2**bits, ties away from 0."""
    half = (np.int64(1) << np.asarray(bits, np.int64)) >> 1
    return np.sign(value) * ((np.abs(value) + half) >> bits)


def shift_left(value: Int64, bits: int) -> Int64:
    """value * 2**bits, saturated to int32."""
    return np.clip(value << bits, _INT32.min, _INT32.max)


def _softmax_fixed(x: Array, powers: Array) -> npt.NDArray[np.int8]:
    """In fixed point; `powers` int64 (256,) are exp(-scale · d) in units of 2**-31 for d = 0..255.

    The result has scale 1/256 and zero point -128.
    """
    exact = powers[x.max(axis=-1, keepdims=True).astype(np.int64) - x]
    total = shift_right(exact, _SUM_BITS).sum(axis=-1, keepdims=True)
    reciprocal, bits = _reciprocal(total)
    share = shift_right(high_product(exact, reciprocal), bits + 31 - _CODE_BITS)
    return np.clip(share - 128, -128, 127).astype(np.int8)


def _reciprocal(total: Int64) -> tuple[Int64, Int64]:
    """(r, bits): 2**31 / total = r · 2**-bits, with r in units of 2**-31 and total in 2**-19."""
    length = np.frexp(total.astype(np.float64))[1].astype(np.int64)
    fraction = (total << (32 - length)) - (np.int64(1) << 31)
    half = (fraction + _ONE + 1) >> 1
    guess = _48_OVER_17 + high_product(half, -_32_OVER_17)
    for _ in range(3):
        rest = (1 << 29) - high_product(half, guess)
        guess = guess + shift_left(high_product(guess, rest), 2)
    return shift_left(guess, 1), _SUM_BITS - (32 - length)


def _softmax_table(x: Array, powers: Array) -> npt.NDArray[np.int8]:
    """In float32, summed in order; `powers` float32 (256,) are exp(-scale · d) for d = 0..255.

    The result has scale 1/256 and zero point -128.
    """
    exact = powers[x.max(axis=-1, keepdims=True).astype(np.int64) - x]
    total = np.add.accumulate(exact, axis=-1)[..., -1:]
    share = exact * (np.float32(1) / (total * np.float32(1 / 256)))
    return np.clip(np.floor(share + np.float32(0.5)) - 128, -128, 127).astype(np.int8)


OPERATORS = {"softmax_fixed": _softmax_fixed, "softmax_table": _softmax_table}
"""softmax_fixed(x, powers) and softmax_table(x, powers)."""
