"""The arena's blocked layout against its definition, element by element."""

from itertools import product

import numpy as np
import pytest

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.runtime.module import ArenaTensor
from vitral.runtime.packing import arena_shape, pack_tensor, packed_bytes, unpack_tensor

CASES = [
    # config, shape, pads
    (CoreConfig(), (1, 16, 4, 4), (0, 0, 0, 0)),
    (CoreConfig(), (1, 3, 5, 7), (0, 0, 0, 0)),
    (CoreConfig(), (2, 17, 3, 2), (1, 2, 3, 4)),
    (CoreConfig(), (1, 1000, 1, 1), (0, 0, 0, 0)),
    (CoreConfig(batch=2), (3, 33, 2, 2), (0, 1, 0, 1)),
    (CoreConfig(block=8), (1, 9, 1, 6), (18, 0, 0, 0)),
]


def expected(array: np.ndarray, tensor: ArenaTensor, config: CoreConfig) -> np.ndarray:
    """One assignment per element, from the layout's description."""
    packed = np.full(arena_shape(tensor, config), tensor.pad_value, np.int8)
    top, left, _, _ = tensor.pads
    groups, blocks, _, _, batch, block = packed.shape
    n, c, h, w = tensor.shape
    for i, j, y, x in product(range(groups * batch), range(blocks * block), range(h), range(w)):
        value = array[i, j, y, x] if i < n and j < c else 0
        packed[i // batch, j // block, top + y, left + x, i % batch, j % block] = value
    return packed


@pytest.mark.parametrize(("config", "shape", "pads"), CASES)
def test_layout_is_the_documented_one(
    config: CoreConfig, shape: tuple[int, int, int, int], pads: tuple[int, int, int, int]
) -> None:
    rng = np.random.default_rng(1)
    array = rng.integers(-128, 128, shape).astype(np.int8)
    tensor = ArenaTensor(name="t", offset=0, shape=shape, pads=pads, pad_value=-5)
    packed = pack_tensor(array, tensor, config)
    np.testing.assert_array_equal(packed, expected(array, tensor, config))
    assert packed.flags.c_contiguous
    assert packed.nbytes == packed_bytes(tensor, config)
    np.testing.assert_array_equal(
        unpack_tensor(packed.reshape(-1).view(np.uint8), tensor, config), array
    )


def test_result_is_no_view_of_the_arena() -> None:
    tensor = ArenaTensor(name="t", offset=0, shape=(1, 16, 1, 1))
    arena = np.zeros(16, np.uint8)
    result = unpack_tensor(arena, tensor, CoreConfig())
    arena[:] = 7
    assert not result.any()


def test_other_arrays_are_refused() -> None:
    tensor = ArenaTensor(name="t", offset=0, shape=(1, 16, 1, 1))
    for array in (np.zeros((1, 16, 1, 1), np.uint8), np.zeros((1, 15, 1, 1), np.int8)):
        with pytest.raises(DeviceError, match="t: the program takes int8"):
            pack_tensor(array, tensor, CoreConfig())
