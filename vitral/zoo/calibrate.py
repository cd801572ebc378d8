"""Weights that keep activations alive, and scales that fit them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.zoo.forward import Float

__all__ = ["Quantizer", "activation_quantizer", "images", "normalize", "quantize_weights"]

LOWEST, HIGHEST = -128, 127
CODES = HIGHEST - LOWEST
ENOUGH = 16
"""Positions of a channel in the sample from which its own mean and deviation are taken."""


@dataclass(frozen=True)
class Quantizer:
    """Codes of a tensor: real value = scale * (code - zero_point), int8."""

    scale: np.float32
    zero_point: int

    def round(self, values: Float) -> Float:
        """The values that the codes of `values` stand for."""
        codes = np.rint(values / self.scale) + self.zero_point
        return (np.clip(codes, LOWEST, HIGHEST) - self.zero_point).astype(np.float32) * self.scale


def activation_quantizer(values: Float) -> Quantizer:
    """From the least to the largest value, zero included: all 256 codes are in reach."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    scale = np.float32((high - low) / CODES or 1.0)
    return Quantizer(scale, int(np.rint(LOWEST - low / scale)))


def quantize_weights(weight: Float) -> tuple[npt.NDArray[np.int8], Float]:
    """int8 codes of the same shape, and a scale per output channel (axis 0); symmetric."""
    peak = np.abs(weight).reshape(weight.shape[0], -1).max(axis=1)
    scale = np.maximum(peak / HIGHEST, np.finfo(np.float32).tiny).astype(np.float32)
    codes = np.rint(weight / scale.reshape(-1, *[1] * (weight.ndim - 1)))
    return codes.astype(np.int8), scale


def normalize(sums: Float, rng: np.random.Generator) -> tuple[Float, Float]:
    """Gain and bias per channel that do to `sums` what a trained batch normalisation does.

    Results have a mean about 0 and a deviation about 1, differing from channel to channel, so that
    no layer starves or swamps the next. With few positions in the sample all channels share one
    mean and deviation.

    Parameters
    ----------
    sums : float32 (N, C, H, W)
        The layer's sample output before bias.
    """
    channels = sums.shape[1]
    axes = (0, 2, 3) if sums.size >= ENOUGH * channels else None
    mean = np.broadcast_to(sums.mean(axis=axes), channels)
    deviation = np.broadcast_to(sums.std(axis=axes), channels)
    floor = max(1e-2 * float(deviation.max()), 1e-6)
    gain = rng.uniform(0.7, 1.3, channels) / np.maximum(deviation, floor)
    bias = rng.normal(0.1, 0.3, channels) - mean * gain
    return gain.astype(np.float32), bias.astype(np.float32)


def images(shape: tuple[int, int, int, int], rng: np.random.Generator) -> Float:
    """Sample inputs, float32 (N, C, H, W): coarse shapes under fine noise, deviation about 1."""
    count, channels, height, width = shape
    cells = (min(14, height), min(14, width))
    coarse = rng.standard_normal((count, channels, *cells), np.float32)
    rows = np.arange(height) * cells[0] // height
    columns = np.arange(width) * cells[1] // width
    fine = rng.standard_normal(shape, np.float32)
    return (0.8 * coarse[:, :, rows][:, :, :, columns] + 0.6 * fine).astype(np.float32)
