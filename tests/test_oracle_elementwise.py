"""Element-wise operators op by op in float32, and the place where rounding happens."""

from typing import Any

import numpy as np
import oracle
import pytest
from cases import ModelBuilder

INT8 = np.arange(-128, 128, dtype=np.int8)


def quantize(values: list[float], scale: float, zero: Any) -> list[int]:
    b = ModelBuilder()
    b.quantize("x", "y", scale, zero)
    x = np.array(values, np.float32)
    model = b.model({"x": (np.float32, x.shape)}, {"y": (zero.dtype, x.shape)})
    return oracle.evaluate(model, {"x": x})["y"].tolist()


def test_quantize_rounds_half_to_even_before_the_zero_point() -> None:
    assert quantize([-7.5], 1.0, np.array(-105, np.int8)) == [-113]
    assert quantize([0.5, 1.5, 2.5, -0.5, -1.5], 1.0, np.array(3, np.int8)) == [3, 5, 5, 3, 1]


def test_quantize_saturates_also_infinities() -> None:
    values = [1e30, -1e30, np.inf, -np.inf, 3e38]
    assert quantize(values, 1e-3, np.array(5, np.int8)) == [127, -128, 127, -128, 127]
    assert quantize(values, 1e-3, np.array(5, np.uint8)) == [255, 0, 255, 0, 255]


def test_quantize_refuses_nan() -> None:
    with pytest.raises(oracle.OracleError, match="NaN"):
        quantize([np.nan], 1.0, np.array(0, np.int8))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("scale", [0.1, 1 / 3, 2.0**-6, 1.7e-3])
def test_quantize_undoes_dequantize(dtype: Any, scale: float) -> None:
    limits = np.iinfo(dtype)
    x = np.arange(limits.min, limits.max + 1).astype(dtype)
    b = ModelBuilder()
    zero = np.array(7, dtype)
    b.quantize(b.dequantize("x", "x_real", scale, zero), "y", scale, zero)
    model = b.model({"x": (dtype, x.shape)}, {"y": (dtype, x.shape)})
    np.testing.assert_array_equal(oracle.evaluate(model, {"x": x})["y"], x)


def _add(form: str, y_scale: float, *, relu: bool = False) -> np.ndarray:
    """a (1/32, -7) + b (3/64, 5) -> (y_scale, 3) over every a with b = a reversed."""
    zeros = [np.array(v, np.int8) for v in (-7, 5, 3)]
    b = ModelBuilder(contrib=True)
    if form == "QLinearAdd":
        names = ["a", b.scale("a_scale", 1 / 32), b.constant("a_zero", zeros[0])]
        names += ["b", b.scale("b_scale", 3 / 64), b.constant("b_zero", zeros[1])]
        names += [b.scale("y_scale", y_scale), b.constant("y_zero", zeros[2])]
        b.node("QLinearAdd", names, "y", domain="com.microsoft")
    else:
        names = [b.dequantize("a", "a_real", 1 / 32, zeros[0])]
        names.append(b.dequantize("b", "b_real", 3 / 64, zeros[1]))
        last = b.node("Add", names, "sum")
        last = b.node("Relu", [last], "positive") if relu else last
        b.quantize(last, "y", y_scale, zeros[2])
    model = b.model({"a": (np.int8, INT8.shape), "b": (np.int8, INT8.shape)}, {})
    return oracle.evaluate(model, {"a": INT8, "b": INT8[::-1].copy()})["y"]


def test_qlinear_add_has_the_golden_of_its_qdq_form() -> None:
    np.testing.assert_array_equal(_add("QLinearAdd", 1 / 16), _add("QDQ", 1 / 16))


@pytest.mark.parametrize("relu", [False, True])
def test_add_is_float32_op_by_op(relu: bool) -> None:
    """Written out with numpy scalars, so that no array operation can fuse or widen."""
    want: list[int] = []
    for a, b in zip(INT8.tolist(), INT8[::-1].tolist(), strict=True):
        left = np.float32(a + 7) * np.float32(1 / 32)
        right = np.float32(b - 5) * np.float32(3 / 64)
        total = max(left + right, np.float32(0)) if relu else left + right
        steps = int(np.rint(total / np.float32(3 / 32)))
        want.append(min(max(steps + 3, -128), 127))
    assert _add("QDQ", 3 / 32, relu=relu).tolist() == want


def test_concat_with_equal_parameters_copies_and_with_others_rescales() -> None:
    def concat(second_scale: float) -> list[int]:
        b = ModelBuilder()
        names = [
            b.dequantize("a", "a_real", 0.5, None),
            b.dequantize("b", "b_real", second_scale, None),
        ]
        b.node("Concat", names, "joined", axis=0)
        b.quantize("joined", "y", 0.5, np.array(0, np.int8))
        x = np.array([1, -3], np.int8)
        model = b.model({"a": (np.int8, (2,)), "b": (np.int8, (2,))}, {})
        return oracle.evaluate(model, {"a": x, "b": x})["y"].tolist()

    assert concat(0.5) == [1, -3, 1, -3]
    assert concat(0.25) == [1, -3, 0, -2]


def test_residual_is_rounded_and_clamped_before_the_addition() -> None:
    """conv gives 300 steps, clamped to 127 by its own Q; then 127 + (-100) = 27, not 127."""
    b = ModelBuilder()
    zero = np.array(0, np.int8)
    w = b.constant("w", np.full((1, 1, 1, 1), 3, np.int8))
    names = [b.dequantize("x", "x_real", 1.0, zero), b.dequantize(w, "w_real", 1.0, zero)]
    b.quantize(b.node("Conv", names, "sum"), "c", 1.0, zero)
    names = [b.dequantize("c", "c_real", 1.0, zero), b.dequantize("r", "r_real", 1.0, zero)]
    b.quantize(b.node("Add", names, "total"), "y", 1.0, zero)
    shape = (1, 1, 1, 1)
    model = b.model({"x": (np.int8, shape), "r": (np.int8, shape)}, {})
    x, r = np.full(shape, 100, np.int8), np.full(shape, -100, np.int8)
    result = oracle.evaluate(model, {"x": x, "r": r})
    assert (result["c"].item(), result["y"].item()) == (127, 27)


def test_reshape_and_transpose_keep_integers() -> None:
    b = ModelBuilder()
    x = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    zero = np.array(-5, np.int8)
    last = b.dequantize("x", "x_real", 0.3, zero)
    last = b.node("Transpose", [last], "turned", perm=[0, 2, 1])
    shape = b.constant("shape", np.array([0, -1], np.int64))
    b.quantize(b.node("Reshape", [last, shape], "flat"), "y", 0.3, zero)
    y = oracle.evaluate(b.model({"x": (np.int8, x.shape)}, {}), {"x": x})["y"]
    np.testing.assert_array_equal(y, x.transpose(0, 2, 1).reshape(2, 12))


def test_reshape_that_does_not_fit_is_refused_by_name() -> None:
    b = ModelBuilder()
    shape = b.constant("shape", np.array([1, 256], np.int64))
    b.node("Reshape", ["x", shape], "y")
    x = np.zeros((2, 16, 4, 4), np.int8)
    with pytest.raises(oracle.OracleError, match="y_Reshape"):
        oracle.evaluate(b.model({"x": (np.int8, x.shape)}, {}), {"x": x})


def _unary(op: str, scale: float, y_scale: float, **attributes: Any) -> np.ndarray:
    """DQ (scale, 0) -> op -> Q (y_scale, -7) of every int8 value."""
    b = ModelBuilder(opset=14)
    last = b.node(op, [b.dequantize("x", "x_real", scale, None)], "real", **attributes)
    b.quantize(last, "y", y_scale, np.array(-7, np.int8))
    model = b.model({"x": (np.int8, INT8.shape)}, {"y": (np.int8, INT8.shape)})
    return oracle.evaluate(model, {"x": INT8})["y"]


@pytest.mark.parametrize(("op", "lowest"), [("Sigmoid", 0.0), ("Tanh", -1.0)])
@pytest.mark.parametrize("scale", [2.0**-9, 0.03, 0.5, 1e4])
def test_table_is_within_half_a_step_of_the_function(op: str, lowest: float, scale: float) -> None:
    """float64 is good to 1e-15, so half a step plus 1e-9 decides every entry but near-ties."""
    real = INT8.astype(np.float64) * np.float32(scale)
    function = np.tanh(real) if op == "Tanh" else 0.5 * (1 + np.tanh(real / 2))
    y_scale = np.float32((1 - lowest) / 130)
    y = _unary(op, scale, float(y_scale)).astype(np.float64)
    steps = function / float(y_scale) - 7
    assert (np.abs(y - np.clip(steps, -128, 127)) <= 0.5 + 1e-9).all()


def test_sigmoid_tie_goes_to_even_before_the_zero_point() -> None:
    """sigmoid(0) is 1/2 exactly: half a step of 1, three halves of 1/3, ... of the output."""
    zero = int(np.flatnonzero(INT8 == 0)[0])
    assert _unary("Sigmoid", 0.1, 1.0)[zero] == -7 + 0
    assert _unary("Sigmoid", 0.1, 0.125)[zero] == -7 + 4
    assert _unary("Tanh", 0.1, 1.0)[zero] == -7


def test_leaky_and_hard_functions_are_float32_op_by_op() -> None:
    x = INT8.astype(np.float32) * np.float32(0.05)
    leaky = np.where(x >= 0, x, x * np.float32(0.1))
    hard = np.clip(x * np.float32(0.2) + np.float32(0.5), np.float32(0), np.float32(1))
    for op, want, y_scale, attributes in (
        ("LeakyRelu", leaky, 0.05, {"alpha": 0.1}),
        ("HardSigmoid", hard, 1 / 255, {}),
    ):
        steps = np.rint(want / np.float32(y_scale)) - 7
        y = _unary(op, 0.05, y_scale, **attributes)
        np.testing.assert_array_equal(y, np.clip(steps, -128, 127))
