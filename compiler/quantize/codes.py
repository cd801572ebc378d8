"""Scales, zero points and codes of activations, weights and biases."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.compiler.quantize.config import QuantizeConfig
from vitral.compiler.quantize.float_graph import Array
from vitral.compiler.quantize.products import Product
from vitral.compiler.quantize.ranges import Range

__all__ = ["Affine", "Codes", "activation_codes", "layer_codes", "tensor_codes"]

LOWEST, HIGHEST = -128, 127
PEAK = 127
"""Weights are symmetric, so that -128 is no code."""
_STEPS = HIGHEST - LOWEST
_MOST_SUM = 2**31 - 1
_LEAST = 1e-6
"""Of a tensor's largest weight scale: channels that are next to nothing get no smaller one."""


@dataclass(frozen=True)
class Affine:
    """int8 codes of an activation: value = scale * (code - zero_point)."""

    scale: np.float32
    zero_point: np.int8

    def round(self, values: Array) -> npt.NDArray[np.float32]:
        """The values that the codes of `values` stand for."""
        codes = np.rint(values / self.scale) + self.zero_point
        return (np.clip(codes, LOWEST, HIGHEST) - self.zero_point).astype(np.float32) * self.scale

    @property
    def ends(self) -> Range:
        """Values of the lowest and the highest code."""
        zero, scale = int(self.zero_point), float(self.scale)
        return (LOWEST - zero) * scale, (HIGHEST - zero) * scale


@dataclass(frozen=True, kw_only=True)
class Codes:
    """int8 weights with a scale for each channel of `axis`, or one scale; int32 bias, if any.

    The bias has one scale for each output channel.
    """

    weight: npt.NDArray[np.int8]
    scale: npt.NDArray[np.float32]
    axis: int
    bias: npt.NDArray[np.int32] | None = None
    bias_scale: npt.NDArray[np.float32] | None = None


def activation_codes(span: Range, config: QuantizeConfig) -> Affine:
    """Codes that cover a range which holds 0; 0 is exact."""
    low, high = span
    if config.activations == "symmetric":
        return Affine(_positive(max(-low, high) / PEAK), np.int8(0))
    scale = _positive((high - low) / _STEPS)
    zero = np.clip(np.rint(LOWEST - low / float(scale)), LOWEST, HIGHEST)
    return Affine(scale, np.int8(zero))


def _positive(scale: float) -> np.float32:
    """As float32; 1 for a tensor that is all zero, and never subnormal."""
    rounded = np.float32(scale)
    return rounded if rounded >= np.finfo(np.float32).tiny else np.float32(1.0)


def tensor_codes(values: Array) -> tuple[npt.NDArray[np.int8], np.float32]:
    """Symmetric codes of a constant operand, and their scale."""
    scale = _positive(float(np.abs(values).max(initial=0.0)) / PEAK)
    return np.clip(np.rint(values / scale), -PEAK, PEAK).astype(np.int8), scale


def layer_codes(product: Product, source: Affine, config: QuantizeConfig) -> Codes:
    """Weights and bias of a layer whose input has the codes `source`.

    A scale is the largest magnitude over 127, and grows until no sum of products and bias can leave
    int32: 255 times the magnitudes of a channel's weights plus its bias stay below 2^31.
    """
    scale = _weight_scales(product, config)
    while True:
        codes = Codes(
            weight=np.clip(np.rint(product.weight / product.along(scale)), -PEAK, PEAK).astype(
                np.int8
            ),
            scale=scale if config.per_channel else scale[:1],
            axis=product.axis,
        )
        units = (source.scale * np.tile(scale, product.repeats)).astype(np.float32)
        bias = np.zeros(product.outputs) if product.bias is None else product.bias
        steps = np.rint(bias.astype(np.float64) / units)
        over = np.abs(steps) + _reach(product, codes.weight) > _MOST_SUM
        if not over.any():
            break
        wide = over.reshape(product.repeats, -1).any(axis=0)
        scale = np.where(wide if config.per_channel else wide.any(), scale * 2, scale)
        scale = scale.astype(np.float32)
    if product.bias is None:
        return codes
    return Codes(
        weight=codes.weight,
        scale=codes.scale,
        axis=codes.axis,
        bias=steps.astype(np.int32),
        bias_scale=units if config.per_channel else units[:1],
    )


def _weight_scales(product: Product, config: QuantizeConfig) -> npt.NDArray[np.float32]:
    """(channels of the weight array,) float32, all equal without scales per channel."""
    others = tuple(i for i in range(product.weight.ndim) if i != product.axis)
    peaks = np.abs(product.weight).max(axis=others, initial=0.0).astype(np.float64)
    if not config.per_channel:
        peaks = np.full_like(peaks, peaks.max(initial=0.0))
    floor = float(peaks.max(initial=0.0)) * _LEAST
    scales = np.maximum(peaks, floor) / PEAK
    return np.array([_positive(scale) for scale in scales], np.float32)


def _reach(product: Product, weight: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Largest sum of products of each output channel, for any codes minus any zero point."""
    magnitudes = np.abs(weight.astype(np.int64))
    if product.repeats > 1 or product.node.op_type == "ConvTranspose":
        split = magnitudes.reshape(product.repeats, -1, *weight.shape[1:])
        return _STEPS * split.sum(axis=(1, *range(3, split.ndim))).reshape(-1)
    others = tuple(i for i in range(weight.ndim) if i != product.axis)
    return _STEPS * magnitudes.sum(axis=others)
