"""What the scheduler gets: layers in the accelerator's own arithmetic.

Every layer has a `name`, the values it reads (`sources`, `source_shapes`) and the one it gives
(`result`), the shapes of both, and its `macs`. All tensors are int8 and lie in DRAM.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.isa import Rounding

__all__ = ["AccelLayer", "AddLayer", "ChannelParams", "ConvLayer", "PoolLayer", "Shape"]

Shape = tuple[int, int, int, int]


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
    """One convolution; a dense layer is one with 1x1 spatial size, an average pool with a constant
    divisor one with `group` = channels and weights 1.

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
    useful_macs : int, optional
        Multiply-accumulates of the model's operator where it has fewer than these weights: none for
        an average, those of the real kernel where the host's layout adds zeros.
    """

    name: str
    source: str
    result: str
    in_shape: Shape
    out_shape: Shape
    weight: npt.NDArray[np.int16]
    group: int
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    pad_value: int
    params: ChannelParams
    useful_macs: int | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    @property
    def source_shapes(self) -> tuple[Shape, ...]:
        return (self.in_shape,)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the real (unpadded) shapes."""
        if self.useful_macs is not None:
            return self.useful_macs
        n, _, p, q = self.out_shape
        return n * p * q * int(np.prod(self.weight.shape))


@dataclass(frozen=True, kw_only=True)
class PoolLayer:
    """The int8 maximum over a window; padding never wins, and every window has a real element.

    Parameters
    ----------
    name, source, result, in_shape, out_shape, strides, pads, dilations
        As of a `ConvLayer`.
    kernel : tuple of int
        (height, width) of the window.
    """

    name: str
    source: str
    result: str
    in_shape: Shape
    out_shape: Shape
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)

    @property
    def source_shapes(self) -> tuple[Shape, ...]:
        return (self.in_shape,)

    @property
    def macs(self) -> int:
        """A maximum multiplies nothing."""
        return 0


@dataclass(frozen=True, kw_only=True)
class AddLayer:
    """The sum of two tensors of one shape, each with a factor of its own.

    result = requantize(ma * a + mb * b, params), in exact integers.

    Parameters
    ----------
    name, result
        As of a `ConvLayer`.
    sources : tuple of str
        The values a and b; they may be the same.
    shape : tuple of int
        (N, C, H, W) of both and of the result.
    multipliers : tuple of int
        (ma, mb), -32896..32639. One pass of the core does when both fit int8.
    params : ChannelParams
        Requantisation; the result is int8.
    """

    name: str
    sources: tuple[str, str]
    result: str
    shape: Shape
    multipliers: tuple[int, int]
    params: ChannelParams

    @property
    def source_shapes(self) -> tuple[Shape, ...]:
        return (self.shape, self.shape)

    @property
    def in_shape(self) -> Shape:
        return self.shape

    @property
    def out_shape(self) -> Shape:
        return self.shape

    @property
    def macs(self) -> int:
        """An addition is not counted among the network's multiply-accumulates."""
        return 0


AccelLayer = ConvLayer | PoolLayer | AddLayer
"""Any layer of a segment."""
