"""Exact integer products and the bias of a convolution or matrix product."""

from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.graph import Node
from oracle.rounding import rne_ratio, to_int32_range
from oracle.values import Accumulated, Array, Dequantized, Value, materialise

__all__ = ["accumulated", "bias_steps", "exact_matmul", "exact_type"]

_EXACT = ((1 << 24, np.float32), (1 << 53, np.float64))


def exact_type(a: Array, b: Array, terms: int) -> type[Any]:
    """Fastest type in which sums of `terms` integer products are exact in any order.

    No partial sum exceeds terms * max|a| * max|b|; floats hold all integers up to 2^24 or 2^53.
    """
    if a.size == 0 or b.size == 0:
        return np.int64
    largest = int(np.abs(a).max()) * int(np.abs(b).max()) * terms
    return next((dtype for limit, dtype in _EXACT if largest < limit), np.int64)


def exact_matmul(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """a @ b in exact integers."""
    dtype = exact_type(a, b, a.shape[-1])
    return (a.astype(dtype) @ b.astype(dtype)).astype(np.int64)


def bias_steps(
    node: Node, bias: Value, product_scale: npt.NDArray[np.float32], *, gain: float = 1.0
) -> npt.NDArray[np.int64]:
    """Bias in units of the accumulator; broadcasts with `product_scale` along its last axis.

    Raw int32 is in those units already. An int32 behind a DQ whose scale is fl32(xs * ws) is taken
    as it is; any other bias, also a float one, is rne(gain * bias / (xs * ws)) of exact rationals.
    """
    if isinstance(bias, np.ndarray) and bias.dtype == np.int32:
        return bias.astype(np.int64)
    if isinstance(bias, Dequantized):
        scale = bias.params.along(bias.data.ndim)[0]
        steps = bias.centred()
        if gain == 1.0 and _equal(scale, product_scale):
            return steps
        return _rescaled(steps, scale, product_scale, gain)
    values = materialise(bias)
    if values.dtype != np.float32:
        raise node.fail(f"needs an int32 or float32 bias, got {values.dtype}")
    return _rescaled(values, np.ones((), dtype=np.float32), product_scale, gain)


def accumulated(
    node: Node, total: npt.NDArray[np.int64], scale: npt.NDArray[np.float32]
) -> Accumulated:
    """Pack a sum after the check that it fits the int32 accumulator of the law."""
    outside = to_int32_range(total)
    if outside is not None:
        value = int(total[outside])
        raise node.fail(f"needs a sum that fits int32, got {value} at index {list(outside)}")
    return Accumulated(total=total, scale=scale)


def _equal(scale: npt.NDArray[np.float32], product_scale: npt.NDArray[np.float32]) -> bool:
    try:
        a, b = np.broadcast_arrays(scale, product_scale)
    except ValueError:
        return False
    return bool((a == b).all())


def _rescaled(
    values: Array,
    scale: npt.NDArray[np.float32],
    product_scale: npt.NDArray[np.float32],
    gain: float,
) -> npt.NDArray[np.int64]:
    """rne(gain * values * scale / product_scale), elementwise, in exact rationals."""
    sources = np.broadcast_arrays(values, scale, product_scale)
    gain_num, gain_den = float(gain).as_integer_ratio()
    result = np.empty(sources[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        v_num, v_den = float(sources[0][index]).as_integer_ratio()
        s_num, s_den = float(sources[1][index]).as_integer_ratio()
        p_num, p_den = float(sources[2][index]).as_integer_ratio()
        numerator = v_num * s_num * gain_num * p_den
        denominator = v_den * s_den * gain_den * p_num
        result[index] = rne_ratio(numerator, denominator)
    return result.astype(np.int64)
