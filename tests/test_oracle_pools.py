"""Pools: output sizes, padding that never wins, and averages rounded once from exact rationals."""

from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from cases import ModelBuilder, crc32, fill_x, read_rows

SIZES = [
    # n, kernel, stride, pad, out
    ("MaxPool", 5, 3, 3, 1, 2),
    ("MaxPool", 5, 2, 2, 1, 3),
    ("MaxPool", 6, 3, 3, 1, 3),
    ("MaxPool", 32, 1, 2, 0, 16),
    ("MaxPool", 112, 3, 2, 0, 56),
    ("MaxPool", 112, 3, 2, 1, 57),
    ("AveragePool", 9, 4, 4, 2, 3),
]


def pool_int8(op: str, x: np.ndarray, **attributes: Any) -> np.ndarray:
    """A pool between DQ and Q with equal parameters (1/16, 0)."""
    return pool_scaled(op, x, (1 / 16, 0), (1 / 16, 0), **attributes)


def pool_scaled(
    op: str,
    x: np.ndarray,
    source: tuple[float, int],
    target: tuple[float, int],
    **attributes: Any,
) -> np.ndarray:
    """DQ (scale, zero) -> pool -> Q (scale, zero)."""
    b = ModelBuilder(opset=19)
    b.dequantize("x", "x_real", source[0], np.array(source[1], x.dtype))
    b.node(op, ["x_real"], "pooled", **attributes)
    b.quantize("pooled", "y", target[0], np.array(target[1], x.dtype))
    return oracle.evaluate(b.model({"x": (x.dtype, x.shape)}, {}), {"x": x})["y"]


def pool_float(op: str, x: np.ndarray, **attributes: Any) -> np.ndarray:
    b = ModelBuilder(opset=19)
    b.node(op, ["x"], "y", **attributes)
    model = b.model({"x": (np.float32, x.shape)}, {"y": (np.float32, ("n", "c", "h", "w"))})
    return oracle.evaluate(model, {"x": x})["y"]


@pytest.mark.parametrize(("op", "n", "kernel", "stride", "pad", "out"), SIZES)
def test_output_size_with_ceil_mode(
    op: str, n: int, kernel: int, stride: int, pad: int, out: int
) -> None:
    x = fill_x((1, 1, n, n))
    y = pool_int8(
        op,
        x,
        kernel_shape=[kernel] * 2,
        strides=[stride] * 2,
        pads=[pad] * 4,
        ceil_mode=1,
    )
    assert y.shape == (1, 1, out, out)


@pytest.mark.parametrize("row", read_rows("max_pools"), ids=lambda row: row["name"])
def test_max_pool_row(row: dict[str, Any]) -> None:
    y = pool_int8(
        "MaxPool",
        fill_x(tuple(row["x"])),
        kernel_shape=row["kernel"],
        strides=row["strides"],
        pads=row["pads"],
        ceil_mode=row["ceil_mode"],
    )
    assert (y.shape, int(y.sum(dtype=np.int64)), crc32(y)) == (
        tuple(row["out"]),
        row["sum"],
        row["crc"],
    )


def test_padding_never_wins_a_maximum() -> None:
    x = np.full((1, 1, 4, 4), -100, np.int8)
    y = pool_int8("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    assert y.tolist() == [[[[-100, -100], [-100, -100]]]]


@pytest.mark.parametrize("row", read_rows("global_averages"), ids=lambda row: row["name"])
def test_global_average_row(row: dict[str, Any]) -> None:
    source, target = (row["x_scale"], row["x_zero"]), (row["y_scale"], row["y_zero"])
    y = pool_scaled("GlobalAveragePool", fill_x(tuple(row["x"])), source, target)
    assert int(y.sum(dtype=np.int64)) == row["sum"]
    if row["crc"] is None:
        assert (y == 127).all()
    else:
        assert crc32(y) == row["crc"]


@pytest.mark.parametrize("count", [3, 7, 49, 125])
def test_average_is_the_exact_rational_rounded_half_to_even(count: int) -> None:
    """Every sum that rounds to -5..5; Python's Fraction says what is right."""
    sums = np.arange(-5 * count, 5 * count + 1)
    x = np.zeros((1, len(sums), 1, count), np.int8)
    for channel, total in enumerate(sums):
        quotient, rest = divmod(int(total), count)
        x[0, channel, 0, :] = quotient
        x[0, channel, 0, :rest] += 1
    y = pool_int8("GlobalAveragePool", x).reshape(-1)
    assert y.tolist() == [round(Fraction(int(total), count)) for total in sums]


def test_average_uses_the_float32_scales_exactly() -> None:
    """0.1 as float32 is above 1/10: the rational of the scales decides what looks like a tie."""
    x = np.array([1, 0], np.int8).reshape(1, 1, 1, 2)
    ratio = Fraction(float(np.float32(0.1))) / Fraction(float(np.float32(0.1)))
    assert ratio * Fraction(1, 2) == Fraction(1, 2)
    assert pool_scaled("GlobalAveragePool", x, (0.1, 0), (0.1, 0)).item() == 0
    above = Fraction(float(np.float32(0.3))) / Fraction(float(np.float32(0.1))) / 2
    want = round(above)
    assert pool_scaled("GlobalAveragePool", x, (0.3, 0), (0.1, 0)).item() == want
    assert above != Fraction(3, 2)


def test_average_include_pad_with_ceil_mode() -> None:
    x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    y = pool_float(
        "AveragePool",
        x,
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
        ceil_mode=1,
        count_include_pad=1,
    )
    want = [[1.5556, 3.3333, 2], [6.3333, 11, 6], [4.5, 7.5, 4]]
    np.testing.assert_allclose(y[0, 0], want, atol=5e-5)


def test_average_same_lower_include_pad() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 6, 2)
    y = pool_float(
        "AveragePool", x, kernel_shape=[5, 1], auto_pad="SAME_LOWER", count_include_pad=1
    )
    np.testing.assert_allclose(y[0, 0, :, 0], [1.2, 2.4, 4, 6, 5.6, 4.8], rtol=1e-6)


def test_average_ceil_mode_without_pad_divides_by_what_is_there() -> None:
    x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    y = pool_float("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    assert y.reshape(-1).tolist() == [6, 7.5, 12, 13.5]


def test_integer_average_counts_padding_as_real_zero() -> None:
    """Zero point 10: four elements 14 and five padded zeros average to 16/9 steps above it."""
    x = np.full((1, 1, 2, 2), 14, np.int8)
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    included = pool_scaled(
        "AveragePool", x, (1.0, 10), (1.0, 10), **attributes, count_include_pad=1
    )
    excluded = pool_scaled("AveragePool", x, (1.0, 10), (1.0, 10), **attributes)
    assert included.item() == 10 + round(Fraction(16, 9))
    assert excluded.item() == 14


def test_qlinear_average_equals_the_qdq_form() -> None:
    x = fill_x((1, 4, 7, 7), np.uint8)
    b = ModelBuilder(contrib=True)
    names = ["x", b.scale("x_scale", 0.1), b.constant("x_zero", np.uint8(100))]
    names += [b.scale("y_scale", 0.03), b.constant("y_zero", np.uint8(128))]
    b.node("QLinearGlobalAveragePool", names, "all", domain="com.microsoft")
    b.node("QLinearAveragePool", names, "some", domain="com.microsoft", kernel_shape=[3, 3])
    result = oracle.evaluate(b.model({"x": (x.dtype, x.shape)}, {}), {"x": x})
    for name, op, attributes in (
        ("all", "GlobalAveragePool", {}),
        ("some", "AveragePool", {"kernel_shape": [3, 3]}),
    ):
        want = pool_scaled(op, x, (0.1, 100), (0.03, 128), **attributes)
        np.testing.assert_array_equal(result[name], want)
