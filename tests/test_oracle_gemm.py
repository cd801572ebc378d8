"""Gemm and MatMul: layouts, bias forms, alpha and beta, sums that narrow kernels get wrong."""

from typing import Any

import numpy as np
import oracle
import pytest
from cases import ModelBuilder

A = np.array([[10, -20, 30]], np.int8)
B = np.array([[1, -2], [3, 4], [-5, 6]], np.int8)
SCALES = np.array([0.25, 0.5], np.float32)
BIAS = np.array([8, -16], np.int32)
PRODUCT_SCALES = np.float32(0.5) * SCALES


def gemm(bias: str | None, *, trans_b: bool = False, **attributes: Any) -> list[int]:
    """y of the table's Gemm; bias 'int32', 'row' (shape (1, 2)), 'float' or None."""
    b = ModelBuilder()
    right, axis = (B.T.copy(), 0) if trans_b else (B, 1)
    names = [b.dequantize("a", "a_real", 0.5, None)]
    names.append(b.dequantize(b.constant("b", right), "b_real", SCALES, None, axis))
    if bias == "float":
        names.append(b.constant("c", BIAS.astype(np.float32) * PRODUCT_SCALES))
    elif bias is not None:
        value = BIAS[None] if bias == "row" else BIAS
        axis = value.ndim - 1
        names.append(b.dequantize(b.constant("c", value), "c_real", PRODUCT_SCALES, None, axis))
    b.node("Gemm", names, "sum", transB=int(trans_b), **attributes)
    b.quantize("sum", "y", 1.0, np.array(0, np.int8))
    a = A.T.copy() if attributes.get("transA") else A
    return oracle.evaluate(b.model({"a": (np.int8, a.shape)}, {}), {"a": a})["y"][0].tolist()


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("bias", ["int32", "row", "float"])
def test_bias_in_every_form_and_layout(bias: str, trans_b: bool) -> None:
    assert gemm(bias, trans_b=trans_b) == [-24, 16]


def test_without_bias() -> None:
    assert gemm(None) == [-25, 20]


def test_alpha_scales_the_product_not_the_bias() -> None:
    assert gemm("float", alpha=2.0) == [-49, 36]
    assert gemm("int32", alpha=2.0) == [-49, 36]


def test_beta_scales_the_bias() -> None:
    assert gemm("float", beta=0.0) == [-25, 20]
    assert gemm("float", beta=2.0) == [-23, 12]


def test_trans_a_is_not_ignored() -> None:
    assert gemm("int32", transA=1) == [-24, 16]


def test_bias_beyond_the_accumulator_is_refused_with_its_channel() -> None:
    b = ModelBuilder()
    names = [b.dequantize("a", "a_real", 0.5, None)]
    names.append(b.dequantize(b.constant("b", B), "b_real", 7.843e-10, None))
    names.append(b.constant("c", np.array([0.0, -4.5], np.float32)))
    b.node("Gemm", names, "sum")
    b.quantize("sum", "y", 1.0, np.array(0, np.int8))
    with pytest.raises(oracle.OracleError, match=r"fits int32, got -1147\d+ at index \[0, 1\]"):
        oracle.evaluate(b.model({"a": (np.int8, A.shape)}, {}), {"a": A})


def test_bias_of_another_scale_is_rounded_half_to_even() -> None:
    """Bias steps of 1/4 on an accumulator with steps of 1/2: 1, 3, 5 quarters -> 0, 2, 2 halves."""
    b = ModelBuilder()
    names = [b.dequantize("a", "a_real", 0.5, None)]
    names.append(b.dequantize(b.constant("b", np.ones((1, 3), np.int8)), "b_real", 1.0, None))
    names.append(b.dequantize(b.constant("c", np.array([1, 3, 5], np.int32)), "c_real", 0.25, None))
    b.node("Gemm", names, "sum")
    b.quantize("sum", "y", 0.5, np.array(0, np.int8))
    a = np.zeros((1, 1), np.int8)
    y = oracle.evaluate(b.model({"a": (np.int8, a.shape)}, {}), {"a": a})["y"]
    assert y.tolist() == [[0, 2, 2]]


def test_matmul_of_uint8_and_int8_with_both_zero_points() -> None:
    """Products that a 16-bit saturating kernel gets wrong."""
    a = np.array([[238, 115, 94], [245, 111, 102], [158, 225, 48]], np.uint8)
    right = np.array([[25, 36, 125], [42, -123, 76], [-81, -86, 35]], np.int8)
    want = [[12100, 1951, 40214], [11745, 2293, 41351], [18030, -10919, 36548]]
    b = ModelBuilder()
    names = [b.dequantize("a", "a_real", 1.0, np.array(42, np.uint8))]
    right_name = b.constant("b", right)
    names.append(b.dequantize(right_name, "b_real", 1.0, np.array(-26, np.int8)))
    b.node("MatMul", names, "y")
    model = b.model({"a": (np.uint8, (3, 3))}, {"y": (np.float32, (3, 3))})
    assert oracle.evaluate(model, {"a": a})["y"].tolist() == want


def test_batched_matmul_equals_each_matrix() -> None:
    rng = np.random.default_rng(21)
    a = rng.integers(-128, 128, (2, 3, 4, 5), dtype=np.int8)
    right = rng.integers(-128, 128, (5, 6), dtype=np.int8)
    whole = _matmul(a, right)
    for i, j in np.ndindex(2, 3):
        np.testing.assert_array_equal(whole[i, j], _matmul(a[i, j], right))


def _matmul(a: np.ndarray, right: np.ndarray) -> np.ndarray:
    b = ModelBuilder()
    names = [b.dequantize("a", "a_real", 0.1, None)]
    names.append(b.dequantize(b.constant("b", right), "b_real", 0.1, None))
    b.node("MatMul", names, "sum")
    b.quantize("sum", "y", 3.0, np.array(-1, np.int8))
    return oracle.evaluate(b.model({"a": (np.int8, a.shape)}, {}), {"a": a})["y"]
