"""What the scheduler gets: convolutions in the accelerator's own arithmetic."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.isa import Rounding

__all__ = ["ChannelParams", "ConvLayer"]


@dataclass(frozen=True, kw_only=True)
class ChannelParams:
    """Requantisation per output channel, as `vitral.arithmetic.requantize` takes it.

    `bias` int32, `mult` uint32 (31 bits), `shift` uint8, `zero_point`, `low` and `high` int16, all
    of shape (channels,). `bias` already holds the input zero point's share, -zp * sum(weight).
    """

    bias: npt.NDArray[np.int32]
    mult: npt.NDArray[np.uint32]
    shift: npt.NDArray[np.uint8]
    zero_point: npt.NDArray[np.int16]
    low: npt.NDArray[np.int16]
    high: npt.NDArray[np.int16]
    rounding: Rounding


@dataclass(frozen=True, kw_only=True)
class ConvLayer:
    """One convolution on int8 tensors in DRAM; a dense layer is one with 1x1 spatial size.

    Parameters
    ----------
    name : str
        Name of the model's node, for profile and errors.
    source, result : str
        Names of the input and output values.
    in_shape, out_shape : tuple of int
        (N, C, H, W) in real channels.
    weight : ndarray
        int16 (O, C / group, KH, KW) with values -255..255: a weight zero point is already
        subtracted. Values beyond int8 are computed as the sum of two int8 planes.
    strides, dilations : tuple of int
        (height, width).
    pads : tuple of int
        (top, left, bottom, right), any size.
    pad_value : int
        int8 value of padding elements: the input's zero point.
    params : ChannelParams
        Requantisation; the result is int8.
    """

    name: str
    source: str
    result: str
    in_shape: tuple[int, int, int, int]
    out_shape: tuple[int, int, int, int]
    weight: npt.NDArray[np.int16]
    group: int
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    pad_value: int
    params: ChannelParams

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the real (unpadded) shapes."""
        n, _, p, q = self.out_shape
        return n * p * q * int(np.prod(self.weight.shape))
