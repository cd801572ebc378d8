"""HARD_SWISH as TFLite computes it, in 16-bit fixed point."""

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.tflite.fixed_point import quantize_multiplier
from vitral.compiler.ir import Quant

__all__ = ["hard_swish_codes"]

Int64 = npt.NDArray[np.int64]

_INT16 = np.iinfo(np.int16)
_LEFT_SHIFT = 7
"""Codes less their zero point have 9 bits, so this much fits 16 bits."""
_HALF_RANGE = 3.0


def hard_swish_codes(x: Quant, y: Quant) -> Int64:
    """Codes of x * min(max(x + 3, 0), 6) / 6 for all 256 codes of x, before the clamp to int8.

    ValueError for scales that the kernel has no room for.
    """
    hires = np.float32(1 / (1 << _LEFT_SHIFT)) * x.scales
    output_mult, output_exponent = _multiplier(float(hires / y.scales))
    relu_mult, relu_exponent = _multiplier(float(hires / np.float32(_HALF_RANGE / 32768)))
    if output_exponent > 0:
        raise ValueError(f"an output scale of at least {float(hires):g}, got {y.tensor_scale:g}")
    wide = _wrapped((x.codes().astype(np.int64) - x.tensor_zero) << _LEFT_SHIFT)
    scaled = _high_product(wide, output_mult)
    gate = _gate(wide, relu_mult, relu_exponent)
    product = _truncated(gate * scaled, 15)
    return _divided(product, -output_exponent) + y.tensor_zero


def _gate(wide: Int64, mult: int, exponent: int) -> Int64:
    """(x + 3) / 6 clamped to 0..1, in units of 2**-15."""
    value = wide
    if exponent > 0:
        value = _saturated(value << (exponent - 1))
    value = _high_product(value, mult)
    if exponent > 0:
        value = _saturated(value << 1)
    elif exponent < 0:
        value = _divided(value, -exponent)
    return (value + (1 << 15)) >> 1


def _multiplier(real: float) -> tuple[int, int]:
    """A 15-bit fraction and its exponent."""
    mult, shift = (int(v) for v in quantize_multiplier(real))
    return min((mult + (1 << 15)) >> 16, _INT16.max), 31 - shift


def _high_product(a: Int64, b: int) -> Int64:
    """a * b / 2**15, ties up."""
    return _saturated((a * b + (1 << 14)) >> 15)


def _truncated(value: Int64, bits: int) -> Int64:
    """value / 2**bits towards 0."""
    return np.sign(value) * (np.abs(value) >> bits)


def _divided(value: Int64, bits: int) -> Int64:
    """value / 2**bits, ties away from 0."""
    return np.sign(value) * ((np.abs(value) + ((1 << bits) >> 1)) >> bits)


def _saturated(value: Int64) -> Int64:
    return np.clip(value, _INT16.min, _INT16.max)


def _wrapped(value: Int64) -> Int64:
    return value.astype(np.int16).astype(np.int64)
