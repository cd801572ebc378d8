"""Operators that move, pick and pad elements keep integers; onnxruntime says where they go."""

from typing import Any

import numpy as np
import onnxruntime
import oracle
import pytest
from cases import ModelBuilder

X = np.arange(2 * 3 * 4 * 5, dtype=np.int8).reshape(2, 3, 4, 5)
CASES: dict[str, tuple[str, int, list[Any], dict[str, Any]]] = {
    # name: operator, opset, constant inputs after the first, attributes
    "transpose": ("Transpose", 13, [], {"perm": [0, 2, 3, 1]}),
    "reshape with 0 and -1": ("Reshape", 13, [np.array([0, -1, 10])], {}),
    "flatten at 2": ("Flatten", 13, [], {"axis": 2}),
    "flatten at -1": ("Flatten", 13, [], {"axis": -1}),
    "unsqueeze": ("Unsqueeze", 13, [np.array([0, 3])], {}),
    "slice with steps": (
        "Slice",
        13,
        [np.array([1, -1]), np.array([4, -100]), np.array([2, 3]), np.array([2, -2])],
        {},
    ),
    "gather": ("Gather", 13, [np.array([[2, 0], [-1, 1]])], {"axis": 1}),
    "pad zero": ("Pad", 13, [np.array([0, 0, 0, 1, 0, 1, 0, 0])], {}),
    "pad two": ("Pad", 13, [np.array([0, 0, 1, 0, 0, 0, 0, 1]), np.array(2, np.float32)], {}),
    "pad edge": ("Pad", 13, [np.array([0, 0, 1, 2, 0, 0, 0, 3])], {"mode": "edge"}),
    "pad reflect": ("Pad", 13, [np.array([0, 0, 1, 2, 0, 0, 2, 3])], {"mode": "reflect"}),
    "nearest x2": (
        "Resize",
        13,
        [np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)],
        {},
    ),
    "nearest x3 asymmetric": (
        "Resize",
        13,
        [np.array([], np.float32), np.array([1, 1, 3, 3], np.float32)],
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    "nearest to 7x3": (
        "Resize",
        13,
        [np.array([], np.float32), np.array([], np.float32), np.array([2, 3, 7, 3])],
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    "identity": ("Identity", 13, [], {}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("zero", [0, -9])
def test_move_on_quantized_data(name: str, zero: int) -> None:
    op, opset, constants, attributes = CASES[name]
    b = ModelBuilder(opset=opset)
    zero_point = np.array(zero, np.int8)
    real = b.dequantize("x", "x_real", 0.5, zero_point)
    names = [real, *(b.constant(f"c{i}", c) for i, c in enumerate(constants))]
    b.quantize(b.node(op, names, "moved", **attributes), "y", 0.5, zero_point)
    model = b.model({"x": (np.int8, X.shape)}, {"y": (np.int8, ("a",))})
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    want = np.asarray(session.run(None, {"x": X})[0])
    oracle.compare({"y": want}, {"y": oracle.evaluate(model, {"x": X})["y"]})


def test_split_gives_every_part() -> None:
    b = ModelBuilder()
    model = b.model({"x": (np.int8, X.shape)}, {})
    node = model.graph.node.add(op_type="Split", name="split")
    node.input.extend(["x", "sizes"])
    node.output.extend(["first", "second"])
    node.attribute.add(name="axis", type=2, i=1)
    sizes = model.graph.initializer.add(name="sizes", data_type=7, dims=[2])
    sizes.int64_data.extend([1, 2])
    result = oracle.evaluate(model, {"x": X})
    np.testing.assert_array_equal(result["first"], X[:, :1])
    np.testing.assert_array_equal(result["second"], X[:, 1:])


def test_shape_arithmetic_of_a_dynamic_reshape() -> None:
    """Shape -> Gather -> Concat with -1 -> Reshape, as exporters write x.view(x.size(0), -1)."""
    b = ModelBuilder()
    batch = b.node("Gather", [b.node("Shape", ["x"], "s"), b.constant("i", np.array([0]))], "n")
    target = b.node("Concat", [batch, b.constant("rest", np.array([-1]))], "target", axis=0)
    b.node("Reshape", ["x", target], "y")
    y = oracle.evaluate(b.model({"x": (np.int8, X.shape)}, {}), {"x": X})["y"]
    np.testing.assert_array_equal(y, X.reshape(2, 60))


def test_padding_that_is_no_quantized_value_goes_through_float() -> None:
    """0.3 is no multiple of 0.5: it is rounded once, by the Q that follows, in its own scale."""
    b = ModelBuilder()
    names = [b.dequantize("x", "x_real", 0.5, None), b.constant("pads", np.array([1, 0]))]
    b.node("Pad", [*names, b.scale("fill", 0.3)], "padded")
    b.quantize("padded", "y", 0.1, np.array(0, np.int8))
    x = np.array([1, 2], np.int8)
    y = oracle.evaluate(b.model({"x": (np.int8, x.shape)}, {}), {"x": x})["y"]
    assert y.tolist() == [3, 5, 10]


def test_softmax_is_a_float_island() -> None:
    b = ModelBuilder()
    b.node("Softmax", ["x"], "y")
    model = b.model({"x": (np.float32, (1, 3))}, {"y": (np.float32, (1, 3))})
    y = oracle.evaluate(model, {"x": np.log(np.array([[1, 2, 5]], np.float32))})["y"]
    np.testing.assert_allclose(y, [[0.125, 0.25, 0.625]], rtol=1e-6)
