"""Tensors of a network to and from the accelerator's blocked layout in the arena."""

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.runtime.module import ArenaTensor

__all__ = ["arena_shape", "pack_tensor", "packed_bytes", "unpack_tensor"]

Int8 = npt.NDArray[np.int8]
ArenaShape = tuple[int, int, int, int, int, int]


def arena_shape(tensor: ArenaTensor, config: CoreConfig) -> ArenaShape:
    """(N / batch, ceil(C / block), H', W', batch, block), H' and W' with pads."""
    n, c, h, w = tensor.shape
    top, left, bottom, right = tensor.pads
    return (
        -(-n // config.batch),
        -(-c // config.block),
        top + h + bottom,
        left + w + right,
        config.batch,
        config.block,
    )


def packed_bytes(tensor: ArenaTensor, config: CoreConfig) -> int:
    """Bytes that a tensor takes in the arena."""
    return int(np.prod(arena_shape(tensor, config), dtype=np.int64))


def pack_tensor(array: npt.NDArray, tensor: ArenaTensor, config: CoreConfig) -> Int8:
    """The arena form of an int8 array of ``tensor.shape``, or of one that has that form already.

    Pads hold ``tensor.pad_value``; missing channels and batch entries hold 0.

    Raises
    ------
    DeviceError
        When the array is not int8 or has another number of elements.
    """
    blocks = arena_shape(tensor, config)
    if array.shape == blocks and array.dtype == np.int8 and not any(tensor.pads):
        return np.ascontiguousarray(array)
    _check(array, tensor)
    groups, rows, height, width, batch, block = blocks
    _, _, h, w = tensor.shape
    top, left, _, _ = tensor.pads
    whole = _blocked(array.reshape(tensor.shape), groups * batch, rows * block)
    inner = whole.reshape(groups, batch, rows, block, h, w).transpose(0, 2, 4, 5, 1, 3)
    if (h, w) == (height, width):
        return np.ascontiguousarray(inner)
    packed = np.full(blocks, tensor.pad_value, np.int8)
    packed[:, :, top : top + h, left : left + w] = inner
    return packed


def unpack_tensor(packed: npt.NDArray, tensor: ArenaTensor, config: CoreConfig) -> Int8:
    """The int8 array, C-contiguous ``tensor.shape``, in `packed_bytes` bytes of the arena."""
    blocks = arena_shape(tensor, config)
    n, c, h, w = tensor.shape
    top, left, _, _ = tensor.pads
    inner = packed.view(np.int8).reshape(blocks)[:, :, top : top + h, left : left + w]
    plain = inner.transpose(0, 4, 1, 5, 2, 3).reshape(
        blocks[0] * config.batch, blocks[1] * config.block, h, w
    )
    return np.array(plain[:n, :c], order="C")  # always a copy: the arena is written again


def _check(array: npt.NDArray, tensor: ArenaTensor) -> None:
    if array.dtype != np.int8 or array.size != int(np.prod(tensor.shape, dtype=np.int64)):
        raise DeviceError(
            f"{tensor.name}: the program takes int8 {tensor.shape}, got {array.dtype} {array.shape}"
        )


def _blocked(array: npt.NDArray, batch: int, channels: int) -> npt.NDArray:
    """Zeros appended so that batch and channels are whole blocks."""
    n, c = array.shape[:2]
    if (n, c) == (batch, channels):
        return array
    return np.pad(array, ((0, batch - n), (0, channels - c), (0, 0), (0, 0)))
