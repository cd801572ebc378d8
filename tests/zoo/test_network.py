"""The builder's own forward pass is what the ONNX graph computes, layer by layer."""

from math import inf

import numpy as np
import onnxruntime as ort
import pytest

from vitral.zoo.calibrate import Quantizer, activation_quantizer, normalize, quantize_weights
from vitral.zoo.forward import average_pool, conv2d, max_pool
from vitral.zoo.network import Network, Tensor

CODES = 2
"""Codes that float sums, rounded weights and biases may be apart from the exact ones."""


def conv(net: Network, x: Tensor) -> Tensor:
    return net.conv(x, 10, (3, 5), "y", stride=(2, 1), pads=(1, 2, 0, 2), top=inf)


FORMS = {
    "conv": conv,
    "depthwise": lambda net, x: net.conv(x, 6, 3, "y", stride=2, pads=(0, 0, 1, 1), group=6, top=6),
    "linear": lambda net, x: net.conv(x, 8, 1, "y"),
    "max_pool": lambda net, x: net.max_pool(x, 3, 2, "y", pads=1),
    "average": lambda net, x: net.global_average(x, "y"),
    "dense": lambda net, x: net.dense(net.flatten(x, "f"), 20, "y", top=inf),
    "add": lambda net, x: net.add(x, net.conv(x, 6, 3, "c", pads=1), "y", top=inf),
    "leaky": lambda net, x: net.leaky_relu(x, "y"),
    "concat": lambda net, x: net.concat([x, net.conv(x, 4, 1, "c")], "y"),
    "upsample": lambda net, x: net.upsample(x, 2, "y"),
}


@pytest.mark.parametrize("form", FORMS)
def test_values_are_those_of_the_graph(form: str) -> None:
    net = Network("n", (6, 12, 10), seed=4, samples=3)
    y = FORMS[form](net, net.input)
    options = ort.SessionOptions()  # float kernels: fused integer ones saturate on some hosts
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(net.finish(y).SerializeToString(), options)
    (name,) = [output.name for output in session.get_outputs()]
    rows = [session.run([name], {"input": x[None]})[0] for x in net.input.values]
    got = np.concatenate([np.asarray(row) for row in rows]).reshape(y.values.shape)
    apart = np.abs(got - y.values) / y.quantizer.scale
    assert np.rint(apart).max() <= CODES, f"{form}: {apart.max():.1f} codes"
    assert np.unique(got).size >= min(20, got.size // 2)


def test_convolution_by_hand() -> None:
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
    weight = np.array([[[[1, 10]]]], np.float32)
    result = conv2d(x, weight, (1, 2), (0, 0, 0, 1), 1)
    np.testing.assert_array_equal(result, [[[[10, 32], [54, 76]]]])
    both = np.concatenate([x, 2 * x], axis=1)
    factors = np.array([[[[1, 10]]], [[[-1, 0]]]], np.float32)
    result = conv2d(both, factors, (1, 2), (0, 0, 0, 1), 2)
    np.testing.assert_array_equal(result, [[[[10, 32], [54, 76]], [[0, -4], [-8, -12]]]])


def test_pools_by_hand() -> None:
    x = -np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    np.testing.assert_array_equal(
        max_pool(x, (2, 2), (2, 2), (1, 1, 1, 1))[0, 0],
        [[0, -1, -3], [-4, -5, -7], [-12, -13, -15]],
    )
    np.testing.assert_array_equal(average_pool(x), [[[[-7.5]]]])


def test_scales_reach_all_codes() -> None:
    values = np.array([-1.0, 0.0, 3.0], np.float32)
    quantizer = activation_quantizer(values)
    np.testing.assert_allclose(quantizer.round(values), values, atol=float(quantizer.scale))
    assert quantizer.zero_point == -64
    assert activation_quantizer(np.array([0.5, 2.55], np.float32)) == Quantizer(
        np.float32(0.01), -128
    )
    assert activation_quantizer(np.zeros(3, np.float32)).scale == 1


def test_weights_reach_the_ends_in_every_channel() -> None:
    weight = np.random.default_rng(1).standard_normal((5, 3, 2, 2)).astype(np.float32)
    codes, scale = quantize_weights(weight)
    assert (np.abs(codes.reshape(5, -1)).max(axis=1) == 127).all()
    restored = codes * scale[:, None, None, None]
    assert np.abs(restored - weight).max() <= scale.max() / 2 * 1.001


@pytest.mark.parametrize("shape", [(2, 7, 9, 9), (1, 50, 1, 1)])
def test_normalised_results_have_a_mean_and_spread_near_the_usual(
    shape: tuple[int, int, int, int],
) -> None:
    rng = np.random.default_rng(2)
    sums = (rng.standard_normal(shape) * 37 + 500).astype(np.float32)
    gain, bias = normalize(sums, rng)
    result = sums * gain[:, None, None] + bias[:, None, None]
    assert abs(result.mean() - 0.1) < 0.3
    assert 0.6 < result.std() < 1.5
