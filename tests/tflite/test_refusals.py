"""What cannot be imported is refused in one line, whatever the bytes are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from litert.layers import Layers
from litert.nets import NETS
from litert.writer import Tensor

import vitral
from vitral.compiler.frontends.tflite import import_tflite, is_tflite
from vitral.compiler.pipeline import lower
from vitral.errors import CompileError

SHAPE = (1, 4, 4, 3)


def refused(m: Layers, *outputs: Tensor) -> str:
    with pytest.raises(CompileError) as error:
        import_tflite(m.model(*outputs))
    (line,) = str(error.value).splitlines()
    return line


def test_unknown_operator_is_named():
    m = Layers(seed=0)
    x = m.input(SHAPE, 0.1, 0)
    y = m.tensor(SHAPE, 0.1, 0, name="powers")
    m.operator("EXP", [x], [y], "ExpOptions")
    assert refused(m, y) == "node 0 (EXP): this operator is not supported; it computes 'powers'"


def test_custom_operator_is_named():
    m = Layers(seed=0)
    x = m.input(SHAPE, 0.1, 0)
    y = m.tensor(SHAPE, 0.1, 0)
    m.operator("CUSTOM", [x], [y], custom="TFLite_Detection_PostProcess")
    assert "TFLite_Detection_PostProcess" in refused(m, y)


def test_float_network_is_told_to_be_quantized():
    m = Layers(seed=0)
    x = m.input(SHAPE, dtype="float32")
    weight = m.constant(np.ones((8, 1, 1, 3), np.float32))
    y = m.tensor((1, 4, 4, 8), dtype="float32")
    m.operator("CONV_2D", [x, weight], [y], "Conv2DOptions", strideH=1, strideW=1)
    line = refused(m, y)
    assert "'x0', got float32; quantize the network to int8 first" in line


def test_half_precision_weights_are_told_to_be_quantized():
    m = Layers(seed=0)
    weight = m.constant(np.ones((8, 1, 1, 3), np.float16))
    y = m.tensor((8, 1, 1, 3), dtype="float32")
    m.operator("DEQUANTIZE", [weight], [y], "DequantizeOptions")
    assert "got float16; quantize the network to int8 first" in refused(m, y)


def _conv(m: Layers, x: Tensor, weight: Tensor, *more: Tensor, **options: Any) -> Tensor:
    y = m.tensor((1, 4, 4, 8), 0.1, 0)
    fields: dict[str, Any] = {
        "strideH": 1,
        "strideW": 1,
        "dilationHFactor": 1,
        "dilationWFactor": 1,
    } | options
    m.operator("CONV_2D", [x, weight, *more], [y], "Conv2DOptions", **fields)
    return y


def _ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.int8)


CONVS: dict[str, tuple[Callable[[Layers, Tensor], Tensor], str]] = {
    "weight zero point": (
        lambda m, x: _conv(m, x, m.constant(_ones(8, 1, 1, 3), 0.1, 1)),
        "with zero point 0",
    ),
    "scales along another axis": (
        lambda m, x: _conv(m, x, m.constant(_ones(8, 1, 1, 3), [0.1] * 3, axis=3)),
        "or 8 along axis 0",
    ),
    "computed weights": (
        lambda m, x: _conv(m, x, m.input((8, 1, 1, 3), 0.1, 0)),
        "needs constant data in tensor 'x1'",
    ),
    "channels that do not fit": (
        lambda m, x: _conv(m, x, m.constant(_ones(8, 1, 1, 2), 0.1)),
        "channels divide",
    ),
    "no stride": (
        lambda m, x: _conv(m, x, m.constant(_ones(8, 1, 1, 3), 0.1), strideH=0),
        "strides and dilations of at least 1",
    ),
    "unknown padding": (
        lambda m, x: _conv(m, x, m.constant(_ones(8, 1, 1, 3), 0.1), padding=2),
        "SAME or VALID",
    ),
    "fused tanh": (
        lambda m, x: _conv(m, x, m.constant(_ones(8, 1, 1, 3), 0.1), fusedActivationFunction=4),
        "fused activation",
    ),
    "64-bit bias": (
        lambda m, x: _conv(
            m, x, m.constant(_ones(8, 1, 1, 3), 0.1), m.constant(np.ones(8, np.int64), 0.01)
        ),
        "8 int32 biases",
    ),
    "kernel beyond the image": (
        lambda m, x: _conv(m, x, m.constant(_ones(8, 9, 9, 3), 0.1), padding=1),
        "needs an image of at least 9",
    ),
    "huge quotient of scales": (
        lambda m, x: _conv(m, x, m.constant(_ones(8, 1, 1, 3), 1e12)),
        "quotient",
    ),
}


@pytest.mark.parametrize("case", CONVS)
def test_convolutions(case: str):
    build, text = CONVS[case]
    m = Layers(seed=0)
    assert text in refused(m, build(m, m.input(SHAPE, 0.1, 0)))


def test_concatenation_of_two_scales():
    m = Layers(seed=0)
    parts = [m.input(SHAPE, 0.1, 0), m.input(SHAPE, 0.2, 0)]
    assert "equal scales" in refused(m, m.concat(parts, 3))


def test_pool_of_two_scales():
    m = Layers(seed=0)
    x = m.input(SHAPE, 0.1, 0)
    y = m.tensor(SHAPE, 0.2, 0)
    m.operator(
        "MAX_POOL_2D",
        [x],
        [y],
        "Pool2DOptions",
        strideH=1,
        strideW=1,
        filterHeight=1,
        filterWidth=1,
    )
    assert "equal scales" in refused(m, y)


def test_tensor_that_nothing_computes():
    m = Layers(seed=0)
    m.input(SHAPE, 0.1, 0)
    assert "a node that computes it" in refused(m, m.tensor(SHAPE, 0.1, 0))


def test_output_listed_twice():
    m = Layers(seed=0)
    x = m.input(SHAPE, 0.1, 0)
    y = m.conv(x, 4)
    assert "once" in refused(m, y, y)


def test_input_of_another_type():
    m = Layers(seed=0)
    assert "got int16" in refused(m, m.input(SHAPE, 0.1, 0, dtype="int16"))


def test_scale_that_is_no_number():
    m = Layers(seed=0)
    assert "finite scales" in refused(m, m.conv(m.input(SHAPE, float("nan"), 0), 4))


def test_zero_point_that_is_no_code():
    m = Layers(seed=0)
    assert "zero points of int8, got 128" in refused(m, m.conv(m.input(SHAPE, 0.1, 128), 4))


def test_average_of_windows_beyond_the_image():
    m = Layers(seed=0)
    x = m.input(SHAPE, 0.1, 0)
    y = m.tensor((1, 1, 1, 3), 0.1, 0)
    fields: dict[str, Any] = {
        "strideH": 1,
        "strideW": 1,
        "filterHeight": 5,
        "filterWidth": 4,
        "padding": 1,
    }
    m.operator("AVERAGE_POOL_2D", [x], [y], "Pool2DOptions", **fields)
    assert "needs an image of at least 5" in refused(m, y)


def test_unknown_rounding():
    with pytest.raises(CompileError, match="tflite_rounding must be one of reference"):
        vitral.compile(NETS["ds_cnn"](0), tflite_rounding="triple")  # pyright: ignore[reportArgumentType]


def test_shapes_name_an_input():
    with pytest.raises(CompileError, match="shapes names 'y', the inputs are x0"):
        vitral.compile(NETS["ds_cnn"](0), shapes={"y": (1, 49, 10, 1)})


def test_only_the_identifier_makes_a_tflite_file(tmp_path):
    model = NETS["ds_cnn"](0)
    path = tmp_path / "net.bin"
    path.write_bytes(model)
    assert is_tflite(model)
    assert is_tflite(path)
    assert not is_tflite(model[8:])
    assert not is_tflite(tmp_path / "missing.tflite")


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tflite", None)
    with pytest.raises(CompileError, match=r"pip install 'vitral\[tflite\]'"):
        vitral.compile(NETS["ds_cnn"](0))


@pytest.mark.parametrize("seed", range(3))
def test_broken_bytes_give_one_line(seed: int):
    """Flipped bytes, mostly where the structure is, and cut ends."""
    rng = np.random.default_rng(seed)
    m = Layers(seed)
    x = m.conv(m.input((1, 6, 6, 4), 0.02, 3), 8, (3, 3))
    y = m.binary("ADD", x, m.pool("AVERAGE_POOL_2D", x, (3, 3)))
    whole = m.model(m.softmax(m.dense(m.reshape(y, (1, 288)), 10)))
    refusals: list[str] = []
    for _ in range(100):
        data = bytearray(whole)
        for place in rng.integers(8, len(data), rng.integers(1, 6)):
            data[place] = int(rng.integers(256))
        broken = bytes(data[: int(rng.integers(8, len(data)))] if rng.random() < 0.2 else data)
        try:
            lower(import_tflite(broken))
        except CompileError as error:
            refusals.append(str(error))
    assert refusals
    assert [text for text in refusals if len(text.splitlines()) != 1] == []
