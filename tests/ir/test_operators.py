"""Every operator of the registry against onnxruntime, and there and back through ONNX."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from vitral.compiler.frontends.relay import export_calls, import_calls
from vitral.compiler.ir import Graph, GraphBuilder, TensorType, evaluate
from vitral.compiler.ir.operators import OPERATORS

IMAGE, WIDE = (2, 4, 7, 9), (3, 1, 5)
ROWS: list[tuple[str, list[tuple[int, ...]], dict[str, Any]]] = [
    ("add", [IMAGE, (4, 1, 1)], {}),
    ("subtract", [(1, 9), IMAGE], {}),
    ("multiply", [IMAGE, IMAGE], {}),
    ("divide", [IMAGE, ()], {}),
    ("maximum", [WIDE, (4, 5)], {}),
    ("minimum", [WIDE, (4, 5)], {}),
    ("negative", [WIDE], {}),
    ("abs", [WIDE], {}),
    ("floor", [WIDE], {}),
    ("ceil", [WIDE], {}),
    ("round", [IMAGE], {}),
    ("exp", [WIDE], {}),
    ("erf", [WIDE], {}),
    ("tanh", [WIDE], {}),
    ("sigmoid", [WIDE], {}),
    ("copy", [WIDE], {}),
    ("clip", [IMAGE], {"a_min": -0.5, "a_max": 1.25}),
    ("cast", [WIDE], {"dtype": "int32"}),
    ("nn.relu", [IMAGE], {}),
    ("nn.leaky_relu", [IMAGE], {"alpha": 0.3}),
    ("nn.prelu", [IMAGE, (4,)], {}),
    ("nn.dropout", [WIDE], {}),
    ("nn.conv2d", [IMAGE, (6, 4, 3, 2)], {"padding": (1, 0, 2, 1), "strides": (2, 1)}),
    ("nn.conv2d", [IMAGE, (8, 1, 3, 3)], {"groups": 4, "dilation": (2, 3), "padding": (3, 3)}),
    ("nn.conv2d", [IMAGE, (6, 2, 1, 1)], {"groups": 2, "channels": 6, "kernel_size": (1, 1)}),
    ("nn.conv2d_transpose", [IMAGE, (4, 3, 3, 2)], {"strides": (2, 3), "padding": (1, 0)}),
    (
        "nn.conv2d_transpose",
        [IMAGE, (4, 2, 2, 2)],
        {"groups": 2, "strides": (3, 2), "output_padding": (1, 1), "dilation": (2, 1)},
    ),
    ("nn.dense", [(3, 5), (7, 5)], {}),
    ("matmul", [(2, 3, 5), (5, 4)], {}),
    ("nn.bias_add", [IMAGE, (4,)], {}),
    ("nn.bias_add", [IMAGE, (9,)], {"axis": -1}),
    ("nn.max_pool2d", [IMAGE], {"pool_size": (3, 2), "strides": (2, 2), "padding": (1, 0)}),
    ("nn.max_pool2d", [IMAGE], {"pool_size": (2, 2), "strides": (3, 3), "ceil_mode": True}),
    ("nn.max_pool2d", [IMAGE], {"pool_size": (2, 2), "dilation": (2, 3)}),
    ("nn.avg_pool2d", [IMAGE], {"pool_size": (3, 3), "strides": (2, 2), "padding": (1, 1)}),
    (
        "nn.avg_pool2d",
        [IMAGE],
        {"pool_size": (3, 2), "strides": (2, 2), "padding": (1, 1), "count_include_pad": True},
    ),
    (
        "nn.avg_pool2d",
        [IMAGE],
        {"pool_size": (2, 2), "strides": (3, 2), "padding": (1, 1), "ceil_mode": True},
    ),
    ("nn.global_max_pool2d", [IMAGE], {}),
    ("nn.global_avg_pool2d", [IMAGE], {}),
    ("nn.upsampling", [IMAGE], {"scale": 2}),
    ("nn.upsampling", [IMAGE], {"scale_h": 3, "scale_w": 1}),
    ("reshape", [IMAGE], {"newshape": (0, -1, 6)}),
    ("nn.batch_flatten", [IMAGE], {}),
    ("squeeze", [WIDE], {}),
    ("squeeze", [WIDE], {"axis": (1,)}),
    ("expand_dims", [WIDE], {"axis": 1, "num_newaxis": 2}),
    ("transpose", [IMAGE], {}),
    ("transpose", [IMAGE], {"axes": (0, 2, 3, 1)}),
    ("concatenate", [(2, 3), (2, 1), (2, 4)], {"axis": 1}),
    ("strided_slice", [IMAGE], {"begin": (0, 1, -3), "end": (2, 3, 99), "strides": (1, 1, 2)}),
    ("strided_slice", [IMAGE], {"begin": (8,), "end": (-99,), "strides": (-2,), "axes": (3,)}),
    ("split", [IMAGE], {"indices_or_sections": 2, "axis": 1, "index": 1}),
    ("split", [IMAGE], {"indices_or_sections": (2, 3), "axis": -1, "index": 1}),
    ("nn.pad", [IMAGE], {"pad_width": (0, 0, 1, 2, 3, 0, 0, 1), "pad_value": 1.5}),
    ("nn.pad", [IMAGE], {"pad_width": (0, 0, 0, 0, 3, 1, 0, 2), "pad_mode": "reflect"}),
    ("nn.pad", [IMAGE], {"pad_width": (0, 0, 0, 0, 3, 1, 0, 2), "pad_mode": "edge"}),
    ("sum", [IMAGE], {"axis": (1, -1), "keepdims": True}),
    ("mean", [IMAGE], {"axis": (2, 3)}),
    ("max", [IMAGE], {}),
    ("min", [IMAGE], {"axis": (0,)}),
    ("argmax", [IMAGE], {"axis": (1,)}),
    ("argmax", [IMAGE], {"axis": (-2,), "keepdims": True}),
    ("nn.softmax", [IMAGE], {"axis": 1}),
    ("nn.softmax", [WIDE], {}),
    ("device_copy", [WIDE], {"source": "cpu", "target": "accelerator"}),
]

ELSEWHERE = {
    *("log", "sqrt", "power", "nn.batch_norm", "qnn.quantize", "qnn.dequantize"),  # below
    *("right_shift", "left_shift"),  # by hand: ONNX has none
    "annotation.simulated_quantize",  # with its passes
}


def test_every_operator_is_tested() -> None:
    assert {row[0] for row in ROWS} | ELSEWHERE == set(OPERATORS)


def single(op: str, arrays: dict[str, np.ndarray], **attrs: Any) -> Graph:
    b = GraphBuilder({n: TensorType(a.shape, str(a.dtype)) for n, a in arrays.items()})
    return b.graph(b.call(op, *arrays, **attrs))


def there_and_back(graph: Graph, feeds: dict[str, np.ndarray]) -> None:
    """onnxruntime, the interpreter, and the interpreter on the model's import agree."""
    model = export_calls(graph)
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    want = np.asarray(session.run(None, feeds)[0])
    for it in (graph, import_calls(model)):
        (got,) = evaluate(it, feeds)
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(("op", "shapes", "attrs"), ROWS)
def test_operator_equals_onnxruntime(op: str, shapes: list, attrs: dict) -> None:
    rng = np.random.default_rng(len(op))
    feeds = {f"x{i}": rng.normal(0, 2, s).astype(np.float32) for i, s in enumerate(shapes)}
    there_and_back(single(op, feeds, **attrs), feeds)


@pytest.mark.parametrize("op", ["log", "sqrt", "power"])
def test_operators_of_positive_numbers(op: str) -> None:
    rng = np.random.default_rng(3)
    count = 2 if op == "power" else 1
    feeds = {f"x{i}": rng.uniform(0.1, 3, WIDE).astype(np.float32) for i in range(count)}
    there_and_back(single(op, feeds), feeds)


def test_batch_norm() -> None:
    rng = np.random.default_rng(4)
    feeds = {"x": rng.normal(0, 2, IMAGE).astype(np.float32)}
    for name in ("gamma", "beta", "mean", "variance"):
        feeds[name] = rng.uniform(0.5, 2, 4).astype(np.float32)
    there_and_back(single("nn.batch_norm", feeds, epsilon=1e-3), feeds)


@pytest.mark.parametrize("axis", [None, 1, -1])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantize_and_dequantize(dtype: str, axis: int | None) -> None:
    """Ties go to even, codes saturate; scales along an axis or one for all."""
    rng = np.random.default_rng(6)
    count = () if axis is None else (IMAGE[axis],)
    b = GraphBuilder({"x": TensorType(IMAGE, "float32")})
    scale = b.constant(rng.choice([0.25, 0.5, 0.1], count).astype(np.float32))
    zero = b.constant(rng.integers(0, 9, count).astype(dtype))
    along = -1 if axis is None else axis
    codes = b.call("qnn.quantize", "x", scale, zero, out_dtype=dtype, axis=along)
    graph = b.graph(b.call("qnn.dequantize", codes, scale, zero, axis=along))
    x = rng.integers(-300, 300, IMAGE).astype(np.float32) / np.float32(8)
    there_and_back(graph, {"x": x})


def test_a_bias_goes_into_its_convolution() -> None:
    b = GraphBuilder({"x": TensorType(IMAGE, "float32")})
    rng = np.random.default_rng(8)
    weight, bias = rng.normal(0, 1, (4, 4, 1, 1)), rng.normal(0, 1, 4)
    sums = b.call("nn.conv2d", "x", weight.astype(np.float32), name="conv")
    graph = b.graph(b.call("nn.bias_add", sums, bias.astype(np.float32), output="y"))
    model = export_calls(graph)
    (node,) = model.graph.node
    assert (node.op_type, node.name, list(node.output)) == ("Conv", "conv", ["y"])
    there_and_back(graph, {"x": rng.normal(0, 1, IMAGE).astype(np.float32)})


def test_a_bias_stays_where_others_read_the_sums() -> None:
    b = GraphBuilder({"x": TensorType(IMAGE, "float32")})
    sums = b.call("nn.conv2d", "x", np.ones((4, 4, 1, 1), np.float32))
    biased = b.call("nn.bias_add", sums, np.ones(4, np.float32))
    graph = b.graph(b.call("multiply", sums, biased))
    kinds = [node.op_type for node in export_calls(graph).graph.node]
    assert kinds == ["Conv", "Reshape", "Add", "Mul"]
    there_and_back(graph, {"x": np.random.default_rng(1).normal(0, 1, IMAGE).astype(np.float32)})
