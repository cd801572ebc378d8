"""Quantizers of other precisions: what is refused, by name, and what output_dtype means."""

from typing import Any

import numpy as np
import onnx
import oracle
import pytest
from cases import ModelBuilder
from onnx import TensorProto, helper
from plans import run_model

from vitral.compiler.frontends.onnx import import_onnx
from vitral.errors import CompileError


def refusal(model: onnx.ModelProto) -> str:
    """The one line that the model is refused with."""
    with pytest.raises(CompileError) as caught:
        import_onnx(model)
    text = str(caught.value)
    assert "\n" not in text
    return text


def quantizer(kind: str, scale: onnx.TensorProto, zero: Any, **attributes: Any) -> onnx.ModelProto:
    """One QuantizeLinear or DequantizeLinear of opset 23."""
    names = ["x", "s"] if zero is None else ["x", "s", "z"]
    node = helper.make_node(kind, names, ["y"], name="the_node", **attributes)
    element = TensorProto.FLOAT if kind == "QuantizeLinear" else TensorProto.INT8
    x = helper.make_tensor_value_info("x", element, (1, 4))
    constants = [scale] if zero is None else [scale, onnx.numpy_helper.from_array(zero, "z")]
    y = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "quantizer", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    model.ir_version = 10
    return model


def scale_of(element: TensorProto.DataType.ValueType) -> onnx.TensorProto:
    return helper.make_tensor("s", element, (), [0.5])


Q, DQ = "QuantizeLinear", "DequantizeLinear"
SINGLE = TensorProto.FLOAT


@pytest.mark.parametrize(
    ("kind", "element", "zero", "attributes", "text"),
    [
        (DQ, TensorProto.FLOAT16, None, {}, "float32 scale as tensor 's', got float16"),
        (DQ, TensorProto.BFLOAT16, None, {}, "float32 scale as tensor 's', got bfloat16"),
        (Q, SINGLE, np.uint16(0), {}, "needs an int8 or uint8 output, got uint16"),
        (Q, SINGLE, None, {"output_dtype": TensorProto.INT16}, "int8 or uint8 output, got int16"),
        (Q, SINGLE, None, {"output_dtype": TensorProto.FLOAT8E5M2}, "got float8e5m2"),
        (Q, SINGLE, None, {"precision": TensorProto.FLOAT16}, "precision float32, got float16"),
        (DQ, SINGLE, None, {"output_dtype": TensorProto.BFLOAT16}, "float32, got bfloat16"),
        (DQ, SINGLE, None, {"block_size": 2}, "got block_size 2"),
    ],
)
def test_other_precisions_are_refused_by_name(
    kind: str, element: Any, zero: Any, attributes: dict[str, Any], text: str
) -> None:
    found = refusal(quantizer(kind, scale_of(element), zero, **attributes))
    assert found.startswith(f"node 'the_node' ({kind})")
    assert text in found


@pytest.mark.parametrize("output", ["int8", "uint8"])
def test_output_dtype_gives_the_type_of_a_quantizer_without_zero_point(output: str) -> None:
    element = TensorProto.INT8 if output == "int8" else TensorProto.UINT8
    model = quantizer(Q, scale_of(SINGLE), None, output_dtype=element)
    graph = import_onnx(model)
    assert graph.types["y"].dtype == output


def test_dynamic_quantization_is_refused_by_name() -> None:
    b = ModelBuilder()
    b.node("DynamicQuantizeLinear", ["x"], "y")
    text = refusal(b.model({"x": (np.float32, (2, 2))}, {"y": (np.uint8, (2, 2))}))
    assert "ai.onnx::DynamicQuantizeLinear is not supported" in text


def test_an_activation_with_a_scale_per_channel_is_told_of() -> None:
    """Elements and products of it are computed in float32, as the model has them."""
    b = ModelBuilder(opset=13)
    scales, zeros = np.array([0.5, 0.25, 2], np.float32), np.array([1, -3, 0], np.int8)
    real = b.dequantize("x", "x_real", scales, zeros, axis=1)
    b.quantize(b.node("Relu", [real], "kept"), "y", 0.125, np.array(-5, np.int8))
    model = b.model({"x": (np.int8, (2, 3, 4))}, {"y": (np.int8, (2, 3, 4))})
    (notice,) = import_onnx(model).notices
    for part in ("tensor 'x'", "3 scales along axis 1", "float32"):
        assert part in notice
    x = np.random.default_rng(3).integers(-128, 128, (2, 3, 4)).astype(np.int8)
    want = oracle.evaluate(model, {"x": x})["y"]
    np.testing.assert_array_equal(run_model(model, {"x": x})["y"], want)
