"""NNVM graphs against the same networks in ONNX, run by onnxruntime."""

from collections.abc import Mapping

import numpy as np
import onnxruntime
import pytest
from nnvm.nnvm_files import SymbolWriter
from onnx import TensorProto, helper, numpy_helper

from vitral.compiler.frontends.nnvm import import_nnvm, save_params
from vitral.compiler.ir import evaluate, verify
from vitral.errors import CompileError

X = (1, 4, 9, 8)
Arrays = Mapping[str, np.ndarray]


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _expected(nodes: list, constants: Arrays, x: np.ndarray, outputs: int = 1) -> list[np.ndarray]:
    graph = helper.make_graph(
        nodes,
        "same",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(outputs)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return [np.asarray(y) for y in session.run(None, {"x": x})]


def _result(writer: SymbolWriter, *heads: int, x: np.ndarray) -> list[np.ndarray]:
    graph = import_nnvm(writer.text(*heads), save_params(writer.params), {"x": x.shape})
    verify(graph)
    return evaluate(graph, {"x": x})


def _unit(op: str, attrs: Mapping[str, object], *others: np.ndarray, x: np.ndarray) -> np.ndarray:
    writer = SymbolWriter()
    inputs = [writer.variable("x")]
    inputs += [writer.variable(f"p{i}", value) for i, value in enumerate(others)]
    (y,) = _result(writer, writer.node(op, "node", *inputs, **attrs), x=x)
    return y


WEIGHT = _random(6, 4, 3, 2, seed=1)
BIAS = _random(6, seed=2)
STATISTICS = [_random(4, seed=3), _random(4, seed=4), _random(4, seed=5)]
VARIANCE = np.abs(_random(4, seed=6)) + np.float32(0.1)

UNITS = [
    (
        "conv2d",
        {
            "channels": 6,
            "kernel_size": "(3, 2)",
            "strides": "(2, 1)",
            "padding": "(1, 0)",
            "dilation": "(1, 2)",
        },
        [WEIGHT, BIAS],
        ("Conv", {"strides": [2, 1], "pads": [1, 0, 1, 0], "dilations": [1, 2]}),
    ),
    (
        "conv2d",
        {
            "channels": 8,
            "kernel_size": "[3, 3]",
            "groups": 4,
            "use_bias": False,
            "layout": "NCHW",
        },
        [_random(8, 1, 3, 3)],
        ("Conv", {"group": 4}),
    ),
    (
        "conv2d_transpose",
        {"channels": 5, "kernel_size": (3, 3), "strides": (2, 2), "output_padding": (1, 1)},
        [_random(4, 5, 3, 3), _random(5)],
        ("ConvTranspose", {"strides": [2, 2], "output_padding": [1, 1]}),
    ),
    (
        "batch_norm",
        {"epsilon": "1e-03", "axis": 1},
        [*STATISTICS, VARIANCE],
        ("BatchNormalization", {"epsilon": 1e-3}),
    ),
    ("relu", {}, [], ("Relu", {})),
    ("leaky_relu", {"alpha": 0.25}, [], ("LeakyRelu", {"alpha": 0.25})),
    ("sigmoid", {}, [], ("Sigmoid", {})),
    ("tanh", {}, [], ("Tanh", {})),
    (
        "max_pool2d",
        {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1), "ceil_mode": True},
        [],
        (
            "MaxPool",
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
        ),
    ),
    (
        "avg_pool2d",
        {"pool_size": (2, 3), "strides": (2, 2), "padding": (1, 1)},
        [],
        ("AveragePool", {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ),
    ("global_avg_pool2d", {}, [], ("GlobalAveragePool", {})),
    ("global_max_pool2d", {}, [], ("GlobalMaxPool", {})),
    ("broadcast_mul", {}, [_random(4, 1, 1)], ("Mul", {})),
    ("elemwise_sub", {}, [_random(*X, seed=9)], ("Sub", {})),
    ("flatten", {}, [], ("Flatten", {})),
    ("softmax", {"axis": 1}, [], ("Softmax", {"axis": 1})),
    ("dropout", {"rate": 0.3}, [], ("Identity", {})),
    ("transpose", {"axes": (0, 2, 3, 1)}, [], ("Transpose", {"perm": [0, 2, 3, 1]})),
]


@pytest.mark.parametrize(("op", "attrs", "others", "same"), UNITS)
def test_operator(op: str, attrs: dict, others: list, same: tuple[str, dict]) -> None:
    x = _random(*X)
    kind, onnx_attrs = same
    names = ["x", *(f"p{i}" for i in range(len(others)))]
    node = helper.make_node(kind, names, ["y0"], **onnx_attrs)
    (expected,) = _expected([node], dict(zip(names[1:], others, strict=True)), x)
    y = _unit(op, attrs, *others, x=x)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_batch_norm_without_center_and_scale() -> None:
    x = _random(*X)
    gamma, beta, mean = STATISTICS
    y = _unit("batch_norm", {"center": False, "scale": "0"}, gamma, beta, mean, VARIANCE, x=x)
    wide = (x - mean.reshape(-1, 1, 1)) / np.sqrt(VARIANCE.reshape(-1, 1, 1) + 1e-5)
    np.testing.assert_allclose(y, wide, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("__add_scalar__", lambda x: x + np.float32(1.5)),
        ("__sub_scalar__", lambda x: x - np.float32(1.5)),
        ("__rsub_scalar__", lambda x: np.float32(1.5) - x),
        ("__mul_scalar__", lambda x: x * np.float32(1.5)),
        ("__div_scalar__", lambda x: x / np.float32(1.5)),
        ("__rdiv_scalar__", lambda x: np.float32(1.5) / x),
    ],
)
def test_scalars(op: str, expected) -> None:
    x = _random(*X)
    np.testing.assert_array_equal(_unit(op, {"scalar": "1.5"}, x=x), expected(x))


def test_shapes_and_padding() -> None:
    x = _random(*X)
    padded = _unit("pad", {"pad_width": "((0, 0), (1, 0), (2, 1), (0, 3))", "pad_value": 2}, x=x)
    widths = [(0, 0), (1, 0), (2, 1), (0, 3)]
    np.testing.assert_array_equal(padded, np.pad(x, widths, constant_values=2))
    larger = _unit("upsampling", {"scale": 3}, x=x)
    np.testing.assert_array_equal(larger, x.repeat(3, axis=2).repeat(3, axis=3))
    rows = _unit("reshape", {"shape": (0, -1, 9)}, x=x)
    np.testing.assert_array_equal(rows, x.reshape(1, -1, 9))
    twice = _unit("concatenate", {}, x, x=x)
    np.testing.assert_array_equal(twice, np.concatenate([x, x], axis=1))


def test_network_with_residual_and_dense() -> None:
    writer = SymbolWriter()
    x = writer.variable("x")
    weight = writer.variable("conv_weight", _random(4, 4, 3, 3))
    conv = writer.node(
        "conv2d",
        "conv",
        x,
        weight,
        channels=4,
        kernel_size=(3, 3),
        padding=(1, 1),
        use_bias=False,
    )
    total = writer.node("elemwise_add", "sum", conv, x)
    flat = writer.node("flatten", "flat", writer.node("relu", "act", total))
    dense_weight = writer.variable("dense_weight", _random(10, 4 * 72))
    dense_bias = writer.variable("dense_bias", _random(10))
    dense = writer.node("dense", "fc", flat, dense_weight, dense_bias, units=10)
    head = writer.node("softmax", "prob", dense)
    image = _random(*X)
    fc, prob = _result(writer, dense, head, x=image)
    nodes = [
        helper.make_node("Conv", ["x", "conv_weight"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "x"], ["s"]),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Gemm", ["f", "dense_weight", "dense_bias"], ["y0"], transB=1),
        helper.make_node("Softmax", ["y0"], ["y1"]),
    ]
    expected = _expected(nodes, writer.params, image, outputs=2)
    np.testing.assert_allclose(fc, expected[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(prob, expected[1], rtol=1e-4, atol=1e-5)


def test_names_of_nodes_are_kept() -> None:
    writer = SymbolWriter()
    x = writer.variable("x")
    weight = writer.variable("w", _random(4, 4, 1, 1))
    bias = writer.variable("b", _random(4))
    conv = writer.node("conv2d", "conv", x, weight, bias, channels=4, kernel_size=(1, 1))
    graph = import_nnvm(writer.text(conv), writer.params, {"x": X})
    assert graph.outputs == ("conv",)
    assert [op.name for op in graph.ops] == ["conv", "conv.bias"]


def test_shapes_that_the_file_states() -> None:
    writer = SymbolWriter()
    head = writer.node("relu", "act", writer.variable("x"))
    graph = import_nnvm(writer.text(head, shapes=[X, X]), {})
    assert graph.types["x"].shape == X


def _refused(writer: SymbolWriter, head: int, **shapes: tuple[int, ...]) -> str:
    with pytest.raises(CompileError) as caught:
        import_nnvm(writer.text(head), writer.params, shapes or {"x": X})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_all_unknown_operators_are_named() -> None:
    writer = SymbolWriter()
    x = writer.variable("x")
    first = writer.node("roi_align", "a", x)
    second = writer.node("lrn", "b", first)
    said = _refused(writer, writer.node("lrn", "c", second))
    assert said.endswith("not supported: lrn (node 'b'), roi_align (node 'a')")


@pytest.mark.parametrize(
    ("op", "attrs", "said"),
    [
        ("relu", {"axis": 1}, "node 'n' (relu): attribute axis='1' is not supported"),
        ("max_pool2d", {}, "(max_pool2d): needs attribute pool_size"),
        ("max_pool2d", {"pool_size": "2", "layout": "NHWC"}, "layout needs NCHW, got 'NHWC'"),
        ("max_pool2d", {"pool_size": "(2,"}, "pool_size needs a value, got '(2,'"),
        ("leaky_relu", {"alpha": "'x'"}, "alpha needs a number, got 'x'"),
        ("upsampling", {"scale": 2, "method": "BILINEAR"}, "method needs NEAREST_NEIGHBOR"),
        ("reshape", {"shape": (0, -3)}, "shape needs sizes"),
        ("conv2d", {"channels": 4, "kernel_size": (1, 1)}, "needs 3 inputs, got 1"),
        ("batch_norm", {}, "needs 5 inputs, got 1"),
        ("clip", {"a_min": 0}, "needs attribute a_max"),
    ],
)
def test_attributes_that_do_not_fit(op: str, attrs: dict, said: str) -> None:
    writer = SymbolWriter()
    assert said in _refused(writer, writer.node(op, "n", writer.variable("x"), **attrs))


def test_inputs_need_shapes_and_nothing_else_does() -> None:
    writer = SymbolWriter()
    head = writer.node("relu", "act", writer.variable("image"))
    assert "NNVM input 'image'" in _refused(writer, head, image=())
    assert "got one of 'other'" in _refused(writer, head, image=X, other=X)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        '{"nodes": [], "heads": []}',
        '{"nodes": [{"op": "null", "name": "x", "inputs": []}], "heads": [[1, 0, 0]]}',
        '{"nodes": [{"op": "null", "name": "x", "inputs": []}], "heads": []}',
        '{"nodes": [{"op": "relu", "name": "x", "inputs": [[0, 0, 0]]}], "heads": [[0, 0, 0]]}',
        '{"nodes": [{"op": "relu", "name": "x", "inputs": 3}], "heads": [[0, 0, 0]]}',
        '{"nodes": [{"op": "null", "name": "", "inputs": []}], "heads": [[0, 0, 0]]}',
        '{"nodes": [3], "heads": [[0, 0, 0]]}',
        '{"nodes": [{"op": "null", "name": "x", "attrs": {"a": 1}}], "heads": [[0, 0, 0]]}',
    ],
)
def test_malformed_graphs(text: str) -> None:
    with pytest.raises(CompileError, match=r"^NNVM [^\n]*$"):
        import_nnvm(text, {})


def test_second_results_are_refused() -> None:
    writer = SymbolWriter()
    x = writer.variable("x")
    mask = writer.node("dropout", "drop", x)
    writer.nodes.append({"op": "relu", "name": "act", "inputs": [[mask, 1, 0]]})
    said = _refused(writer, len(writer.nodes) - 1)
    assert "needs the first result of node 'drop'" in said


def test_files_that_are_not_there() -> None:
    with pytest.raises(CompileError, match="cannot be read"):
        import_nnvm("no/such/file.json", {})
