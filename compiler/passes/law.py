"""The arithmetic law of a quantized convolution, as functions of its record."""

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import Bounds, Conv2d
from vitral.runtime.cpu import OPERATORS

__all__ = [
    "binary_codes",
    "centred_weight",
    "code_bounds",
    "law_multiplier",
    "law_output",
    "product_range",
    "raw_bias",
]

Int64 = npt.NDArray[np.int64]


def centred_weight(op: Conv2d) -> npt.NDArray[np.int16]:
    """Weights minus their zero points, -255..255."""
    wide = np.int16 if op.weight.dtype.itemsize == 1 else np.int64
    zeros = op.weight_zero.astype(wide).reshape(-1, 1, 1, 1)
    return (op.weight.astype(wide) - zeros).astype(np.int16, copy=False)


def raw_bias(op: Conv2d, weight: npt.NDArray[np.int16]) -> Int64:
    """What turns sum(code · weight) into the exact accumulator: bias - xz · sum(weight).

    `weight` is `centred_weight(op)`.
    """
    return op.bias - op.x_quant.tensor_zero * weight.sum(axis=(1, 2, 3), dtype=np.int64)


def product_range(weight: npt.NDArray[np.int16]) -> tuple[Int64, Int64]:
    """Least and greatest sum(code · weight) of each output channel over all int8 codes."""
    flat = weight.reshape(weight.shape[0], -1)
    up = np.maximum(flat, 0).sum(axis=1, dtype=np.int64)
    down = np.minimum(flat, 0).sum(axis=1, dtype=np.int64)
    return -128 * up + 127 * down, 127 * up - 128 * down


def law_multiplier(op: Conv2d) -> npt.NDArray[np.float32]:
    """m[o] = fl32(fl32(xs · ws[o]) / ys)."""
    assert op.y_quant is not None
    with np.errstate(over="ignore", under="ignore"):
        return op.product_scale / np.float32(op.y_quant.tensor_scale)


def code_bounds(quant: Quant, bounds: Bounds) -> tuple[int, int]:
    """Lowest and highest code after all clamps, at the codes of their bounds.

    QuantizeLinear is monotone, so clamping codes equals quantizing the clamped real value.
    """
    low, high = quant.low, quant.high
    for bound in bounds:
        least, most = (int(code) for code in quant.code(np.array(bound, np.float32)))
        low, high = (min(max(edge, least), most) for edge in (low, high))
    return low, high


def binary_codes(
    function: str, a: Quant, b: Quant, y: Quant, bounds: Bounds = ()
) -> npt.NDArray[np.int8]:
    """`function` (add, sub, mul) of all 65,536 pairs of codes, op by op in IEEE float32.

    int8 (256, 256), codes in ascending order. ValueError where a pair gives no number.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        reals = OPERATORS[f"float.{function}"](a.real_table()[:, None], b.real_table()[None])
    low, high = code_bounds(y, bounds)
    return np.clip(y.code(reals), low, high).astype(np.int8)


def law_output(
    total: Int64, multiplier: npt.NDArray[np.float32], zero_point: int, low: int, high: int
) -> Int64:
    """clamp(rne(fl32(fl32(A) · m)) + zero_point, low, high) of exact accumulators `total`."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.rint(total.astype(np.float32) * multiplier)
    clamped = np.minimum(np.maximum(rounded, low - zero_point), high - zero_point)
    return clamped.astype(np.int64) + zero_point
