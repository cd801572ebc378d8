"""Parameter files: bytes written out by hand, and what is wrong with damaged ones."""

import struct

import numpy as np
import pytest

from vitral.compiler.frontends.nnvm import load_params, save_params
from vitral.errors import CompileError

WEIGHT = np.array([[1.5, -2.0, 0.25]], np.float32)
STEPS = np.array([-7, 300], np.int32)


def _by_hand() -> bytes:
    head = bytes.fromhex("b79c04054f8de5f7") + bytes(8)
    names = struct.pack("<Q", 2) + struct.pack("<Q", 1) + b"w" + struct.pack("<Q", 5) + b"steps"
    mark = bytes.fromhex("3fa1b496f0405edd") + bytes(8)
    first = struct.pack("<iii", 1, 0, 2) + bytes([2, 32, 1, 0]) + struct.pack("<qqq", 1, 3, 12)
    second = struct.pack("<iii", 1, 0, 1) + bytes([0, 32, 1, 0]) + struct.pack("<qq", 2, 8)
    return (
        head
        + names
        + struct.pack("<Q", 2)
        + mark
        + first
        + struct.pack("<3f", 1.5, -2.0, 0.25)
        + mark
        + second
        + struct.pack("<2i", -7, 300)
    )


def test_file_written_by_hand() -> None:
    loaded = load_params(_by_hand())
    assert list(loaded) == ["w", "steps"]
    for name, expected in (("w", WEIGHT), ("steps", STEPS)):
        assert loaded[name].dtype == expected.dtype
        np.testing.assert_array_equal(loaded[name], expected)


def test_saved_bytes_are_those_of_the_format() -> None:
    assert save_params({"w": WEIGHT, "steps": STEPS}) == _by_hand()


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "uint8", "int64"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3, 4)])
def test_round_trip(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    back = load_params(save_params({"a": array}))["a"]
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("size", range(len(_by_hand())))
def test_cut_off_anywhere(size: int) -> None:
    with pytest.raises(CompileError, match=r"^parameter file: [^\n]*$"):
        load_params(_by_hand()[:size])


@pytest.mark.parametrize(
    ("at", "value", "text"),
    [
        (0, 0, "magic number"),
        (16, 255, "names do not fit"),
        (24, 255, "name 0 needs 255 bytes"),
        (46, 9, "2 names and 9 arrays"),
        (54, 0, "array 'w' needs magic number"),
        (78, 200, "needs rank 0 to 32"),
        (82, 7, "element type"),
        (83, 12, "element type"),
        (84, 4, "element type"),
        (86, 2, "needs 24 bytes, the file says 12"),
    ],
)
def test_damaged(at: int, value: int, text: str) -> None:
    damaged = bytearray(_by_hand())
    damaged[at] = value
    with pytest.raises(CompileError, match=text):
        load_params(bytes(damaged))


def test_bytes_left_over() -> None:
    with pytest.raises(CompileError, match="1 bytes are left"):
        load_params(_by_hand() + b"\0")
