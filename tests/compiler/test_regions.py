"""Operators that pick, repeat and pad elements; padding that costs nothing."""

from typing import Any

import numpy as np
import onnx
import oracle
import pytest
from cases import ModelBuilder
from plans import run_model

from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.ir.ops import AccelConv2d, Pick
from vitral.compiler.pipeline import lower
from vitral.errors import CompileError

SHAPE = (2, 3, 5, 7)
I64 = np.int64


def region(
    kind: str,
    inputs: list[Any],
    attributes: dict[str, Any],
    *,
    dtype: Any = np.int8,
    outputs: int = 1,
    opset: int = 18,
) -> onnx.ModelProto:
    """DequantizeLinear, the operator with constant inputs behind its first, QuantizeLinear each."""
    b = ModelBuilder(opset=opset)
    zero = np.array(7, dtype)
    names = [b.dequantize("x", "x_real", 0.5, zero)]
    for number, value in enumerate(inputs):
        names.append("" if value is None else b.constant(f"c{number}", value))
    results = [f"r{n}" for n in range(outputs)]
    b.node(kind, names, "r0", **attributes)
    for n, result in enumerate(results):
        b.quantize(result, f"y{n}", 0.5, zero)
    unknown = {f"y{n}": (dtype, ()) for n in range(outputs)}
    probe = _with_results(b.model({"x": (dtype, SHAPE)}, unknown), results)
    found = oracle.evaluate(probe, {"x": np.zeros(SHAPE, dtype)})
    known = {name: (dtype, found[name].shape) for name in unknown}
    return _with_results(b.model({"x": (dtype, SHAPE)}, known), results)


def _with_results(model: onnx.ModelProto, results: list[str]) -> onnx.ModelProto:
    (node,) = (node for node in model.graph.node if "r0" in node.output)
    node.output[:] = results
    return model


def check(model: onnx.ModelProto, dtype: Any = np.int8) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(5).integers(limits.min, limits.max + 1, SHAPE).astype(dtype)
    want = oracle.evaluate(model, {"x": x}, outputs_only=True)
    actual = run_model(model, {"x": x})
    for name, codes in want.items():
        np.testing.assert_array_equal(actual[name], codes, err_msg=name)


CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Pad", [np.array([0, 0, 1, 2, 0, 0, 3, 0], I64)], {}),
    ("Pad", [np.array([0, 0, 1, 2, 0, 0, 3, 0], I64), np.float32(1.5)], {}),
    ("Pad", [np.array([1, 2], I64), np.float32(-3), np.array([-1], I64)], {}),
    ("Pad", [np.array([0, 1, 2, 3, 1, 0, 2, 1], I64)], {"mode": "edge"}),
    ("Pad", [np.array([0, 0, 2, 3, 0, 0, 4, 1], I64)], {"mode": "reflect"}),
    ("Slice", [np.array([1, 2], I64), np.array([5, -1], I64), np.array([2, 3], I64)], {}),
    (
        "Slice",
        [
            np.array([-1, 6], I64),
            np.array([-99, 0], I64),
            np.array([2, -1], I64),
            np.array([-1, -2]),
        ],
        {},
    ),
    ("Gather", [np.array([2, 0, 0, -1], I64)], {"axis": 1}),
    ("Tile", [np.array([1, 2, 1, 3], I64)], {}),
    ("Expand", [np.array([3, 1, 1, 1, 1], I64)], {}),
    ("Gather", [np.array(-2, I64)], {"axis": 3}),
    ("Resize", [None, np.array([1, 1, 2, 3], np.float32)], {"mode": "nearest"}),
    ("Resize", [None, np.array([1, 1, 0.6, 1.5], np.float32)], {"nearest_mode": "ceil"}),
    ("Resize", [None, None, np.array([2, 3, 9, 4], I64)], {"nearest_mode": "round_prefer_ceil"}),
    (
        "Resize",
        [None, np.array([1, 1, 2, 2], np.float32)],
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("kind", "inputs", "attributes"), CASES, ids=str)
def test_region_has_the_bytes_of_the_oracle(
    kind: str, inputs: list[Any], attributes: dict[str, Any], dtype: Any
) -> None:
    model = region(kind, inputs, attributes, dtype=dtype)
    check(model, dtype)
    assert any(isinstance(op, Pick) for op in lower(import_onnx(model)).ops)


@pytest.mark.parametrize("sizes", [None, [1, 4, 2]])
def test_split_gives_all_its_parts(sizes: list[int] | None) -> None:
    inputs = [] if sizes is None else [np.array(sizes, I64)]
    options = {"axis": 3, "num_outputs": 3} if sizes is None else {"axis": -1}
    check(region("Split", inputs, options, outputs=3))


def test_padding_in_front_of_a_convolution_becomes_its_own() -> None:
    b = ModelBuilder()
    pads = b.constant("pads", np.array([0, 0, 1, 2, 0, 0, 3, 0], I64))
    padded = b.node("Pad", [b.dequantize("x", "x_real", 0.5, np.array(7, np.int8)), pads], "p")
    b.quantize(padded, "p_codes", 0.5, np.array(7, np.int8))
    w = np.random.default_rng(2).integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    names = [
        b.dequantize("p_codes", "p_real", 0.5, np.array(7, np.int8)),
        b.dequantize(b.constant("w", w), "w_real", 1 / 64, None),
    ]
    b.quantize(b.node("Conv", names, "s", pads=[0, 1, 0, 0]), "y", 4.0, np.array(0, np.int8))
    model = b.model({"x": (np.int8, SHAPE)}, {"y": (np.int8, (2, 4, 7, 8))})
    check(model)
    (conv,) = lower(import_onnx(model)).ops
    assert isinstance(conv, AccelConv2d)
    assert conv.pads == (1, 3, 3, 0)


def test_padding_with_another_value_stays() -> None:
    b = ModelBuilder()
    pads = b.constant("pads", np.array([0, 0, 1, 1, 0, 0, 1, 1], I64))
    fill = b.constant("fill", np.float32(2))
    real = b.dequantize("x", "x_real", 0.5, np.array(7, np.int8))
    padded = b.node("Pad", [real, pads, fill], "p")
    b.quantize(padded, "p_codes", 0.5, np.array(7, np.int8))
    w = np.random.default_rng(2).integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    names = [
        b.dequantize("p_codes", "p_real", 0.5, np.array(7, np.int8)),
        b.dequantize(b.constant("w", w), "w_real", 1 / 64, None),
    ]
    b.quantize(b.node("Conv", names, "s"), "y", 4.0, np.array(0, np.int8))
    model = b.model({"x": (np.int8, SHAPE)}, {"y": (np.int8, (2, 4, 5, 7))})
    check(model)
    assert [op.kind for op in lower(import_onnx(model)).ops] == ["pick", "vta.conv2d"]


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes", "text"),
    [
        ("Pad", [np.array([0, 0, -1, 0, 0, 0, 0, 0], I64)], {}, "needs 8 pads >= 0"),
        ("Pad", [np.array([0, 0, 9, 0, 0, 0, 0, 0], I64)], {"mode": "reflect"}, "fit mode reflect"),
        ("Slice", [np.array([3], I64), np.array([3], I64), np.array([2], I64)], {}, "one element"),
        ("Slice", [np.array([0], I64), np.array([3], I64), np.array([4], I64)], {}, "needs axes"),
        ("Gather", [np.array([5], I64)], {"axis": 1}, "needs indices of 3"),
        ("Resize", [None, np.array([1, 1, 2, 2], np.float32)], {"mode": "cubic"}, "mode nearest"),
        ("Resize", [None, np.array([1, 2], np.float32)], {}, "needs 4 scales"),
    ],
)
def test_region_that_makes_no_sense_is_refused(
    kind: str, inputs: list[Any], attributes: dict[str, Any], text: str
) -> None:
    b = ModelBuilder()
    names = [b.dequantize("x", "x_real", 0.5, np.array(7, np.int8))]
    for number, value in enumerate(inputs):
        names.append("" if value is None else b.constant(f"c{number}", value))
    b.quantize(b.node(kind, names, "r", **attributes), "y", 0.5, np.array(7, np.int8))
    model = b.model({"x": (np.int8, SHAPE)}, {"y": (np.int8, SHAPE)})
    with pytest.raises(CompileError, match=f"node 'r_{kind}'.*{text}"):
        import_onnx(model)
