"""Ranges of each method on distributions whose answer is known."""

import math

import numpy as np
import pytest

from vitral.compiler.quantize.config import QuantizeConfig
from vitral.compiler.quantize.histogram import BINS, Histogram
from vitral.compiler.quantize.ranges import choose_range, entropy, mse, percentile


def histogram(values: np.ndarray) -> Histogram:
    """Counted in three batches."""
    found = Histogram(float(values.min()), float(values.max()))
    for part in np.array_split(values.astype(np.float32), 3):
        found.add(part)
    return found


def test_batches_add_up_and_zeros_are_apart() -> None:
    values = np.array([0, 0, -1, 1, 3, 3, 3], np.float32)
    found = histogram(values)
    assert (found.zeros, found.total) == (2, 7)
    width = 4 / BINS
    assert found.counts[0] == 1
    assert found.counts[-1] == 3
    assert found.counts[int(2 / width)] == 1
    assert found.counts.sum() == 5


def test_minmax_holds_zero() -> None:
    values = np.array([0.5, 2.0])
    assert choose_range(histogram(values), QuantizeConfig(method="minmax")) == (0.0, 2.0)
    both = QuantizeConfig(method="minmax", activations="symmetric")
    assert choose_range(histogram(np.array([-3.0, 2.0])), both) == (-3.0, 3.0)


def test_percentile_of_evenly_spread_values() -> None:
    """Of -1 ... 3, evenly: 1 % on each side is 0.04."""
    values = np.linspace(-1, 3, 100_000)
    low, high = percentile(histogram(values), 99.0, "affine")
    assert low == pytest.approx(-0.96, abs=2e-3)
    assert high == pytest.approx(2.96, abs=2e-3)
    # magnitudes: a half lies below 1, the rest evenly in 1 ... 3; 1 % of all lie above 2.96
    assert percentile(histogram(values), 99.0, "symmetric")[1] == pytest.approx(2.96, abs=2e-3)


def test_percentile_counts_zeros() -> None:
    """99 zeros for each value in 1 ... 2: the upper 0.5 % begin in the middle."""
    values = np.concatenate([np.zeros(99_000), np.linspace(1, 2, 1_000)])
    low, high = percentile(histogram(values), 99.5, "affine")
    assert high == pytest.approx(1.5, abs=2e-3)
    assert low >= 0


def test_percentile_of_all_is_minmax() -> None:
    values = np.random.default_rng(0).standard_normal(10_000)
    found = histogram(values)
    assert percentile(found, 100.0, "affine") == pytest.approx((found.low, found.high))


def test_mse_keeps_even_values_and_cuts_an_outlier() -> None:
    even = np.linspace(0, 1, 500_000)
    assert mse(histogram(even), "affine") == (0.0, 1.0)

    def error(high: float) -> float:
        """One value at 20 cut to `high`, and 500,000 rounded to steps of high / 255."""
        return (20 - high) ** 2 + 500_000 * (high / 255) ** 2 / 12

    low, high = mse(histogram(np.append(even, 20.0)), "affine")
    best = 20 / (1 + 500_000 / 255**2 / 12)  # where the derivative is 0: 12.2
    assert low == 0
    assert error(high) < 1.02 * error(best) < 0.7 * error(20.0)


def test_mse_of_a_normal_distribution() -> None:
    """256 steps are best at 3.9 deviations (ACIQ, 2019, has 3.92)."""

    def error(a: float) -> float:
        beyond = (1 + a * a) * math.erfc(a / math.sqrt(2)) / 2
        density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
        return 2 * (beyond - a * density) + (2 * a / 255) ** 2 / 12

    least = min(error(a) for a in np.linspace(3, 5, 201))
    assert error(3.9) < 1.005 * least
    values = np.random.default_rng(1).standard_normal(1_000_000)
    low, high = mse(histogram(values), "symmetric")
    assert 3.8 < high < 4.1
    assert error(high) < 1.01 * least
    assert low == -high


def test_entropy_keeps_even_values() -> None:
    low, high = entropy(histogram(np.linspace(0.001, 1, 200_000)), "affine")
    assert high == pytest.approx(1.0, abs=2e-3)
    assert low >= 0


def test_entropy_cuts_a_long_thin_tail() -> None:
    """1,000 values spread over 1 ... 100 behind 10^6 below 1: the tail goes, the body stays."""
    rng = np.random.default_rng(2)
    body = np.abs(rng.standard_normal(1_000_000)) / 4
    tail = rng.uniform(1.5, 100, 100)
    low, high = entropy(histogram(np.concatenate([body, tail])), "affine")
    assert 0.8 < high < 20
    assert low >= 0


def test_entropy_of_few_values_keeps_them() -> None:
    """2,000 values in as many bins: merging them costs what chance does, and cutting more."""
    values = np.random.default_rng(4).uniform(-8, 8, 2_000)
    low, high = entropy(histogram(values), "affine")
    assert high > 7.5
    assert low < -7.5


def test_entropy_is_not_led_by_a_value_that_repeats() -> None:
    """A background of 0.3 in four of five places; the others lie evenly in 0 ... 8."""
    rng = np.random.default_rng(5)
    values = np.concatenate([np.full(400_000, 0.3), rng.uniform(0, 8, 100_000)])
    assert entropy(histogram(values), "affine")[1] > 7.5


def test_symmetric_entropy_is_symmetric() -> None:
    values = np.random.default_rng(3).standard_normal(100_000) + 0.5
    low, high = choose_range(
        histogram(values), QuantizeConfig(method="entropy", activations="symmetric")
    )
    assert low == -high
    assert 2 < high < 5.5


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy", "mse"])
def test_a_tensor_of_zeros_has_a_range(method: str) -> None:
    config = QuantizeConfig(method=method)  # type: ignore[arg-type]
    assert choose_range(histogram(np.zeros(10)), config) == (0.0, 0.0)


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy", "mse"])
def test_a_constant_tensor_keeps_its_value(method: str) -> None:
    config = QuantizeConfig(method=method)  # type: ignore[arg-type]
    low, high = choose_range(histogram(np.full(10, 2.0)), config)
    assert low == 0
    assert high == pytest.approx(2.0, rel=0.02)
