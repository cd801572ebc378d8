"""Integer parameters of sums; every success is checked on all pairs by the oracle."""

from typing import Any

import numpy as np
import onnx
import oracle
import pytest
from cases import ModelBuilder

from vitral.arithmetic import requantize
from vitral.compiler.ir import Quant
from vitral.compiler.passes.sums import SumLaw, SumParameters, find_sum
from vitral.isa import Rounding

INFINITY = float("inf")
FULL = (-128, 127)
CODES = np.arange(-128, 128)


def quant(scale: float, zero: int) -> Quant:
    return Quant(dtype="int8", scale=(float(np.float32(scale)),), zero_point=(int(zero),))


def sum_law(
    function: str, scales: Any, zeros: Any, *, relu: bool = False, a_range: Any = FULL
) -> SumLaw:
    a, b, y = (quant(s, z) for s, z in zip(scales, zeros, strict=True))
    return SumLaw(
        function=function,
        a_quant=a,
        b_quant=b,
        y_quant=y,
        bounds=((0.0, INFINITY),) if relu else (),
        a_range=a_range,
        b_range=FULL,
    )


def model_of(law: SumLaw) -> onnx.ModelProto:
    b = ModelBuilder()
    sides = [
        b.dequantize(name, f"{name}_real", q.tensor_scale, np.array(q.tensor_zero, np.int8))
        for name, q in (("a", law.a_quant), ("b", law.b_quant))
    ]
    last = b.node({"add": "Add", "sub": "Sub"}[law.function], sides, "sum")
    if law.bounds:
        last = b.node("Relu", [last], "relu")
    b.quantize(last, "y", law.y_quant.tensor_scale, np.array(law.y_quant.tensor_zero, np.int8))
    shape = (1, 1, 256, 256)
    return b.model({"a": (np.int8, shape), "b": (np.int8, shape)}, {"y": (np.int8, shape)})


def oracle_codes(law: SumLaw) -> np.ndarray:
    """(256, 256) by the oracle, which has no part in the product."""
    a, b = (v.astype(np.int8)[None, None] for v in np.meshgrid(CODES, CODES, indexing="ij"))
    return oracle.evaluate(model_of(law), {"a": a, "b": b})["y"][0, 0]


def core_codes(law: SumLaw, found: SumParameters) -> np.ndarray:
    """(256, 256) as the core computes them."""
    ma, mb = found.multipliers
    return requantize(
        ma * CODES[:, None] + mb * CODES[None],
        bias=found.bias,
        mult=found.scaling.mult,
        shift=found.scaling.shift,
        zero_point=law.y_quant.tensor_zero,
        low=found.low,
        high=found.high,
        rounding=found.scaling.rounding,
    )


def check(law: SumLaw, found: SumParameters) -> None:
    first, last = law.a_range
    rows = slice(first + 128, last + 129)
    np.testing.assert_array_equal(core_codes(law, found)[rows], oracle_codes(law)[rows], str(law))
    assert max(map(abs, found.multipliers)) <= 32639
    assert 0 <= found.scaling.mult < 1 << 31
    assert 0 <= found.scaling.shift <= 255


def residual(rng: np.random.Generator) -> SumLaw:
    """Scales as calibration gives them: the result covers most of what the sum can be."""
    a, b = np.exp(rng.uniform(np.log(0.005), np.log(0.2), 2))
    y = np.hypot(a, b) * rng.uniform(0.7, 1.7)
    relu = bool(rng.integers(2))
    function = str(rng.choice(["add", "add", "sub"]))
    return sum_law(function, (a, b, y), rng.integers(-128, 40, 3), relu=relu)


def test_nearly_all_residual_sums_have_parameters_and_each_is_exact() -> None:
    rng = np.random.default_rng(2024)
    laws = [residual(rng) for _ in range(120)]
    found = [find_sum(law) for law in laws]
    for law, parameters in zip(laws, found, strict=True):
        if parameters is not None:
            check(law, parameters)
    share = sum(parameters is not None for parameters in found) / len(laws)
    assert share >= 0.99, f"parameters for {share:.1%} of the sums"


@pytest.mark.parametrize("seed", range(30))
def test_simple_quotients_take_one_pass(seed: int) -> None:
    """Scales that are small multiples of powers of two: ties occur, and int8 factors do."""
    rng = np.random.default_rng(seed)
    scales = 2.0 ** rng.integers(-6, -2, 3) * rng.choice([1, 3, 5], 3)
    law = sum_law("add", scales, rng.integers(-128, 128, 3))
    found = find_sum(law)
    assert found is not None
    assert max(map(abs, found.multipliers)) <= 127
    check(law, found)


@pytest.mark.parametrize("seed", range(20))
def test_equal_scales_take_one_pass(seed: int) -> None:
    rng = np.random.default_rng([seed, 7])
    scale = rng.uniform(0.01, 0.1)
    law = sum_law("add", (scale, scale, scale * rng.uniform(1.1, 1.9)), rng.integers(-128, 128, 3))
    found = find_sum(law)
    assert found is not None
    assert found.multipliers == (1, 1)
    check(law, found)


def test_a_call_that_no_affine_function_makes_takes_the_float32_mode() -> None:
    """(41, 135) lies between (66, 198) and (16, 72); float32 rounds it up, both others down."""
    scales = (0.0471956767141819, 0.035940300673246384, 0.04051918536424637)
    law = sum_law("add", scales, (-1, -128, -128))
    codes = oracle_codes(law).astype(int)
    calls = [codes[a - 1 + 128, b - 128 + 128] for a, b in ((66, 198), (41, 135), (16, 72))]
    assert [call + 128 for call in calls] == [252, 168, 82]
    found = find_sum(law)
    assert found is not None
    assert found.scaling.rounding is Rounding.FLOAT32
    check(law, found)


def test_ties_that_float32_breaks_at_random_have_no_parameters() -> None:
    """ys = 2 xs: half of the sums are true ties, which rounded products take either way."""
    scale = 0.006857804488390684
    law = sum_law("add", (scale, scale, 2 * scale), (77, 94, 21))
    codes = oracle_codes(law).astype(int)
    centred = CODES[:, None] - 77 + CODES[None] - 94
    taken = {int(np.ptp(codes[centred == total])) for total in range(-201, -99, 2)}
    assert taken == {0, 1}, "the law decides these ties by the operands, not by their sum"
    assert find_sum(law) is None


@pytest.mark.parametrize("largest", [1e-30, 3e38])
def test_scales_at_the_ends_of_float32_are_exact_or_refused(largest: float) -> None:
    for scales in ((largest, 1.0, 1.0), (largest, largest, 1.0), (1.0, 1.0, largest)):
        law = sum_law("add", scales, (0, 3, -5))
        found = find_sum(law)
        if largest > 1 and largest in scales[:2]:
            assert found is None, "255 times this scale is infinite"
        elif found is not None:
            check(law, found)


def test_a_known_range_is_all_that_is_proved() -> None:
    rng = np.random.default_rng(11)
    for _ in range(10):
        a, b = rng.uniform(0.01, 0.1, 2)
        law = sum_law("add", (a, b, a + b), (-128, 5, -3), a_range=(-20, 90))
        found = find_sum(law)
        if found is not None:
            check(law, found)
