"""Passes before rounding keep the function; codes and biases keep their bounds."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from float_nets import FLOAT_NETS, FloatNet, float_net, images
from onnx import helper

from vitral.compiler.quantize.codes import Affine, activation_codes, layer_codes, tensor_codes
from vitral.compiler.quantize.config import QuantizeConfig
from vitral.compiler.quantize.correct import correct_biases
from vitral.compiler.quantize.equalize import equalize
from vitral.compiler.quantize.float_graph import FloatGraph
from vitral.compiler.quantize.fold_scales import fold_scales
from vitral.compiler.quantize.prepare import prepare
from vitral.compiler.quantize.products import Product, as_product
from vitral.compiler.quantize.samples import load_samples
from vitral.compiler.quantize.select import select

AFFINE, SYMMETRIC = QuantizeConfig(), QuantizeConfig(activations="symmetric")


def run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return np.asarray(session.run(None, {"x": x})[0])


def folded(model: onnx.ModelProto) -> FloatGraph:
    graph = prepare(model)
    fold_scales(graph)
    return graph


@pytest.mark.parametrize("name", FLOAT_NETS)
def test_folding_keeps_the_function_and_drops_normalisations(name: str) -> None:
    model = float_net(name)
    graph = folded(model)
    kinds = [node.op_type for node in graph.nodes]
    assert "BatchNormalization" not in kinds
    assert len(kinds) < len(model.graph.node)
    x = images(1, seed=1)
    np.testing.assert_allclose(run(graph.to_model(), x), run(model, x), atol=2e-5)


def test_folding_by_hand() -> None:
    """w = 3, b = 1; times 2, minus 4, over 8, normalised with scale 5, bias 1, mean 0.25, var 4:
    y = 5 / 2 * ((2 * (3 x + 1) - 4) / 8 - 0.25) + 1 = 1.875 x - 0.25."""
    net = FloatNet([1, 1, 1, 1])
    x = net.op("Conv", "x", net.constant(np.full((1, 1, 1, 1), 3)), net.constant(np.ones(1)))
    x = net.op("Mul", net.constant(np.array(2)), x)
    x = net.op("Sub", x, net.constant(np.full((1, 1, 1), 4)))
    x = net.op("Div", x, net.constant(np.array(8)))
    parts = [net.constant(np.full(1, value)) for value in (5, 1, 0.25, 4)]
    x = net.op("BatchNormalization", x, *parts, epsilon=0.0)
    (node,) = folded(net.finish(x)).nodes
    graph = folded(net.finish(x))
    assert node.op_type == "Conv"
    assert graph.constants[node.input[1]].item() == 1.875
    assert graph.constants[node.input[2]].item() == -0.25


def test_folding_leaves_what_is_read_twice_and_what_changes_shape() -> None:
    net = FloatNet([1, 2, 4, 4])
    x = net.conv("x", 2, 3)
    doubled = net.op("Mul", x, net.constant(np.array(2)))
    wide = net.op("Add", net.op("Add", x, doubled), net.constant(np.ones((3, 1, 4))))
    graph = folded(net.finish(wide))
    assert [n.op_type for n in graph.nodes] == ["Conv", "Mul", "Add", "Add"]


def test_grouped_transposed_convolutions_fold_per_output_channel() -> None:
    net = FloatNet([1, 4, 5, 5])
    weight = net.constant(net.rng.standard_normal((4, 3, 2, 2)))
    x = net.norm(net.op("ConvTranspose", "x", weight, group=2, strides=[2, 2]), 6)
    model = net.finish(x)
    graph = folded(model)
    assert [n.op_type for n in graph.nodes] == ["ConvTranspose"]
    x = images(1, shape=(4, 5, 5))
    np.testing.assert_allclose(run(graph.to_model(), x), run(model, x), atol=1e-5)


def test_a_lone_normalisation_becomes_a_depthwise_convolution() -> None:
    net = FloatNet([1, 3, 6, 6])
    model = net.finish(net.conv(net.op("Relu", net.norm("x", 3)), 3, 2))
    graph = folded(model)
    assert [n.op_type for n in graph.nodes] == ["Conv", "Relu", "Conv"]
    x = images(1, shape=(3, 6, 6))
    np.testing.assert_allclose(run(graph.to_model(), x), run(model, x), atol=1e-5)


def test_matmul_and_sum_become_a_dense_layer() -> None:
    net = FloatNet([1, 6])
    x = net.op("MatMul", "x", net.constant(net.rng.standard_normal((6, 4))))
    model = net.finish(net.op("Add", x, net.constant(np.arange(4))))
    graph = folded(model)
    assert [n.op_type for n in graph.nodes] == ["Gemm"]
    x = images(1, shape=(6, 1, 1)).reshape(1, 6)
    np.testing.assert_allclose(run(graph.to_model(), x), run(model, x), atol=1e-5)


def test_dense_layers_come_in_one_form() -> None:
    net = FloatNet([1, 6])
    weight, bias = net.rng.standard_normal((6, 4)), np.array([[3.0]])
    y = net.op("Gemm", "x", net.constant(weight), net.constant(bias), alpha=0.5, beta=2.0)
    model = net.finish(y)
    graph = prepare(model)
    product = as_product(graph, graph.nodes[0])
    assert product is not None
    np.testing.assert_allclose(product.weight, 0.5 * weight.T.astype(np.float32))
    assert product.bias is not None
    assert product.bias.tolist() == [6.0] * 4
    x = images(1, shape=(6, 1, 1)).reshape(1, 6)
    np.testing.assert_allclose(run(graph.to_model(), x), run(model, x), atol=1e-5)


def chain(scales: np.ndarray) -> onnx.ModelProto:
    """Two layers with a depthwise one between, whose channels differ by `scales`."""
    net = FloatNet([1, 3, 8, 8])
    x = net.block("x", 3, 8)
    x = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.op("LeakyRelu", net.norm(net.conv(x, 8, 8, group=8), 8), alpha=0.1)
    weight = net.constants[net.nodes[0].input[1]]
    net.constants[net.nodes[0].input[1]] = weight * scales[:, None, None, None].astype(np.float32)
    return net.finish(net.conv(x, 8, 4))


def test_equalising_keeps_the_function_and_evens_out() -> None:
    model = chain(np.logspace(-2, 2, 8))
    graph = folded(model)
    before = _spread(graph)
    assert equalize(graph) == 2
    assert _spread(graph) < before / 100
    x = images(1, shape=(3, 8, 8))
    wanted = run(model, x)
    np.testing.assert_allclose(run(graph.to_model(), x), wanted, atol=1e-5 * np.abs(wanted).max())


def test_equalising_by_hand() -> None:
    """Channels of largest weight 4 before and 1 behind meet at 2."""
    net = FloatNet([1, 1, 2, 2])
    first = net.constant(np.array([4.0, 1.0]).reshape(2, 1, 1, 1))
    second = net.constant(np.array([1.0, 9.0]).reshape(1, 2, 1, 1))
    x = net.op("Relu", net.op("Conv", "x", first, net.constant(np.array([8.0, 3.0]))))
    graph = folded(net.finish(net.op("Conv", x, second)))
    assert equalize(graph) == 1
    conv, _, last = graph.nodes
    np.testing.assert_allclose(graph.constants[conv.input[1]].reshape(-1), [2, 3], rtol=1e-3)
    np.testing.assert_allclose(graph.constants[conv.input[2]], [4, 9], rtol=1e-3)
    np.testing.assert_allclose(graph.constants[last.input[1]].reshape(-1), [2, 3], rtol=1e-3)


def test_nothing_is_equalised_through_relu6() -> None:
    """Its layers stand behind Clip or a sum."""
    assert equalize(folded(float_net("inverted"))) == 0
    assert equalize(folded(float_net("residual"))) == 2


def _spread(graph: FloatGraph) -> float:
    """Largest over smallest range of the first layer's channels."""
    product = as_product(graph, graph.nodes[0])
    assert product is not None
    peaks = np.abs(product.weight).reshape(product.outputs, -1).max(axis=1)
    return float(peaks.max() / peaks.min())


@pytest.mark.parametrize(
    ("span", "config", "scale", "zero", "ends"),
    [
        ((0.0, 2.55), AFFINE, 0.01, -128, (0.0, 2.55)),
        ((-1.0, 1.55), AFFINE, 0.01, -28, (-1.0, 1.55)),
        ((-2.55, 0.0), AFFINE, 0.01, 127, (-2.55, 0.0)),
        ((-1.27, 1.27), SYMMETRIC, 0.01, 0, (-1.28, 1.27)),
        ((0.0, 0.0), AFFINE, 1.0, -128, (0.0, 255.0)),
    ],
)
def test_activation_codes_by_hand(
    span: tuple[float, float],
    config: QuantizeConfig,
    scale: float,
    zero: int,
    ends: tuple[float, float],
) -> None:
    codes = activation_codes(span, config)
    assert codes.scale == np.float32(scale)
    assert codes.zero_point == zero
    assert codes.ends == pytest.approx(ends, rel=1e-6, abs=1e-9)
    assert codes.round(np.zeros(1, np.float32)) == 0
    np.testing.assert_allclose(codes.round(np.array([ends[0] - 9e9, ends[1] + 9e9])), ends)


def test_constant_operands_are_symmetric() -> None:
    codes, scale = tensor_codes(np.array([-2.54, 0, 1.27], np.float32))
    assert codes.tolist() == [-127, 0, 64]  # 63.5 is a tie: to even
    assert scale == np.float32(0.02)


def layer(weight: np.ndarray, bias: np.ndarray | None) -> Product:
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"])
    return Product(node=node, weight=weight, bias=bias, axis=0, repeats=1)


def test_layer_codes_by_hand() -> None:
    weight = np.array([[1.27, -0.5], [0.0, 2.54]], np.float32)
    codes = layer_codes(
        layer(weight, np.array([1.0, -1.0], np.float32)),
        Affine(np.float32(0.5), np.int8(3)),
        AFFINE,
    )
    assert codes.weight.tolist() == [[127, -50], [0, 127]]
    np.testing.assert_allclose(codes.scale, [0.01, 0.02], rtol=1e-6)
    assert codes.bias is not None
    assert codes.bias.tolist() == [200, -100]
    one = layer_codes(
        layer(weight, None), Affine(np.float32(0.5), np.int8(3)), QuantizeConfig(per_channel=False)
    )
    assert one.weight.tolist() == [[64, -25], [0, 127]]  # 63.5 rounds to even
    assert one.scale.shape == (1,)
    assert one.bias is None


def test_sums_never_leave_int32() -> None:
    """A channel with next to no weight and a large bias, one with none, one of 70,000 weights."""
    source = Affine(np.float32(1e-3), np.int8(-128))
    weight = np.zeros((3, 70_000), np.float32)
    weight[0, 0], weight[2] = 1e-6, 1.0
    bias = np.array([50.0, -3.0, 0.5], np.float32)
    codes = layer_codes(layer(weight, bias), source, AFFINE)
    assert codes.bias is not None
    assert codes.bias_scale is not None
    reach = 255 * np.abs(codes.weight.astype(np.int64)).sum(axis=1)
    assert (reach + np.abs(codes.bias.astype(np.int64)) < 2**31).all()
    # the bias keeps its value, whatever that costs the weights
    np.testing.assert_allclose(codes.bias * codes.bias_scale.astype(np.float64), bias, rtol=1e-6)


def test_bias_correction_takes_the_mean_error_out() -> None:
    """Weights of 0.4 and 0.6 steps: what rounding does to them, times the mean input."""
    net = FloatNet([1, 1, 1, 1])
    weight = np.array([[0.4, 127], [127.0, -0.4]]).reshape(2, 2, 1, 1)
    x = net.op("Concat", "x", "x", axis=1)
    model = net.finish(net.op("Conv", x, net.constant(weight), net.constant(np.zeros(2))))
    graph = folded(model)
    samples = load_samples(graph, np.array([1, 3], np.float32).reshape(2, 1, 1, 1), 8)
    selection = select(graph)
    codes = dict.fromkeys(selection.tensors, Affine(np.float32(1.0), np.int8(0)))
    assert correct_biases(graph, selection, codes, samples, AFFINE) == 1
    conv = graph.nodes[-1]
    # E[x] = 2: 0.4 * 2 is lost in the first channel, -0.4 * 2 in the second
    np.testing.assert_allclose(graph.constants[conv.input[2]], [0.8, -0.8], rtol=1e-5)


def test_bias_correction_counts_saturated_inputs() -> None:
    net = FloatNet([1, 1, 1, 1])
    model = net.finish(net.op("Conv", "x", net.constant(np.full((1, 1, 1, 1), 127))))
    graph = folded(model)
    samples = load_samples(graph, np.array([100, 200], np.float32).reshape(2, 1, 1, 1), 8)
    selection = select(graph)
    codes = dict.fromkeys(selection.tensors, Affine(np.float32(1.0), np.int8(0)))
    correct_biases(graph, selection, codes, samples, replace(AFFINE, bias_correction=True))
    # 200 saturates at 127: 73 * 127 in one of two samples
    assert graph.constants[graph.nodes[0].input[2]].item() == pytest.approx(73 * 127 / 2)


def test_constant_parts_are_computed() -> None:
    net = FloatNet([1, 3, 4, 4])
    shape = net.op("Shape", "x")
    first = net.op("Slice", shape, *(net.constant(np.array([v]), np.int64) for v in (0, 1)))
    rest = net.op("Concat", first, net.constant(np.array([-1]), np.int64), axis=0)
    x = net.op("Reshape", net.op("Identity", net.block("x", 3, 4)), rest)
    graph = prepare(net.finish(net.dense(x, 64, 2)))
    kinds = [n.op_type for n in graph.nodes]
    assert kinds == ["Conv", "BatchNormalization", "Relu", "Reshape", "Gemm"]
