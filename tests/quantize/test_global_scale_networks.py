"""Quantization with one global scale: networks of several layers, by their numbers."""

import numpy as np
import pytest

from vitral.compiler.ir import Call, Graph, GraphBuilder, TensorType, evaluate
from vitral.compiler.quantize.global_scale import (
    PASSES,
    QConfig,
    prerequisite,
    quantize,
)
from vitral.errors import CompileError

ALL = QConfig(skip_k_conv=0)


def names(graph: Graph) -> list[str]:
    return [op.op for op in graph.ops if isinstance(op, Call)]


def uniform(seed: int, *shape: int, limit: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-limit, limit, shape).astype(np.float32)


def image(*shape: int) -> GraphBuilder:
    return GraphBuilder({"data": TensorType(shape, "float32")})


def simulated(graph: Graph, config: QConfig) -> Graph:
    for apply in PASSES[:3]:
        graph = apply(graph, config)
    return graph


def test_batch_norm_scales_and_biases_go_into_the_weights() -> None:
    build = image(2, 3, 6, 5)
    conv = build.call("nn.conv2d", "data", uniform(1, 4, 3, 3, 3))
    biased = build.call("nn.bias_add", conv, uniform(2, 4))
    channel = [uniform(n, 4) for n in (3, 4, 5)]
    normal = build.call("nn.batch_norm", biased, *channel, uniform(6, 4) ** 2 + np.float32(0.1))
    scaled = build.call("multiply", normal, uniform(7, 4, 1, 1))
    drop = build.call("nn.dropout", scaled)
    graph = build.graph(build.call("nn.relu", drop, output="out"))
    folded = prerequisite(graph)
    assert names(folded) == ["nn.conv2d", "add", "nn.relu"]
    assert folded.outputs == ("out",)
    feeds = {"data": uniform(8, 2, 3, 6, 5)}
    (got,), (wanted,) = evaluate(folded, feeds), evaluate(graph, feeds)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_batch_norm_without_its_scale_or_shift(center: bool, scale: bool) -> None:
    build = image(1, 2, 3, 3)
    arrays = [uniform(n, 2) for n in (1, 2, 3)]
    normal = build.call(
        "nn.batch_norm", "data", *arrays, uniform(4, 2) ** 2, center=center, scale=scale
    )
    graph, feeds = build.graph(normal), {"data": uniform(5, 1, 2, 3, 3)}
    got, wanted = (evaluate(one, feeds)[0] for one in (prerequisite(graph), graph))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_a_scale_before_a_padded_convolution_goes_into_its_weights() -> None:
    build = image(1, 3, 5, 5)
    scaled = build.call("multiply", "data", uniform(1, 3, 1, 1))
    conv = build.call("nn.conv2d", scaled, uniform(2, 4, 3, 3, 3), padding=[1, 1])
    graph = build.graph(conv)
    folded = prerequisite(graph)
    assert names(folded) == ["nn.conv2d"]
    feeds = {"data": uniform(3, 1, 3, 5, 5)}
    np.testing.assert_allclose(
        evaluate(folded, feeds)[0], evaluate(graph, feeds)[0], rtol=1e-5, atol=1e-6
    )


def test_a_scale_stays_where_others_read_what_it_scales() -> None:
    build = image(1, 2, 4, 4)
    conv = build.call("nn.conv2d", "data", uniform(1, 2, 2, 1, 1))
    scaled = build.call("multiply", conv, uniform(2, 2, 1, 1))
    graph = build.graph(build.call("add", conv, scaled))
    assert names(prerequisite(graph)) == ["nn.conv2d", "multiply", "add"]


def half_up(sums: np.ndarray, shift: int) -> np.ndarray:
    """Codes of sums by exact fractions: floor(sum / 2**shift + 1/2), to the limits."""
    return np.clip(np.floor(sums / 2.0**shift + 0.5), -127, 127)


def away(x: np.ndarray) -> np.ndarray:
    return np.trunc(x + np.copysign(0.5, x))


def test_residual_of_branches_with_different_scales() -> None:
    """0.3 and 3 are the largest weights, so the units of the sums are 2**-12 and 2**-9."""
    left, right = uniform(1, 8, 5, 1, 1, limit=0.3), uniform(2, 8, 5, 1, 1, limit=3)
    left.flat[0], right.flat[0] = 0.3, -3
    build = image(2, 5, 4, 3)
    a = build.call("nn.conv2d", "data", left)
    b = build.call("nn.conv2d", "data", right)
    graph = build.graph(build.call("nn.relu", build.call("add", a, b)))
    data = uniform(3, 2, 5, 4, 3, limit=9)
    (got,) = evaluate(quantize(graph, qconfig=ALL), {"data": data})

    codes = np.clip(away(data.astype(float) * 16), -127, 127)
    weights = [
        np.clip(away(w.astype(float)[:, :, 0, 0] / unit), -127, 127)
        for w, unit in ((left, 2.0**-8), (right, 2.0**-5))
    ]
    sums = [np.einsum("oc,nchw->nohw", w, codes) for w in weights]
    total = sums[0] + half_up(sums[1], 5) * 2**8
    np.testing.assert_array_equal(got, half_up(np.maximum(total, 0), 8) / 16)


def test_bias_counts_in_units_of_the_sum() -> None:
    weight, bias = uniform(1, 4, 3, 1, 1), uniform(2, 4, limit=2)
    weight.flat[0] = 1
    build = image(1, 3, 2, 2)
    conv = build.call("nn.bias_add", build.call("nn.conv2d", "data", weight), bias)
    data = uniform(3, 1, 3, 2, 2, limit=4)
    (got,) = evaluate(quantize(build.graph(conv), qconfig=ALL), {"data": data})
    codes = away(data.astype(float) * 16)
    held = np.clip(away(weight.astype(float)[:, :, 0, 0] * 128), -127, 127)
    sums = np.einsum("oc,nchw->nohw", held, codes) + away(bias * 2048.0).reshape(-1, 1, 1)
    np.testing.assert_array_equal(got, half_up(sums, 7) / 16)


def small_network() -> Graph:
    """Three convolutions, a residual, a concatenation, a pool and a dense layer."""
    build = image(1, 3, 12, 10)
    x = build.call("nn.conv2d", "data", uniform(1, 8, 3, 3, 3, limit=0.3), padding=[1, 1])
    x = build.call("nn.relu", build.call("nn.bias_add", x, uniform(2, 8)))
    y = build.call("nn.conv2d", x, uniform(3, 8, 8, 3, 3, limit=0.2), padding=[1, 1])
    x = build.call("nn.relu", build.call("add", x, y))
    y = build.call("nn.conv2d", x, uniform(4, 4, 8, 1, 1, limit=0.5))
    x = build.call("concatenate", x, y, axis=1)
    x = build.call("nn.max_pool2d", x, pool_size=[2, 2], strides=[2, 2])
    x = build.call("nn.batch_flatten", x)
    x = build.call("nn.dense", x, uniform(5, 10, 12 * 6 * 5, limit=0.1))
    return build.graph(build.call("nn.softmax", x))


@pytest.mark.parametrize("skip", [0, 1, 2, 3, 4])
def test_integers_follow_the_simulation(skip: int) -> None:
    """They round halves up where the simulation rounds them away from zero, nothing else."""
    config = QConfig(skip_k_conv=skip)
    graph = small_network()
    quantized = quantize(graph, qconfig=config)
    data = {"data": uniform(9, 1, 3, 12, 10, limit=2)}
    (real,) = evaluate(quantized, data)
    (simulation,) = evaluate(simulated(graph, config), data)
    (floats,) = evaluate(graph, data)
    assert abs(real - simulation).max() < 0.02
    assert abs(real - floats).max() < 0.1
    integers = [op.op for op in quantized.ops if isinstance(op, Call) and "out_dtype" in op.attrs]
    convs = max(0, 3 - skip)
    assert integers == ["nn.conv2d"] * convs + ["nn.dense"] * (skip <= 3)


def test_dense_layers_wait_for_the_convolutions_that_are_skipped() -> None:
    build = GraphBuilder({"data": TensorType((1, 4), "float32")})
    graph = build.graph(build.call("nn.dense", "data", uniform(1, 3, 4)))
    assert names(quantize(graph)) == ["nn.dense"]
    assert "cast" in names(quantize(graph, qconfig=ALL))


def test_a_value_with_several_readers_is_brought_to_few_bits_once() -> None:
    graph = quantize(small_network(), qconfig=ALL)
    shifts = [op for op in graph.ops if isinstance(op, Call) and op.op == "right_shift"]
    assert len(shifts) == 4  # one for each product


def test_parameters_may_be_inputs() -> None:
    build = GraphBuilder(
        {
            "data": TensorType((1, 1, 2, 2), "float32"),
            "w": TensorType((1, 1, 1, 1), "float32"),
        }
    )
    graph = build.graph(build.call("nn.conv2d", "data", "w"))
    weight = np.full((1, 1, 1, 1), 0.75, np.float32)
    quantized = quantize(graph, {"w": weight}, ALL)
    assert quantized.inputs == ("data",)
    data = np.array([[[[1, 2], [3, -1]]]], np.float32)
    np.testing.assert_array_equal(evaluate(quantized, {"data": data})[0], data * 0.75)
    with pytest.raises(CompileError, match="parameter 'v': needs an input of that name"):
        quantize(graph, {"v": weight}, ALL)
    with pytest.raises(CompileError, match=r"parameter 'w': needs Tensor\[.* float32\], got"):
        quantize(graph, {"w": weight.astype(np.float64)}, ALL)


def test_sums_that_int32_does_not_hold_are_refused() -> None:
    size = 140_000
    build = GraphBuilder({"data": TensorType((1, size), "float32")})
    graph = build.graph(build.call("nn.dense", "data", np.ones((1, size), np.float32), name="wide"))
    with pytest.raises(CompileError, match=r"node 'wide' .*needs sums that int32 holds"):
        quantize(graph, qconfig=ALL)
    fewer = QConfig(skip_k_conv=0, nbit_input=7)
    assert "nn.dense" in names(quantize(graph, qconfig=fewer))


def test_a_residual_that_would_overflow_is_added_with_few_bits() -> None:
    """Weights of 2**-17 ask for a left shift by 24 of the other summand, beside large sums."""
    build = image(1, 128, 3, 3)
    pooled = build.call("nn.max_pool2d", "data", pool_size=[1, 1])
    weight = np.full((128, 128, 3, 3), 2.0**-17, np.float32)
    a = build.call("nn.conv2d", pooled, weight, padding=[1, 1])
    b = build.call("nn.conv2d", pooled, uniform(1, 128, 128, 1, 1, limit=0.01))
    graph = build.graph(build.call("add", a, b))
    data = {"data": np.full((1, 128, 3, 3), 8, np.float32)}
    quantized = quantize(graph, qconfig=ALL)
    assert "left_shift" not in names(quantized)
    (got,) = evaluate(quantized, data)
    (wanted,) = evaluate(simulated(graph, ALL), data)
    assert abs(got - wanted).max() <= 0.0625
