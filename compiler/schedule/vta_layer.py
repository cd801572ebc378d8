"""Layers in the plain VTA profile: what follows the products is a list of ALU operations."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.compiler.schedule.layer import ChannelParams, ConvLayer, PoolLayer, Shape
from vitral.isa import AluOp, Rounding

__all__ = ["AddBias", "AddTensor", "Immediate", "Post", "VtaConv", "VtaLayer", "VtaPool"]


@dataclass(frozen=True)
class Immediate:
    """acc = op(acc, imm) of every element; imm has 16 bits."""

    op: AluOp
    imm: int


@dataclass(frozen=True, eq=False)
class AddBias:
    """acc += bias[o], int32 (O,), of every element of channel o."""

    bias: npt.NDArray[np.int32]


@dataclass(frozen=True)
class AddTensor:
    """acc += x << shift, x the int8 element of value `source` at the same place."""

    source: str
    shift: int


Post = Immediate | AddBias | AddTensor

_NONE = np.zeros(0, np.int32)
_UNUSED = ChannelParams(
    bias=_NONE,
    mult=_NONE.astype(np.uint32),
    shift=_NONE.astype(np.uint8),
    zero_point=_NONE.astype(np.int16),
    low=_NONE.astype(np.int16),
    high=_NONE.astype(np.int16),
    rounding=Rounding.HALF_EVEN,
)


@dataclass(frozen=True, kw_only=True)
class VtaConv(ConvLayer):
    """A convolution whose sums go through `post`, in order; the low 8 bits are the result.

    Sums wrap around in 32 bits. `pad_value` is 0 and `params` are not used. With one weight of 1
    for each channel it is the tensor itself, to which `post` is applied.
    """

    params: ChannelParams = _UNUSED
    pad_value: int = 0
    post: tuple[Post, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source, *(one.source for one in self.added))

    @property
    def source_shapes(self) -> tuple[Shape, ...]:
        return (self.in_shape, *(self.out_shape for _ in self.added))

    @property
    def added(self) -> tuple[AddTensor, ...]:
        """The tensors that are added to the sums."""
        return tuple(one for one in self.post if isinstance(one, AddTensor))

    @property
    def bias(self) -> npt.NDArray[np.int32] | None:
        """The bias, of which there is one at most."""
        return next((one.bias for one in self.post if isinstance(one, AddBias)), None)


@dataclass(frozen=True, kw_only=True)
class VtaPool(PoolLayer):
    """The int8 maximum over a window, taken by the ALU."""


VtaLayer = VtaConv | VtaPool
