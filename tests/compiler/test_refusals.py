"""What the compiler does not take is refused in one line that names the node or tensor."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import pytest
from cases import ModelBuilder, accepted_forms, build_qoperator, conv_rows, refused_forms
from onnx import TensorProto, helper, numpy_helper

from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.pipeline import lower
from vitral.errors import CompileError

REFUSED = refused_forms()
V2 = next(case for case in conv_rows() if case.name == "V2")
INT8 = np.int8


def refusal(model: Any, **options: Any) -> str:
    """The one-line text with which a model is refused."""
    with pytest.raises(CompileError) as caught:
        lower(import_onnx(model, **options))
    text = str(caught.value)
    assert text
    assert "\n" not in text
    return text


def v2() -> onnx.ModelProto:
    return accepted_forms()["qdq opset 13"]


@pytest.mark.parametrize("fault", REFUSED)
def test_fault_in_a_convolution_names_its_node(fault: str) -> None:
    assert refusal(REFUSED[fault]).startswith("node '")


@pytest.mark.parametrize(
    ("fault", "parts"),
    [
        ("scale zero", ("y_QuantizeLinear", "y_scale", "scales > 0", "got 0")),
        ("scale NaN", ("y_QuantizeLinear", "y_scale", "got nan")),
        ("scale empty", ("w_real_DequantizeLinear", "w_real_scale", "empty")),
        ("scale length", ("w_real_DequantizeLinear", "w_real_scale", "got 7")),
        ("blocked scales", ("DequantizeLinear", "block_size 4")),
        ("int4 weights", ("DequantizeLinear", "'w'", "int4")),
        ("int16 activations", ("y_QuantizeLinear", "int16")),
        ("group", ("sum_Conv", "group 2", "[33, 17, 1, 1]")),
        ("weight scales on the wrong axis", ("sum_Conv", "axis 1")),
    ],
)
def test_fault_names_what_was_needed_and_what_came(fault: str, parts: tuple[str, ...]) -> None:
    text = refusal(REFUSED[fault])
    for part in parts:
        assert part in text


def test_blocked_scales_by_their_shape() -> None:
    model = v2()
    scale = next(t for t in model.graph.initializer if t.name == "w_real_scale")
    blocks = np.full((33, 17), 0.5, np.float32)
    scale.CopyFrom(numpy_helper.from_array(blocks, scale.name))
    assert "blocked scales of shape [33, 17]" in refusal(model)


def test_weight_zero_point_as_graph_input() -> None:
    model = build_qoperator(V2)
    zero = next(t for t in model.graph.initializer if t.name == "w_zero")
    model.graph.initializer.remove(zero)
    info = helper.make_tensor_value_info("w_zero", TensorProto.INT8, [33])
    model.graph.input.append(info)
    text = refusal(model)
    assert "y_QLinearConv" in text
    assert "needs a constant as tensor 'w_zero'" in text


def test_weights_computed_at_run_time() -> None:
    model = build_qoperator(V2)
    weights = next(t for t in model.graph.initializer if t.name == "w")
    model.graph.initializer.remove(weights)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.INT8, [33, 17, 1, 1]))
    assert "needs constant weights as tensor 'w'" in refusal(model)


def test_unsupported_operator_by_name_and_tensor() -> None:
    b = ModelBuilder()
    b.node("RandomNormalLike", ["x"], "y")
    model = b.model({"x": (np.float32, (2, 2))}, {"y": (np.float32, ())})
    text = refusal(model)
    assert "node 'y_RandomNormalLike'" in text
    assert "ai.onnx::RandomNormalLike" in text
    assert "'y'" in text


def test_unsupported_operator_that_no_output_needs_does_no_harm() -> None:
    model = v2()
    model.graph.node.append(helper.make_node("RandomNormalLike", ["x"], ["unused"]))
    lower(import_onnx(model))


@pytest.mark.parametrize("share", np.arange(1, 60) / 60)
def test_truncated_file(share: float) -> None:
    data = v2().SerializeToString()
    refusal(data[: int(len(data) * share)])


@pytest.mark.parametrize("data", [b"", b"\x00" * 64, b"not a model at all", bytes(range(256))])
def test_bytes_that_are_no_model(data: bytes) -> None:
    assert "not an ONNX model" in refusal(data)


def test_missing_file_by_its_path(tmp_path: Any) -> None:
    assert "nowhere.onnx: No such file" in refusal(tmp_path / "nowhere.onnx")
    assert str(tmp_path) in refusal(tmp_path)


def test_missing_initializer_names_tensor_and_reader() -> None:
    model = v2()
    bias = next(t for t in model.graph.initializer if t.name == "bias")
    model.graph.initializer.remove(bias)
    text = refusal(model)
    assert "'bias'" in text
    assert "bias_real_DequantizeLinear" in text


def test_initializer_shorter_than_its_shape() -> None:
    model = v2()
    weights = next(t for t in model.graph.initializer if t.name == "w")
    weights.raw_data = weights.raw_data[:-5]
    assert refusal(model).startswith("initializer 'w': cannot be read")


def test_cycle_is_named() -> None:
    model = v2()
    conv = next(n for n in model.graph.node if n.op_type == "Conv")
    model.graph.node.append(helper.make_node("Relu", ["y_real"], ["x_again"], name="loop"))
    model.graph.node.append(helper.make_node("Relu", ["sum"], ["y_real"], name="back"))
    conv.input[0] = "x_again"
    text = refusal(model)
    assert "depends on itself" in text
    assert "cycle" in text


def test_tensor_defined_twice() -> None:
    model = v2()
    model.graph.node.append(helper.make_node("Relu", ["x"], ["sum"], name="again"))
    assert refusal(model) == "node 'again' (Relu): tensor 'sum' is defined a second time"


def test_nodes_out_of_order_are_sorted() -> None:
    model = v2()
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    lower(import_onnx(model))


@pytest.mark.parametrize(("opset", "ok"), [(6, False), (10, True), (99, False)])
def test_opset_range(opset: int, ok: bool) -> None:
    model = build_qoperator(V2, opset=10)
    model.opset_import[0].version = opset
    if ok:
        lower(import_onnx(model))
    else:
        newest = onnx.defs.onnx_opset_version()
        assert f"needs one opset in 7..{newest}, got [{opset}]" in refusal(model)


def test_newest_opset_that_onnx_knows_is_accepted() -> None:
    model = v2()
    model.opset_import[0].version = onnx.defs.onnx_opset_version()
    lower(import_onnx(model))


def test_ir_version_2_and_no_opset_at_all() -> None:
    model = v2()
    model.ir_version = 2
    assert "ir_version 3 or later, got 2" in refusal(model)
    model = v2()
    del model.opset_import[:]
    assert "imports no opset" in refusal(model)


def test_model_without_outputs() -> None:
    model = v2()
    del model.graph.output[:]
    assert "no outputs" in refusal(model)


def symbolic(batch: Any = "N") -> onnx.ModelProto:
    """DQ -> Relu -> Q of x [batch, 16, 4, 4]."""
    b = ModelBuilder()
    zero = np.array(0, INT8)
    b.quantize(b.node("Relu", [b.dequantize("x", "x_real", 1.0, zero)], "r"), "y", 1.0, zero)
    return b.model({"x": (INT8, (batch, 16, 4, 4))}, {"y": (INT8, (batch, 16, 4, 4))})


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (None, "input 'x': a dimension is symbolic ('N'); give shapes={'x': (...)}"),
        ({"x": (0, 16, 4, 4)}, "input 'x': needs dimension 0 >= 1, got 0"),
        ({"N": 0}, "input 'x': needs dimension 0 >= 1, got 0"),
        ({"x": (1, 16, 4)}, "input 'x': needs 4 dimensions, got [1, 16, 4]"),
        ({"x": (1, 17, 4, 4)}, "input 'x': dimension 1 is 16 in the model, got 17"),
        ({"z": (1,)}, "shapes: 'z' is neither an input (x) nor a symbolic dimension (N)"),
        ({3: 3, "z": 1}, "shapes: 3 is neither an input (x) nor a symbolic dimension (N)"),
        ({"x": "abc"}, "shapes: 'x' needs whole numbers, or one for a symbol, got 'abc'"),
        ({"N": 3.5}, "shapes: 'N' needs whole numbers, or one for a symbol, got 3.5"),
        (
            {"x": (1, 16, 4.0, 4)},
            "shapes: 'x' needs whole numbers, or one for a symbol, got (1, 16, 4.0, 4)",
        ),
        ({"x": 16}, "input 'x': needs 4 dimensions, got [16]"),
        ("N=3", "shapes must be a mapping of names to sizes, got 'N=3'"),
    ],
)
def test_symbolic_dimensions_must_be_bound(shapes: Any, text: str) -> None:
    assert refusal(symbolic(), shapes=shapes) == text


@pytest.mark.parametrize(
    "shapes",
    [{"x": (3, 16, 4, 4)}, {"N": 3}, {"N": np.int64(3)}, {"x": np.array([3, 16, 4, 4])}],
)
def test_symbolic_dimensions_are_bound_by_input_or_by_name(shapes: Any) -> None:
    graph = lower(import_onnx(symbolic(), shapes))
    assert graph.types["y"].shape == (3, 16, 4, 4)


def test_one_number_is_the_whole_shape_of_a_vector() -> None:
    b = ModelBuilder()
    zero = np.array(0, INT8)
    b.quantize(b.dequantize("x", "x_real", 1.0, zero), "y", 2.0, zero)
    model = b.model({"x": (INT8, ("N",))}, {"y": (INT8, ("N",))})
    assert lower(import_onnx(model, {"x": 5})).types["y"].shape == (5,)


def test_a_boolean_size_is_a_number() -> None:
    """True is 1 in Python; it is not handed on as a boolean."""
    shape = lower(import_onnx(symbolic(), {"N": True})).types["y"].shape
    assert [type(size) for size in shape] == [int] * 4


def test_batch_0_in_the_file() -> None:
    assert "needs dimension 0 >= 1, got 0" in refusal(symbolic(0))


def test_reshape_to_another_size_names_the_node() -> None:
    b = ModelBuilder()
    b.node("Reshape", ["x", b.constant("s", np.array([1, 256]))], "y")
    model = b.model({"x": (INT8, (2, 16, 4, 4))}, {"y": (INT8, (1, 256))})
    text = refusal(model)
    assert "node 'y_Reshape'" in text
    assert "needs a shape of 512 elements as in [2, 16, 4, 4], got [1, 256]" in text


def dense(inner: int, dtype: Any, weight: int, bias: Any = None, scale: float = 1.0) -> Any:
    """DQ -> Gemm -> Q with constant weights over `inner` products."""
    b = ModelBuilder()
    names = [b.dequantize("x", "x_real", 1.0, None)]
    w = b.constant("w", np.full((inner, 1), weight, INT8))
    names.append(b.dequantize(w, "w_real", scale, None))
    if bias is not None:
        names.append(b.constant("bias", np.array([bias], np.float32)))
    b.quantize(b.node("Gemm", names, "sum"), "y", 1e6, np.array(0, INT8))
    return b.model({"x": (dtype, (1, inner))}, {"y": (INT8, (1, 1))})


@pytest.mark.parametrize(
    ("dtype", "largest"), [(np.int8, 131_071), (np.uint8, 65_793)], ids=["int8", "uint8"]
)
def test_longest_sum_that_fits_int32(dtype: Any, largest: int) -> None:
    """-128 · -128 for int8; 255 · -128 for uint8 whose zero point is 0."""
    lower(import_onnx(dense(largest, dtype, -128)))
    text = refusal(dense(largest + 1, dtype, -128))
    assert "sum_Gemm" in text
    assert f"{largest + 1} products" in text
    assert "channel 0" in text


def test_bias_beyond_int32_names_its_channel() -> None:
    """5 / 7.843e-10 is no int32: neither wrapped nor clipped."""
    text = refusal(dense(3, np.int8, 1, bias=5.0, scale=7.843e-10))
    assert "sum_Gemm" in text
    steps = round(Fraction(5) / Fraction(float(np.float32(7.843e-10))))
    assert f"bias of channel 0 can reach {steps}" in text


def _conv(**changes: Any) -> onnx.ModelProto:
    model = v2()
    conv = next(n for n in model.graph.node if n.op_type == "Conv")
    for name, value in changes.items():
        for attribute in [a for a in conv.attribute if a.name == name]:
            conv.attribute.remove(attribute)
        conv.attribute.append(helper.make_attribute(name, value))
    return model


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"strides": [0, 1]}, "needs 2 strides of 1..65536, got [0, 1]"),
        ({"strides": [1, 1 << 31]}, "needs 2 strides of 1..65536, got [1, 2147483648]"),
        ({"pads": [0, 0, 0, 1 << 40]}, "needs 4 pads of 0..65536, got [0, 0, 0, 1099511627776]"),
        ({"pads": [1, 1, 1]}, "needs 4 pads of 0..65536, got [1, 1, 1]"),
        ({"pads": [-1, 0, 0, 0]}, "needs 4 pads of 0..65536, got [-1, 0, 0, 0]"),
        ({"kernel_shape": [3, 3]}, "needs kernel_shape [1, 1] as the weights have, got [3, 3]"),
        ({"auto_pad": "SOMEHOW"}, "needs auto_pad NOTSET, VALID or SAME_*, got 'SOMEHOW'"),
        ({"group": "two"}, "needs an integer as attribute 'group', got 'two'"),
    ],
)
def test_attribute_that_makes_no_sense(changes: dict[str, Any], text: str) -> None:
    assert refusal(_conv(**changes)) == f"node 'sum_Conv' (Conv): {text}"


def test_rank_5_convolution() -> None:
    b = ModelBuilder()
    names = [b.dequantize("x", "x_real", 1.0, None)]
    w = b.constant("w", np.ones((1, 1, 1, 1, 1), INT8))
    names.append(b.dequantize(w, "w_real", 1.0, None))
    b.quantize(b.node("Conv", names, "sum"), "y", 1.0, np.array(0, INT8))
    shape = (1, 1, 2, 2, 2)
    text = refusal(b.model({"x": (INT8, shape)}, {"y": (INT8, shape)}))
    assert "needs rank 3 or 4 input and weights, got [1, 1, 2, 2, 2]" in text


def test_window_that_is_all_padding() -> None:
    b = ModelBuilder()
    b.node("MaxPool", ["x"], "y", kernel_shape=[2, 2], pads=[2, 2, 2, 2])
    model = b.model({"x": (INT8, (1, 1, 4, 4))}, {"y": (INT8, (1, 1, 7, 7))})
    assert "y_MaxPool" in refusal(model)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_alpha_that_is_no_positive_number(alpha: float) -> None:
    model = dense(3, np.int8, 1)
    gemm = next(n for n in model.graph.node if n.op_type == "Gemm")
    gemm.attribute.append(helper.make_attribute("alpha", alpha))
    assert "needs alpha > 0" in refusal(model)


@pytest.mark.parametrize(
    ("element", "name"), [(TensorProto.INT16, "int16"), (TensorProto.FLOAT16, "float16")]
)
def test_input_type(element: int, name: str) -> None:
    model = v2()
    model.graph.input[0].type.tensor_type.elem_type = element
    assert refusal(model) == f"input 'x': needs float32, int8, uint8 or int32, got {name}"


def test_multiplier_beyond_float32() -> None:
    model = dense(3, np.int8, 1, scale=3e38)
    scale = next(t for t in model.graph.initializer if t.name == "y_scale")
    scale.CopyFrom(numpy_helper.from_array(np.array(1e-30, np.float32), "y_scale"))
    assert "needs scales whose quotient is a float32" in refusal(model)


MUTATIONS: dict[str, Callable[[onnx.GraphProto], None]] = {
    "no inputs at all": lambda g: g.node[-2].ClearField("input"),
    "bias of another length": lambda g: _replace(g, "bias", np.zeros(32, np.int32)),
    "scale of float64": lambda g: _replace(g, "y_scale", np.array(0.5)),
    "zero point of another type": lambda g: _replace(g, "x_real_zero", np.array(0, np.uint8)),
}


def _replace(graph: onnx.GraphProto, name: str, value: np.ndarray) -> None:
    tensor = next(t for t in graph.initializer if t.name == name)
    tensor.CopyFrom(numpy_helper.from_array(value, name))


@pytest.mark.parametrize("name", MUTATIONS)
def test_malformed_group(name: str) -> None:
    model = v2()
    assert model.graph.node[-2].op_type == "Conv"
    MUTATIONS[name](model.graph)
    assert refusal(model).startswith("node '")


def test_a_map_of_too_many_elements() -> None:
    model = v2()
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[2].dim_value = 1 << 40
    text = refusal(model)
    assert "input 'x': needs at most 2147483647 elements" in text


def test_scales_whose_product_vanishes_beside_a_bias() -> None:
    model = v2()
    for tensor in model.graph.initializer:
        if tensor.name in ("x_real_scale", "w_real_scale"):
            small = np.full(tuple(tensor.dims), 1e-30, np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(small, tensor.name))
    assert "product is a float32 > 0" in refusal(model)
