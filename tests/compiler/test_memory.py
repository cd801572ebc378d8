"""One arena with lifetimes: what networks need, and what is refused."""

import numpy as np
import onnx
import pytest
from cases import ModelBuilder

import vitral
from vitral import zoo
from vitral.errors import CompileError

SIDE, CHANNELS = 64, 32
PLANE = CHANNELS * SIDE * SIDE
SHAPE = (1, CHANNELS, SIDE, SIDE)


def chain(length: int) -> onnx.ModelProto:
    """1x1 convolutions one after the other, all tensors of `PLANE` bytes."""
    b, last = ModelBuilder(), "x"
    rng = np.random.default_rng(0)
    for number in range(length):
        name = "y" if number == length - 1 else f"t{number}"
        weight = rng.integers(-127, 128, (CHANNELS, CHANNELS, 1, 1)).astype(np.int8)
        w = b.dequantize(b.constant(f"w{number}", weight), f"wr{number}", 1 / 512, None)
        b.node("Conv", [b.dequantize(last, f"r{number}", 0.5, None), w], f"s{number}")
        last = b.quantize(f"s{number}", name, 0.5, np.array(0, np.int8))
    return b.model({"x": (np.int8, SHAPE)}, {"y": (np.int8, SHAPE)})


def test_tensors_lie_where_dead_ones_were() -> None:
    sizes = [vitral.compile(chain(length)).arena_bytes for length in (4, 12)]
    assert sizes[0] >= 4 * PLANE  # input, output, and two between them
    assert sizes[1] - sizes[0] < PLANE  # eight more layers: weights and instructions


def test_enough_memory_is_the_size_of_the_arena() -> None:
    needed = vitral.compile(chain(2)).arena_bytes
    assert vitral.compile(chain(2), memory=needed).arena_bytes == needed
    text = rf"needs {needed} bytes of DRAM .*, {needed - 1} are available"
    with pytest.raises(CompileError, match=text):
        vitral.compile(chain(2), memory=needed - 1)


@pytest.mark.slow
def test_resnet18_fits_16_mib() -> None:
    module = vitral.compile(zoo.build("resnet18"), memory=16 << 20)
    weights = 11_678_912  # of its convolutions, one byte each
    assert weights < module.arena_bytes <= 16 << 20
    assert len(module.segments) == 1
