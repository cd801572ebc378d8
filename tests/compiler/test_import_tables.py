"""Pools, Gemm tables and per-axis constants with known right values, at the product's edge."""

from typing import Any

import numpy as np
import pytest
from cases import ModelBuilder, crc32, fill_x, read_rows
from plans import run_model

A = np.array([[10, -20, 30]], np.int8)
B = np.array([[1, -2], [3, 4], [-5, 6]], np.int8)
SCALES = np.array([0.25, 0.5], np.float32)
BIAS = np.array([8, -16], np.int32)


def gemm(bias: str | None, *, trans_b: bool = False, **attributes: Any) -> list[int]:
    """y of the table's Gemm; bias 'int32', 'row' (shape (1, 2)), 'float' or None."""
    b = ModelBuilder()
    right, axis = (B.T.copy(), 0) if trans_b else (B, 1)
    names = [b.dequantize("a", "a_real", 0.5, None)]
    names.append(b.dequantize(b.constant("b", right), "b_real", SCALES, None, axis))
    product = np.float32(0.5) * SCALES
    if bias == "float":
        names.append(b.constant("c", BIAS.astype(np.float32) * product))
    elif bias is not None:
        value = BIAS[None] if bias == "row" else BIAS
        names.append(b.dequantize(b.constant("c", value), "c_real", product, None, value.ndim - 1))
    b.node("Gemm", names, "sum", transB=int(trans_b), **attributes)
    b.quantize("sum", "y", 1.0, np.array(0, np.int8))
    a = A.T.copy() if attributes.get("transA") else A
    model = b.model({"a": (np.int8, a.shape)}, {"y": (np.int8, (1, 2))})
    return run_model(model, {"a": a})["y"][0].tolist()


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("bias", ["int32", "row", "float"])
def test_gemm_bias_in_every_form_and_layout(bias: str, trans_b: bool) -> None:
    assert gemm(bias, trans_b=trans_b) == [-24, 16]


def test_gemm_without_bias_and_with_beta_0() -> None:
    assert gemm(None) == gemm("float", beta=0.0) == [-25, 20]


@pytest.mark.parametrize("bias", ["int32", "float"])
def test_gemm_alpha_and_beta(bias: str) -> None:
    assert gemm(bias, alpha=2.0) == [-49, 36]
    assert gemm(bias, beta=2.0) == [-23, 12]


def test_gemm_trans_a_is_not_ignored() -> None:
    assert gemm("int32", transA=1) == [-24, 16]


def test_matmul_with_both_zero_points_and_a_float_result() -> None:
    a = np.array([[238, 115, 94], [245, 111, 102], [158, 225, 48]], np.uint8)
    right = np.array([[25, 36, 125], [42, -123, 76], [-81, -86, 35]], np.int8)
    b = ModelBuilder()
    names = [b.dequantize("a", "a_real", 1.0, np.array(42, np.uint8))]
    names.append(b.dequantize(b.constant("b", right), "b_real", 1.0, np.array(-26, np.int8)))
    b.node("MatMul", names, "y")
    model = b.model({"a": (np.uint8, (3, 3))}, {"y": (np.float32, (3, 3))})
    want = [[12100, 1951, 40214], [11745, 2293, 41351], [18030, -10919, 36548]]
    assert run_model(model, {"a": a})["y"].tolist() == want


def pool(
    op: str, x: np.ndarray, source: tuple[float, int], target: tuple[float, int], **attributes: Any
) -> np.ndarray:
    """DQ (scale, zero) -> pool -> Q (scale, zero)."""
    b = ModelBuilder(opset=19)
    b.dequantize("x", "x_real", source[0], np.array(source[1], x.dtype))
    b.node(op, ["x_real"], "pooled", **attributes)
    b.quantize("pooled", "y", target[0], np.array(target[1], x.dtype))
    model = b.model({"x": (x.dtype, x.shape)}, {"y": (x.dtype, ("n", "c", "h", "w"))})
    return run_model(model, {"x": x})["y"]


@pytest.mark.parametrize("row", read_rows("max_pools"), ids=lambda row: row["name"])
def test_max_pool_row(row: dict[str, Any]) -> None:
    unit = (1 / 16, 0)
    y = pool(
        "MaxPool",
        fill_x(tuple(row["x"])),
        unit,
        unit,
        kernel_shape=row["kernel"],
        strides=row["strides"],
        pads=row["pads"],
        ceil_mode=row["ceil_mode"],
    )
    assert (y.shape, crc32(y)) == (tuple(row["out"]), row["crc"])


@pytest.mark.parametrize("row", read_rows("global_averages"), ids=lambda row: row["name"])
def test_global_average_row(row: dict[str, Any]) -> None:
    source, target = (row["x_scale"], row["x_zero"]), (row["y_scale"], row["y_zero"])
    y = pool("GlobalAveragePool", fill_x(tuple(row["x"])), source, target)
    assert int(y.sum(dtype=np.int64)) == row["sum"]
    if row["crc"] is not None:
        assert crc32(y) == row["crc"]


def test_padding_never_wins_a_maximum() -> None:
    x = np.full((1, 1, 4, 4), -100, np.int8)
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    y = pool("MaxPool", x, (1.0, 0), (1.0, 0), **window)
    assert (y == -100).all()


@pytest.mark.parametrize(
    ("op", "n", "kernel", "stride", "pad", "out"),
    [
        ("MaxPool", 5, 3, 3, 1, 2),
        ("MaxPool", 5, 2, 2, 1, 3),
        ("MaxPool", 6, 3, 3, 1, 3),
        ("MaxPool", 32, 1, 2, 0, 16),
        ("MaxPool", 112, 3, 2, 0, 56),
        ("MaxPool", 112, 3, 2, 1, 57),
        ("AveragePool", 9, 4, 4, 2, 3),
    ],
)
def test_output_size_with_ceil_mode(
    op: str, n: int, kernel: int, stride: int, pad: int, out: int
) -> None:
    window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    y = pool(op, fill_x((1, 1, n, n)), (1.0, 0), (1.0, 0), ceil_mode=1, **window)
    assert y.shape == (1, 1, out, out)


AVERAGES = [
    (
        np.arange(1, 17).reshape(4, 4),
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "count_include_pad": 1},
        [[1.5556, 3.3333, 2], [6.3333, 11, 6], [4.5, 7.5, 4]],
    ),
    (
        np.arange(12).reshape(6, 2),
        {"kernel_shape": [5, 1], "auto_pad": "SAME_LOWER", "count_include_pad": 1},
        [[1.2, 9 / 5], [2.4, 16 / 5], [4, 5], [6, 7], [5.6, 6.4], [4.8, 5.4]],
    ),
    (
        np.arange(1, 17).reshape(4, 4),
        {"kernel_shape": [3, 3], "strides": [2, 2]},
        [[6, 7.5], [12, 13.5]],
    ),
]


@pytest.mark.parametrize(("values", "attributes", "want"), AVERAGES)
@pytest.mark.parametrize("quantized", [False, True])
def test_average(values: np.ndarray, attributes: Any, want: Any, quantized: bool) -> None:
    """The average of floats, and of codes whose result is left in float."""
    b = ModelBuilder(opset=19)
    dtype = np.int8 if quantized else np.float32
    source = b.dequantize("x", "x_real", 1.0, None) if quantized else "x"
    b.node("AveragePool", [source], "y", ceil_mode=1, **attributes)
    x = values.astype(dtype)[None, None]
    model = b.model({"x": (dtype, x.shape)}, {"y": (np.float32, ("n", "c", "h", "w"))})
    y = run_model(model, {"x": x})["y"]
    np.testing.assert_allclose(y[0, 0], want, atol=5e-5)


@pytest.mark.parametrize("count", [3, 49, 125])
def test_average_is_the_exact_rational_with_ties_to_even(count: int) -> None:
    """Python's round() of the exact fraction says what is right, for every sum of -5..5 steps."""
    from fractions import Fraction

    sums = range(-5 * count, 5 * count + 1)
    x = np.zeros((1, len(sums), 1, count), np.int8)
    for channel, total in enumerate(sums):
        quotient, rest = divmod(total, count)
        x[0, channel, 0] = quotient
        x[0, channel, 0, :rest] += 1
    for ratio in (1, 3, 0.7):
        y = pool("GlobalAveragePool", x, (ratio, 0), (1.0, 2)).reshape(-1)
        scale = Fraction(float(np.float32(ratio)))
        assert y.tolist() == [2 + round(Fraction(total, count) * scale) for total in sums]


def test_dequantize_per_axis_table() -> None:
    b = ModelBuilder()
    b.dequantize("x", "y", [0.5, 2, 10], np.array([0, 1, -1], np.int8), axis=1)
    model = b.model({"x": (np.int8, (2, 3))}, {"y": (np.float32, (2, 3))})
    x = np.array([[1, 1, 1], [4, 4, 4]], np.int8)
    assert run_model(model, {"x": x})["y"].tolist() == [[0.5, 0, 20], [2, 6, 50]]


def test_per_axis_weights_keep_their_codes_through_a_transpose() -> None:
    """DQ(axis 0) -> Transpose -> MatMul, as exporters write a linear layer."""
    rng = np.random.default_rng(3)
    w = rng.integers(-127, 128, (5, 8)).astype(np.int8)
    scales = np.exp2(rng.uniform(-8, -6, 5)).astype(np.float32)
    b = ModelBuilder()
    real = b.dequantize(b.constant("w", w), "w_real", scales, None, 0)
    turned = b.node("Transpose", [real], "turned", perm=[1, 0])
    last = b.node("MatMul", [b.dequantize("x", "x_real", 0.1, None), turned], "sum")
    b.quantize(last, "y", 0.3, np.array(0, np.int8))
    model = b.model({"x": (np.int8, (3, 8))}, {"y": (np.int8, (3, 5))})
    x = rng.integers(-128, 128, (3, 8)).astype(np.int8)
    m = np.float32(0.1) * scales / np.float32(0.3)
    total = x.astype(np.int64) @ w.T.astype(np.int64)
    want = np.clip(np.rint(total.astype(np.float32) * m), -128, 127)
    np.testing.assert_array_equal(run_model(model, {"x": x})["y"], want)


def test_shape_arithmetic_of_a_reshape_is_folded() -> None:
    """Shape -> Gather -> Concat with -1 -> Reshape, as exporters write x.view(x.size(0), -1)."""
    b = ModelBuilder()
    batch = b.node("Gather", [b.node("Shape", ["x"], "s"), b.constant("i", np.array([0]))], "n")
    target = b.node("Concat", [batch, b.constant("rest", np.array([-1]))], "target", axis=0)
    b.node("Reshape", ["x", target], "y")
    model = b.model({"x": (np.int8, ("N", 3, 4, 5))}, {"y": (np.int8, ("N", 60))})
    x = np.arange(120).astype(np.int8).reshape(2, 3, 4, 5)
    y = run_model(model, {"x": x}, shapes={"N": 2})["y"]
    np.testing.assert_array_equal(y, x.reshape(2, 60))


def test_rank_3_convolution_equals_its_rank_4_form() -> None:
    rng = np.random.default_rng(10)
    x = rng.integers(-128, 128, (1, 16, 32)).astype(np.int8)
    w = rng.integers(-127, 128, (16, 16, 5)).astype(np.int8)

    def run(x: np.ndarray, w: np.ndarray, pads: list[int]) -> np.ndarray:
        b = ModelBuilder()
        names = [b.dequantize("x", "x_real", 2.0**-6, None)]
        names.append(b.dequantize(b.constant("w", w), "w_real", 2.0**-9, None))
        b.quantize(b.node("Conv", names, "sum", pads=pads), "y", 2.0**-4, np.array(0, np.int8))
        model = b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, x.shape)})
        return run_model(model, {"x": x})["y"]

    flat = run(x, w, [2, 2])
    assert flat.shape == (1, 16, 32)
    np.testing.assert_array_equal(flat, run(x[:, :, None], w[:, :, None], [0, 2, 0, 2])[:, :, 0])


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_auto_pad_equals_the_pads_it_stands_for(mode: str) -> None:
    """Height 8, kernel 3, stride 2 needs one row of padding: below (UPPER) or above (LOWER)."""
    pads = {"SAME_UPPER": [0, 1, 1, 1], "SAME_LOWER": [1, 1, 0, 1], "VALID": [0, 0, 0, 0]}[mode]
    x, w = fill_x((1, 2, 8, 7)), fill_x((3, 2, 3, 3))

    def run(**attributes: Any) -> np.ndarray:
        b = ModelBuilder()
        names = [b.dequantize("x", "x_real", 1.0, None)]
        names.append(b.dequantize(b.constant("w", w), "w_real", 1.0, None))
        last = b.node("Conv", names, "sum", strides=[2, 2], **attributes)
        b.quantize(last, "y", 500.0, np.array(0, np.int8))
        model = b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, ("n", "c", "h", "w"))})
        return run_model(model, {"x": x})["y"]

    np.testing.assert_array_equal(run(auto_pad=mode), run(pads=pads))


def test_same_padding_is_never_negative() -> None:
    """Stride 3 beyond kernel 1: SAME pads clamp to 0, so elements 0, 3, 6 are taken."""
    b = ModelBuilder()
    names = [b.dequantize("x", "x_real", 1.0, None)]
    w = b.constant("w", np.ones((1, 1, 1, 1), np.int8))
    names.append(b.dequantize(w, "w_real", 1.0, None))
    b.node("Conv", names, "sum", auto_pad="SAME_UPPER", strides=[1, 3])
    b.quantize("sum", "y", 1.0, np.array(0, np.int8))
    x = np.arange(8, dtype=np.int8).reshape(1, 1, 1, 8)
    model = b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, (1, 1, 1, 3))})
    assert run_model(model, {"x": x})["y"].reshape(-1).tolist() == [0, 3, 6]


def test_notices_say_what_was_changed_in_a_bias() -> None:
    from vitral.compiler.frontends.onnx import import_onnx

    def notices(bias: Any, scale: float | None) -> tuple[str, ...]:
        b = ModelBuilder()
        names = [b.dequantize("a", "a_real", 0.5, None)]
        names.append(b.dequantize(b.constant("b", B), "b_real", 0.5, None))
        c = b.constant("c", bias)
        names.append(c if scale is None else b.dequantize(c, "c_real", scale, None))
        b.quantize(b.node("Gemm", names, "sum"), "y", 1.0, np.array(0, np.int8))
        return import_onnx(b.model({"a": (np.int8, (1, 3))}, {"y": (np.int8, (1, 2))})).notices

    assert notices(BIAS, 0.25) == ()
    assert "bias rescaled" in notices(BIAS, 0.2)[0]
    assert "float bias quantized" in notices(BIAS.astype(np.float32), None)[0]


@pytest.mark.parametrize(("opset", "axis"), [(11, 1), (11, 2), (13, 1), (13, -1)])
def test_softmax_is_a_float_island_over_the_axes_of_its_opset(opset: int, axis: int) -> None:
    x = np.random.default_rng(8).normal(size=(2, 3, 4)).astype(np.float32)
    b = ModelBuilder(opset=opset)
    b.node("Softmax", ["x"], "y", axis=axis)
    model = b.model({"x": (np.float32, x.shape)}, {"y": (np.float32, x.shape)})
    y = run_model(model, {"x": x})["y"]
    rows = np.exp(x.astype(np.float64))
    rows = (
        rows.reshape(int(np.prod(x.shape[:axis])), -1)
        if opset < 13
        else np.moveaxis(rows, axis, -1)
    )
    rows = rows / rows.sum(axis=-1, keepdims=True)
    want = rows.reshape(x.shape) if opset < 13 else np.moveaxis(rows, -1, axis)
    np.testing.assert_allclose(y, want, rtol=1e-6)


def test_sum_is_added_from_left_to_right() -> None:
    """1e8 + -1e8 + 1 is 1; any other order loses the 1 in float32."""
    b = ModelBuilder()
    b.node("Sum", ["a", "b", "c"], "y")
    names = ("a", "b", "c")
    model = b.model(dict.fromkeys(names, (np.float32, (1,))), {"y": (np.float32, (1,))})
    feeds = {n: np.array([v], np.float32) for n, v in zip(names, (1e8, -1e8, 1), strict=True)}
    assert run_model(model, feeds)["y"].tolist() == [1]


def test_sum_of_two_quantized_tensors_is_their_add() -> None:
    def run(op: str) -> list[int]:
        b = ModelBuilder()
        names = [b.dequantize("a", "ar", 1 / 32, None), b.dequantize("b", "br", 3 / 64, None)]
        b.quantize(b.node(op, names, "total"), "y", 1 / 16, np.array(3, np.int8))
        codes = np.arange(-128, 128).astype(np.int8)
        model = b.model(dict.fromkeys("ab", (np.int8, (256,))), {"y": (np.int8, (256,))})
        return run_model(model, {"a": codes, "b": codes[::-1].copy()})["y"].tolist()

    assert run("Sum") == run("Add")


@pytest.mark.parametrize("alpha", [0.5, -1.0])
def test_max_pool_behind_a_function_that_turns_the_order_around(alpha: float) -> None:
    """LeakyRelu with alpha -1 is the absolute value: the largest code is not the largest real."""
    x = np.array([-100, 7, 50, -60], np.int8).reshape(1, 1, 1, 4)
    b = ModelBuilder()
    last = b.node("LeakyRelu", [b.dequantize("x", "xr", 0.5, None)], "act", alpha=alpha)
    last = b.node("MaxPool", [last], "pooled", kernel_shape=[1, 2])
    b.quantize(last, "y", 0.5, np.array(0, np.int8))
    model = b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, (1, 1, 1, 3))})
    want = [7, 50, 50] if alpha > 0 else [100, 50, 60]
    assert run_model(model, {"x": x})["y"].reshape(-1).tolist() == want
