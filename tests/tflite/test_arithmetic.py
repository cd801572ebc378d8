"""TFLite's integer arithmetic against its published rules, and which kernels follow which."""

from dataclasses import replace

import numpy as np
import pytest
from litert.compare import random_feeds, run_module
from litert.interpreter import run_litert
from litert.layers import Layers
from litert.writer import Tensor

import vitral
from vitral.arithmetic import requantize
from vitral.compiler.frontends.tflite.fixed_point import (
    activation_codes,
    find_thresholds,
    quantize_multiplier,
    round_half_away,
)
from vitral.compiler.ir import Graph, Quant, TensorType
from vitral.compiler.ir.ops import AccelConv2d, AveragePool
from vitral.compiler.ir.rounding import Weighted
from vitral.compiler.passes.lower_pools import lower_pools
from vitral.isa import Rounding

VECTORS = [
    (7984, 1583594044, -9, 11, 12),
    (-2840, 1790507473, -7, -18, -19),
    (-1605, 1712383196, -9, -2, -3),
    (-17052, 1305707872, -8, -40, -41),
    (51699, 1680116588, -10, 39, 40),
    (1, 1073741824, -1, 0, 1),
]
"""Value, 31-bit multiplier, exponent, and the results of one and of two roundings."""


@pytest.mark.parametrize(("x", "mult", "exponent", "single", "double"), VECTORS)
def test_requantiser_rounds_once_and_twice(
    x: int, mult: int, exponent: int, single: int, double: int
):
    for rounding, expected in ((Rounding.HALF_UP, single), (Rounding.DOUBLE, double)):
        assert requantize(x, mult=mult, shift=31 - exponent, rounding=rounding) == expected


def gemmlowp(x: int, mult: int, exponent: int) -> int:
    """MultiplyByQuantizedMultiplier in plain Python, as gemmlowp's macros say it."""
    product = (x << max(exponent, 0)) * mult
    nudge = (1 << 30) if product >= 0 else 1 - (1 << 30)
    total = product + nudge
    high = abs(total) // (1 << 31) * (1 if total >= 0 else -1)
    bits = max(-exponent, 0)
    mask = (1 << bits) - 1
    threshold = (mask >> 1) + (high < 0)
    return (high >> bits) + ((high & mask) > threshold)


def test_double_rounding_is_gemmlowps():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        exponent = int(rng.integers(-20, 6))
        mult = int(rng.choice([1 << 30, (1 << 31) - 1, int(rng.integers(1 << 30, 1 << 31))]))
        x = int(rng.integers(-(1 << 24), 1 << 24) >> rng.integers(0, 20))
        found = requantize(
            x, mult=mult, shift=31 - exponent, low=-(2**31), high=2**31, rounding=Rounding.DOUBLE
        )
        assert found == gemmlowp(x, mult, exponent), (x, mult, exponent)


def test_multipliers_are_31_bit_fractions():
    reals = [1.0, 0.5, 0.3, 2.0**-31, 2.0**-33, 1 - 2.0**-40, 1000.0]
    mults, shifts = quantize_multiplier(reals)
    fractions = [int(m) / 2.0 ** int(s) for m, s in zip(mults, shifts, strict=True)]
    assert fractions == pytest.approx([1.0, 0.5, 0.3, 2.0**-31, 0.0, 1.0, 1000.0], rel=2**-30)
    assert (mults < 1 << 31).all()
    assert int(mults[0]) == 1 << 30


def test_multiplier_too_large_is_refused():
    with pytest.raises(ValueError, match="below"):
        quantize_multiplier(2.0**31)


def test_ties_go_away_from_zero():
    assert [round_half_away(v) for v in (-1.5, -0.5, 0.4, 0.5, 2.5)] == [-2, -1, 0, 1, 3]


@pytest.mark.parametrize(
    ("activation", "expected"), [(0, (-128, 127)), (1, (-20, 127)), (2, (-35, -5)), (3, (-20, 70))]
)
def test_fused_activations_clamp_codes(activation: int, expected: tuple[int, int]):
    quant = Quant(dtype="int8", scale=(6 / 90,), zero_point=(-20,))
    assert activation_codes(quant, activation) == expected


def test_thresholds_are_the_laws_steps():
    def law(sums: np.ndarray, count: int) -> np.ndarray:
        return np.clip(sums // (3 * count), -10, 10)

    steps = find_thresholds(law, [1, 4], 5, (-10, 10))
    for count, row in zip(steps.counts.tolist(), steps.rows, strict=True):
        sums = np.arange(-133 * count, 122 * count + 1)
        codes = steps.low + np.searchsorted(row, sums, side="right")
        assert np.array_equal(codes, law(sums, count))


def ties(m: Layers, x: Tensor) -> Tensor:
    """A convolution for which one sum in 16 lies half-way between two codes."""
    scale = x.scale / (40 * 1.7) * 16
    return m.conv(x, 16, per_channel=False, scale=scale, zero=5)


def test_every_rounding_gives_other_bytes():
    m = Layers(seed=10)
    x = m.input((1, 16, 16, 6), 0.02, 3)
    model = m.model(ties(m, x))
    results = {}
    for rounding in ("reference", "double", "single", "xnnpack"):
        module = vitral.compile(model, tflite_rounding=rounding)
        feeds = random_feeds(module, 0)
        (results[rounding],) = run_module(module, feeds)
    assert np.array_equal(results["reference"], results["double"])
    assert (results["double"] != results["single"]).any()
    assert (results["double"] != results["xnnpack"]).any()
    assert (results["single"] != results["xnnpack"]).any()
    for kernels in ("reference", "xnnpack"):
        assert np.array_equal(results[kernels], run_litert(model, feeds, kernels)[0])


def test_dense_layers_of_the_reference_kernels_round_once():
    m = Layers(seed=11)
    x = m.input((200, 6), 0.02, 3)
    y = m.dense(x, 16, scale=x.scale / (40 * 1.7) * 16)
    model = m.model(y)
    feeds = random_feeds(vitral.compile(model), 0)
    (expected,) = run_litert(model, feeds, "reference")
    found = {
        r: run_module(vitral.compile(model, tflite_rounding=r), feeds)[0]
        for r in ("reference", "double", "single")
    }
    assert np.array_equal(found["reference"], expected)
    assert np.array_equal(found["single"], expected)
    assert (found["double"] != expected).any()


def _average(core: Weighted | None) -> Graph:
    """The average of 2 x 2 codes, ties away from 0, as a graph of one operator."""
    quant = Quant(dtype="int8", scale=(1.0,), zero_point=(0,))

    def law(sums: np.ndarray, count: int) -> np.ndarray:
        return np.sign(sums) * ((np.abs(sums) + count // 2) // count)

    steps = find_thresholds(law, [4], 0, (-128, 127))
    pool = AveragePool(
        name="pool",
        inputs=("x",),
        output="y",
        y_quant=quant,
        x_quant=quant,
        kernel=(2, 2),
        strides=(1, 1),
        thresholds=replace(steps, core=core),
    )
    types = {"x": TensorType((1, 16, 2, 2), "int8"), "y": TensorType((1, 16, 1, 1), "int8")}
    return Graph(inputs=("x",), outputs=("y",), types=types, ops=(pool,))


def test_parameters_of_an_average_are_used_only_if_they_are_right():
    right = Weighted(
        weight=2, bias=0, mult=1 << 30, shift=33, zero_point=0, rounding=Rounding.DOUBLE
    )
    (lowered,) = lower_pools(_average(right)).ops
    assert isinstance(lowered, AccelConv2d)
    assert (lowered.params.rounding, int(lowered.weight.max())) == (Rounding.DOUBLE, 2)
    wrong = replace(right, rounding=Rounding.HALF_UP)
    (other,) = lower_pools(_average(wrong)).ops
    assert not (isinstance(other, AccelConv2d) and other.params.rounding is Rounding.HALF_UP)
