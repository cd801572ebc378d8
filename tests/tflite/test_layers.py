"""Layers of TFLite models give the bytes of LiteRT's kernels."""

from collections.abc import Callable

import numpy as np
import pytest
from litert.compare import assert_same_bytes
from litert.layers import Layers
from litert.writer import Tensor

from vitral.compiler.frontends.tflite import TfliteRounding
from vitral.runtime.module import CpuStep, Module

SAME, VALID = 0, 1
RELU, RELU_N1_TO_1, RELU6 = 1, 2, 3
BOTH = pytest.mark.parametrize("rounding", ["reference", "xnnpack"])

CONVS: dict[str, Callable[[Layers, Tensor], Tensor]] = {
    "same_3x3": lambda m, x: m.conv(x, 20, (3, 3)),
    "valid_3x2_strided": lambda m, x: m.conv(x, 7, (3, 2), strides=(2, 3), padding=VALID),
    "same_strided_even_input": lambda m, x: m.conv(x, 16, (3, 3), strides=(2, 2), activation=RELU),
    "dilated": lambda m, x: m.conv(x, 5, (3, 3), dilations=(2, 1), activation=RELU6),
    "relu_n1_to_1": lambda m, x: m.conv(x, 5, (1, 1), activation=RELU_N1_TO_1),
    "per_tensor": lambda m, x: m.conv(x, 9, (2, 2), per_channel=False),
    "depthwise": lambda m, x: m.depthwise(x, (3, 3)),
    "depthwise_multiplier": lambda m, x: m.depthwise(x, (3, 5), multiplier=3, activation=RELU6),
    "depthwise_strided": lambda m, x: m.depthwise(x, (5, 3), strides=(2, 2), padding=VALID),
    "depthwise_dilated": lambda m, x: m.depthwise(x, (3, 3), dilations=(2, 2), activation=RELU),
}


def ties(m: Layers, x: Tensor) -> Tensor:
    """Every other sum lies half-way between two codes."""
    return m.conv(x, 16, (1, 1), per_channel=False, scale=x.scale / (40 * 1.7) * 64, zero=5)


CONVS["ties"] = ties


@BOTH
@pytest.mark.parametrize("layer", CONVS)
def test_convolutions_have_the_interpreters_bytes(layer: str, rounding: TfliteRounding):
    m = Layers(seed=len(layer))
    y = CONVS[layer](m, m.input((2, 10, 12, 6), 0.02, 3))
    module = assert_same_bytes(m.model(y), rounding=rounding)
    assert not module.notices
    assert _multiplies_on_accelerator(module)


@pytest.mark.parametrize("zero", [-128, 0, 127])
def test_padding_is_the_zero_point(zero: int):
    m = Layers(seed=1)
    y = m.conv(m.input((1, 5, 5, 3), 0.5, zero), 8, (3, 3))
    assert_same_bytes(m.model(y))


def test_grouped_convolution_by_the_weights_channels():
    m = Layers(seed=2)
    y = m.conv(m.input((1, 6, 6, 8), 0.02, 3), 12, (3, 3), groups=4)
    assert_same_bytes(m.model(y))


@BOTH
@pytest.mark.parametrize("per_channel", [False, True])
def test_dense_layers(rounding: TfliteRounding, per_channel: bool):
    m = Layers(seed=3)
    x = m.input((100, 50), 0.02, 3)
    hidden = m.dense(x, 33, activation=RELU, per_channel=per_channel)
    module = assert_same_bytes(m.model(m.dense(hidden, 10), hidden), rounding=rounding)
    assert _multiplies_on_accelerator(module)


def test_dense_layer_keeps_leading_dimensions():
    m = Layers(seed=4)
    assert_same_bytes(m.model(m.dense(m.input((2, 3, 40), 0.02, 3), 10, keep_dims=True)))


@pytest.mark.parametrize("reshaped", [True, False])
def test_dense_layer_behind_an_image_reads_it_in_the_models_order(reshaped: bool):
    m = Layers(seed=5)
    image = m.conv(m.input((2, 5, 4, 6), 0.02, 3), 12, (3, 3))
    flat = m.reshape(image, (2, 240)) if reshaped else image
    module = assert_same_bytes(m.model(m.dense(flat, 10)))
    assert sum(not isinstance(step, CpuStep) for step in module.steps) == 1


@pytest.mark.parametrize("kernel", [(2, 2), (3, 3), (2, 3), (5, 2), (4, 3)])
@pytest.mark.parametrize("padding", [SAME, VALID])
def test_average_pools_round_ties_away_from_code_zero(kernel: tuple[int, int], padding: int):
    m = Layers(seed=6)
    x = m.input((1, 9, 8, 32), 0.02, 3)
    y = m.conv(x, 32, scale=0.01)
    pooled = m.pool("AVERAGE_POOL_2D", y, kernel, strides=(2, 1), padding=padding)
    module = assert_same_bytes(m.model(pooled))
    if padding == VALID:
        assert not any(isinstance(s, CpuStep) and s.op == "average_pool" for s in module.steps)


@pytest.mark.parametrize("activation", [0, RELU])
def test_max_pools(activation: int):
    m = Layers(seed=7)
    y = m.conv(m.input((1, 9, 8, 4), 0.02, 3), 20)
    assert_same_bytes(m.model(m.pool("MAX_POOL_2D", y, (3, 2), strides=(2, 2))))
    pooled = m.pool("MAX_POOL_2D", y, (3, 2), activation=activation)
    assert_same_bytes(m.model(pooled))


@BOTH
@pytest.mark.parametrize(("scale", "zero"), [(None, None), (0.03, 4), (0.007, -20)])
@pytest.mark.parametrize("size", [(2, 3), (5, 5), (8, 8)])
def test_means_over_the_plane(
    rounding: TfliteRounding, scale: float | None, zero: int | None, size: tuple[int, int]
):
    m = Layers(seed=8)
    x = m.input((1, *size, 500), 0.02, 3)
    assert_same_bytes(
        m.model(m.mean(x, scale, zero), m.mean(x, scale, zero, keep=True)), rounding=rounding
    )


@BOTH
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
@pytest.mark.parametrize("scales", [(0.02, 0.017, 0.03), (0.02, 0.02, 0.04), (0.5, 0.25, 1.0)])
def test_functions_of_two_tensors_on_all_pairs_of_codes(
    name: str, scales: tuple[float, ...], rounding: TfliteRounding
):
    m = Layers(seed=9)
    a, b, y = scales
    left, right = m.input((1, 256, 1, 1), a, 3), m.input((1, 1, 256, 1), b, -9)
    scale = y * 0.4 if name == "MUL" else y
    model = m.model(m.binary(name, left, right, scale=scale, zero=-5, activation=RELU6))
    pairs = [
        np.arange(-128, 128, dtype=np.int8).reshape(shape)
        for shape in ((1, 256, 1, 1), (1, 1, 256, 1))
    ]
    assert_same_bytes(model, rounding=rounding, feeds=pairs)


@BOTH
def test_tensor_times_itself(rounding: TfliteRounding):
    m = Layers(seed=9)
    x = m.input((1, 256), 0.02, 3)
    codes = [np.arange(-128, 128, dtype=np.int8)[None]]
    model = m.model(m.binary("MUL", x, x, scale=0.016, zero=-20))
    assert_same_bytes(model, rounding=rounding, feeds=codes)


def test_broadcast_along_channels_beside_an_image():
    m = Layers(seed=12)
    image = m.conv(m.input((1, 5, 6, 4), 0.02, 3), 9)
    rows = m.constant(m.rng.integers(-128, 128, (9,)).astype(np.int8), 0.03, 4)
    assert_same_bytes(m.model(m.binary("ADD", image, rows), m.binary("MUL", rows, image)))


@BOTH
def test_sums_behind_convolutions_run_with_them(rounding: TfliteRounding):
    m = Layers(seed=13)
    x = m.conv(m.input((1, 6, 6, 16), 0.02, 3), 16)
    total = m.binary("SUB", m.binary("ADD", x, m.conv(x, 16), activation=RELU), x)
    module = assert_same_bytes(m.model(total), rounding=rounding)
    assert len(module.segments) == 1
    assert "binary_table" not in [s.op for s in module.steps if isinstance(s, CpuStep)]


UNARY = {
    "LOGISTIC": ("", {}),
    "TANH": ("", {}),
    "RELU": ("", {}),
    "RELU6": ("", {}),
    "RELU_N1_TO_1": ("", {}),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.3}),
    "HARD_SWISH": ("HardSwishOptions", {}),
    "QUANTIZE": ("QuantizeOptions", {}),
}
RESULTS = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}


@BOTH
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tensor_on_all_codes(name: str, rounding: TfliteRounding):
    options, fields = UNARY[name]
    for scale, zero in ((0.05, 3), (0.1, -128), (0.025, 17), (0.02, 100)):
        m = Layers(seed=14)
        x = m.input((1, 256), scale, zero)
        result = RESULTS.get(name, (0.04, -7))
        model = m.model(m.unary(name, x, *result, options, **fields))
        codes = [np.arange(-128, 128, dtype=np.int8)[None]]
        assert_same_bytes(model, rounding=rounding, feeds=codes)


def test_activations_behind_convolutions_run_with_them():
    m = Layers(seed=15)
    x = m.conv(m.input((1, 6, 6, 16), 0.02, 3), 16)
    y = m.unary("RELU", x, x.scale, x.zero)
    z = m.unary("LEAKY_RELU", y, y.scale, y.zero, "LeakyReluOptions", alpha=0.25)
    module = assert_same_bytes(m.model(z))
    assert len(module.segments) == 1
    assert "table" not in [s.op for s in module.steps if isinstance(s, CpuStep)]


@BOTH
@pytest.mark.parametrize(
    ("scale", "width"), [(0.02, 100), (0.05, 1000), (0.05, 2), (0.2, 10), (1.0, 1000)]
)
def test_softmax(rounding: TfliteRounding, scale: float, width: int):
    m = Layers(seed=16)
    x = m.input((40, width), scale, 3)
    model = m.model(m.softmax(x))
    codes = m.rng.normal(0, 25, (40, width)).clip(-128, 127).astype(np.int8)
    assert_same_bytes(model, rounding=rounding, feeds=[codes])


@BOTH
def test_float_edges(rounding: TfliteRounding):
    m = Layers(seed=17)
    reals = m.input((1, 8, 8, 3), dtype="float32")
    codes = m.tensor((1, 8, 8, 3), 0.5, 3)
    m.operator("QUANTIZE", [reals], [codes], "QuantizeOptions")
    y = m.conv(codes, 10, (3, 3))
    result = m.tensor(y.shape, dtype="float32")
    m.operator("DEQUANTIZE", [y], [result], "DequantizeOptions", version=2)
    halves = (m.rng.integers(-200, 200, (1, 8, 8, 3)) / 4).astype(np.float32)
    assert_same_bytes(m.model(result, codes), rounding=rounding, feeds=[halves])


def test_unsigned_edges():
    m = Layers(seed=18)
    raw = m.input((1, 8, 8, 3), 0.02, 131, dtype="uint8")
    codes = m.tensor((1, 8, 8, 3), 0.02, 3)
    m.operator("QUANTIZE", [raw], [codes], "QuantizeOptions")
    y = m.conv(codes, 10, (3, 3))
    result = m.tensor(y.shape, y.scale, y.zero + 128, dtype="uint8")
    m.operator("QUANTIZE", [y], [result], "QuantizeOptions")
    assert_same_bytes(m.model(result))


def _multiplies_on_accelerator(module: Module) -> bool:
    return not any(step.macs for step in module.steps if isinstance(step, CpuStep))
