"""CPU operators one by one, against plain Python numbers."""

import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from vitral.runtime.cpu import OPERATORS
from vitral.runtime.cpu.sums import exact_matmul
from vitral.runtime.cpu.windows import window_counts

CODES = np.arange(-128, 128, dtype=np.int8)


def test_quantize_rounds_half_to_even_then_adds_the_zero_point_then_saturates() -> None:
    reals = np.array([-7.5, 0.5, 1.5, 2.5, -0.5, 1e30, -1e30, np.inf, -np.inf], np.float32)
    codes = OPERATORS["quantize"](reals, np.float32(1), np.int32(3))
    assert codes.dtype == np.int8
    assert codes.tolist() == [-5, 3, 5, 5, 3, 127, -128, 127, -128]


def test_quantize_refuses_nan() -> None:
    with pytest.raises(ValueError, match="NaN"):
        OPERATORS["quantize"](np.array([np.nan], np.float32), np.float32(1), np.int32(0))


def test_quantize_and_dequantize_along_an_axis() -> None:
    scale, zero = np.array([0.5, 2, 10], np.float32), np.array([0, 1, -1], np.int32)
    codes = np.array([[1, 1, 1], [4, 4, 4]], np.int8)
    reals = OPERATORS["dequantize"](codes, scale, zero, axis=1)
    assert reals.tolist() == [[0.5, 0, 20], [2, 6, 50]]
    assert OPERATORS["quantize"](reals, scale, zero, axis=1).tolist() == codes.tolist()


def test_flip_sign_is_its_own_inverse() -> None:
    signed = OPERATORS["flip_sign"](np.arange(256).astype(np.uint8))
    assert signed.tolist() == list(range(-128, 128))
    assert OPERATORS["flip_sign"](signed).tolist() == list(range(256))


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_table_is_indexed_in_order_of_codes(dtype: Any) -> None:
    table = np.random.default_rng(1).integers(-128, 128, 256).astype(dtype)
    shuffled = np.random.default_rng(2).permutation(CODES).reshape(16, 16).T
    result = OPERATORS["table"](shuffled, table)
    assert result.dtype == dtype
    assert all(result[i] == table[int(shuffled[i]) + 128] for i in np.ndindex(16, 16))


def test_binary_table_broadcasts_and_is_indexed_by_both_codes() -> None:
    table = np.random.default_rng(3).integers(-128, 128, (256, 256)).astype(np.int8)
    a, b = CODES[None, :], CODES[::5, None]
    result = OPERATORS["binary_table"](a, b, table)
    assert result.shape == (len(b), 256)
    for i, j in itertools.product(range(len(b)), range(0, 256, 7)):
        assert result[i, j] == table[int(a[0, j]) + 128, int(b[i, 0]) + 128]


GEOMETRIES = [
    # kernel, strides, pads, dilations, group
    ((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((3, 2), (2, 1), (1, 0, 2, 3), (1, 2), 1),
    ((2, 3), (1, 3), (0, 4, 1, 0), (2, 1), 2),
    ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4),
]


@pytest.mark.parametrize(("kernel", "strides", "pads", "dilations", "group"), GEOMETRIES)
def test_convolution_sums_equal_plain_loops(
    kernel: Any, strides: Any, pads: Any, dilations: Any, group: int
) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-128, 128, (2, 4, 6, 7)).astype(np.int8)
    weight = rng.integers(-255, 256, (8, 4 // group, *kernel)).astype(np.int16)
    bias = rng.integers(-(10**6), 10**6, 8)
    zero = -7
    result = OPERATORS["conv2d_sum"](
        x,
        weight,
        bias,
        strides=strides,
        pads=pads,
        dilations=dilations,
        group=group,
        x_zero=zero,
    )
    assert result.dtype == np.int32
    outs, ins = 8 // group, 4 // group
    for n, o, row, column in np.ndindex(result.shape):
        total = int(bias[o])
        for c, i, j in np.ndindex(ins, *kernel):
            y = row * strides[0] + i * dilations[0] - pads[0]
            z = column * strides[1] + j * dilations[1] - pads[1]
            if 0 <= y < 6 and 0 <= z < 7:
                value = int(x[n, o // outs * ins + c, y, z]) - zero
                total += value * int(weight[o, c, i, j])
        assert result[n, o, row, column] == total


def test_matrix_product_is_exact_whatever_its_length() -> None:
    """Past 2**21 terms float64 could round, so integers take over; both give the same."""
    ones = np.full((1, (1 << 21) + 1), 32767)
    assert exact_matmul(ones, ones.T).item() == 32767**2 * ones.size
    short = ones[:, : (1 << 21) - 1]
    assert exact_matmul(short, short.T).item() == 32767**2 * short.size


def test_matmul_subtracts_both_zero_points() -> None:
    a = np.array([[-128, 127]], np.int8)
    b = np.array([[1], [2]], np.int8)
    result = OPERATORS["matmul_sum"](a, b, a_zero=5, b_zero=-3)
    assert result.tolist() == [[-133 * 4 + 122 * 5]]


def test_requantize_is_float32_op_by_op_with_a_clamp() -> None:
    total = np.array([[-5, -3, -1, 1, 3, 5, 2**31 - 1, -(2**31)]]).T.astype(np.int32)
    half = OPERATORS["requantize"](
        total, np.array([0.5], np.float32), axis=1, zero_point=3, low=-100, high=100
    )
    assert half.reshape(-1).tolist() == [1, 1, 3, 3, 5, 5, 100, -100]
    vast = OPERATORS["requantize"](
        total, np.array([3e38], np.float32), axis=1, zero_point=3, low=-128, high=127
    )
    assert vast.reshape(-1).tolist() == [-128, -128, -128, 127, 127, 127, 127, -128]


def test_scale_and_requantize_take_one_multiplier_per_channel() -> None:
    total = np.array([[[10, 20], [30, 40]]], np.int32)
    multiplier = np.array([0.5, 2], np.float32)
    assert OPERATORS["scale"](total, multiplier, axis=1).tolist() == [[[5, 10], [60, 80]]]
    assert OPERATORS["scale"](total, multiplier, axis=-1).tolist() == [[[5, 40], [15, 80]]]


def test_average_counts_thresholds() -> None:
    """Sums -1, 0 and 3 of one element against thresholds 0 and 3 of a result from -7 on."""
    x = np.array([-1, 0, 2, 3], np.int8).reshape(1, 4, 1, 1)
    window = {
        "kernel": (1, 1),
        "strides": (1, 1),
        "pads": (0, 0, 0, 0),
        "excess": (0, 0),
        "dilations": (1, 1),
        "include_pad": False,
        "x_zero": 0,
        "low": -7,
    }
    result = OPERATORS["average_pool"](x, np.array([1]), np.array([[0, 3]]), **window)
    assert result.reshape(-1).tolist() == [-7, -6, -6, -5]


@pytest.mark.parametrize("include_pad", [False, True])
def test_counts_of_windows_at_the_edge(include_pad: bool) -> None:
    """3x3 windows, stride 2, pads 1 on 4x4, and one more row and column of ceil mode."""
    counts = window_counts(
        (4, 4),
        kernel=(3, 3),
        strides=(2, 2),
        pads=(1, 1, 1, 1),
        excess=(1, 1),
        dilations=(1, 1),
        include_pad=include_pad,
    )
    edge = [3, 3, 2] if include_pad else [2, 3, 1]
    assert counts.tolist() == [[a * b for b in edge] for a in edge]


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_max_pool_never_picks_padding(dtype: Any) -> None:
    x = np.full((1, 1, 4, 4), -100, dtype)
    x[0, 0, 3, 3] = -99
    window = {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "dilations": (1, 1)}
    result = OPERATORS["max_pool"](x, **window)
    assert result.dtype == dtype
    assert result.tolist() == [[[[-100, -100], [-100, -99]]]]


def test_real_average_is_rounded_to_float32_once() -> None:
    x = np.array([1, 2, 4], np.int8).reshape(1, 1, 1, 3)
    window = {
        "kernel": (1, 3),
        "strides": (1, 1),
        "pads": (0, 0, 0, 0),
        "excess": (0, 0),
        "dilations": (1, 1),
        "include_pad": False,
    }
    scale = float(np.float32(0.1))
    real = OPERATORS["average_pool_real"](x, x_zero=-1, scale=scale, **window)
    assert real.item() == float(np.float32(float(Fraction(10, 3)) * scale))
    plain = OPERATORS["float.average_pool"](x.astype(np.float32), **window)
    assert plain.item() == float(np.float32(7 / 3))


def test_clip_is_open_where_a_bound_is_none() -> None:
    x = np.array([-5, 0, 5], np.float32)
    assert OPERATORS["float.clip"](x, low=-1.0).tolist() == [-1, 0, 5]
    assert OPERATORS["float.clip"](x, high=1.0).tolist() == [-5, 0, 1]
    assert OPERATORS["float.clip"](x, low=2.0, high=1.0).tolist() == [1, 1, 1]


def test_float_convolution_equals_the_integer_one_on_integers() -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(-128, 128, (1, 4, 5, 5)).astype(np.int8)
    weight = rng.integers(-128, 128, (6, 2, 3, 3)).astype(np.int16)
    bias = rng.integers(-99, 99, 6)
    window = {"strides": (1, 2), "pads": (1, 1, 0, 0), "dilations": (1, 1), "group": 2}
    want = OPERATORS["conv2d_sum"](x, weight, bias, x_zero=0, **window)
    floats = (array.astype(np.float32) for array in (x, weight, bias))
    got = OPERATORS["float.conv2d"](*floats, **window)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want)


def test_moves() -> None:
    x = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
    np.testing.assert_array_equal(OPERATORS["reshape"](x, shape=[6, 4]), x.reshape(6, 4))
    turned = OPERATORS["transpose"](x, perm=[2, 0, 1])
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, x.transpose(2, 0, 1))
    np.testing.assert_array_equal(OPERATORS["concat"](x, x, axis=1), np.concatenate([x, x], 1))


def test_attributes_of_compiled_steps_are_json() -> None:
    """A module keeps attributes as JSON: they must come back equal, types and all."""
    from graphs import random_graph

    from vitral.compiler.assemble import plan
    from vitral.compiler.frontends.onnx import import_onnx
    from vitral.compiler.pipeline import lower
    from vitral.runtime.module import CpuStep

    for seed in range(20):
        model, _ = random_graph(seed)
        for step in plan(lower(import_onnx(model))).steps:
            if isinstance(step, CpuStep):
                text = json.dumps(step.attributes, allow_nan=False)
                assert json.loads(text) == step.attributes


def test_dequantize_past_float32_is_infinite() -> None:
    codes, scale, zero = np.array([-128, 0, 1, 127], np.int8), np.float32(3e38), np.int8(0)
    reals = OPERATORS["dequantize"](codes, np.asarray(scale), np.asarray(zero))
    np.testing.assert_array_equal(reals, np.array([-np.inf, 0, 3e38, np.inf], np.float32))
