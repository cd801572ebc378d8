"""`vitral.arithmetic` against exact rationals and against IEEE float32."""

from fractions import Fraction

import numpy as np
import pytest

from vitral.arithmetic import fl32_parameters, requantize
from vitral.isa import Rounding

ACCUMULATORS = (0, 1, -1, 3, -3, 5, -5, 7984, -2840, 2**24 + 1, 2**31 - 1, -(2**31))
BIASES = (0, 1, -1, 2**31 - 1, -(2**31))
MULTIPLIERS = (0, 1, 2, 3, 2**30, 1583594044, 2**31 - 1)
SHIFTS = (0, 1, 2, 9, 30, 31, 32, 40, 62, 63, 64, 65, 95, 255)


def half_up(value: Fraction) -> int:
    return (value + Fraction(1, 2)).__floor__()


def half_away(value: Fraction) -> int:
    return half_up(value) if value >= 0 else -half_up(-value)


def expected(product: int, shift: int, rounding: Rounding) -> int:
    exact = Fraction(product, 1 << shift)
    if rounding is Rounding.HALF_EVEN:
        return round(exact)
    if rounding is Rounding.HALF_UP:
        return half_up(exact)
    first = min(shift, 31)
    return half_away(Fraction(half_up(Fraction(product, 1 << first)), 1 << (shift - first)))


@pytest.mark.parametrize("rounding", [Rounding.HALF_EVEN, Rounding.HALF_UP, Rounding.DOUBLE])
def test_integer_modes_equal_exact_rationals(rounding: Rounding) -> None:
    cases = [
        (acc, bias, mult, shift)
        for acc in ACCUMULATORS
        for bias in BIASES
        for mult in MULTIPLIERS
        for shift in SHIFTS
    ]
    acc, bias, mult, shift = np.array(cases).T
    got = requantize(
        acc, bias=bias, mult=mult, shift=shift, low=-32768, high=32767, rounding=rounding
    )
    want = [min(max(expected((a + b) * m, s, rounding), -32768), 32767) for a, b, m, s in cases]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("acc", "mult", "q31_shift", "single", "double"),
    [
        (7984, 1583594044, -9, 11, 12),
        (-2840, 1790507473, -7, -18, -19),
        (-1605, 1712383196, -9, -2, -3),
        (-17052, 1305707872, -8, -40, -41),
        (51699, 1680116588, -10, 39, 40),
        (1, 1073741824, -1, 0, 1),
    ],
)
def test_published_single_and_double_rounding(
    acc: int, mult: int, q31_shift: int, single: int, double: int
) -> None:
    shift = 31 - q31_shift
    assert requantize(acc, mult=mult, shift=shift, rounding=Rounding.HALF_UP) == single
    assert requantize(acc, mult=mult, shift=shift, rounding=Rounding.DOUBLE) == double


@pytest.mark.parametrize("seed", range(8))
def test_float32_mode_equals_ieee_float32(seed: int) -> None:
    rng = np.random.default_rng(seed)
    multipliers = np.concatenate(
        [
            np.exp2(rng.uniform(-45, 4, 40)).astype(np.float32),
            np.float32(1) / rng.integers(2, 2000, 30).astype(np.float32),
            np.exp2(-rng.integers(0, 30, 10)).astype(np.float32),
        ]
    )
    for multiplier in multipliers:
        near = rng.uniform(-300, 300, 400) / float(multiplier)
        ties = (rng.integers(-130, 130, 200) + 0.5) / float(multiplier)
        acc = np.concatenate([near, ties, ties + 1, ties - 1, rng.uniform(-(2**31), 2**31, 50)])
        acc = np.clip(np.rint(acc), -(2**31), 2**31 - 1).astype(np.int64)
        mult, shift = fl32_parameters(multiplier)
        got = requantize(acc, mult=mult, shift=shift, rounding=Rounding.FLOAT32)
        want = np.clip(np.rint(acc.astype(np.float32) * multiplier), -128, 127)
        np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}, {multiplier!r}")


def test_half_even_of_the_exact_product_is_not_the_float32_mode() -> None:
    acc = 48 * np.arange(-42, 42) + 24
    mult, shift = fl32_parameters(np.float32(1 / 48))
    exact = requantize(acc, mult=mult, shift=shift, rounding=Rounding.HALF_EVEN)
    float32 = requantize(acc, mult=mult, shift=shift, rounding=Rounding.FLOAT32)
    assert (exact != float32).any()
    np.testing.assert_array_equal(float32, np.rint(acc.astype(np.float32) * np.float32(1 / 48)))


def test_multipliers_out_of_range_keep_their_meaning() -> None:
    mult, shift = fl32_parameters(np.array([1e-38, 1e-45, 2.0**24, 1e30], np.float32))
    got = requantize(
        np.array([[1], [2**31 - 1], [-5]]), mult=mult, shift=shift, rounding=Rounding.FLOAT32
    )
    np.testing.assert_array_equal(got, [[0, 0, 127, 127], [0, 0, 127, 127], [0, 0, -128, -128]])
