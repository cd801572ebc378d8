"""The proof that a lowering rounds as the law does: complete, and able to fail."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitral.arithmetic import requantize
from vitral.compiler.ir import Graph, Quant, TensorType, verify
from vitral.compiler.ir.ops import AccelConv2d, Conv2d
from vitral.compiler.passes.law import law_output
from vitral.compiler.passes.lower_convs import lower_convs
from vitral.compiler.passes.prove import first_difference, prove, staircase
from vitral.isa import Rounding


def pointwise(
    scale: float | list[float],
    *,
    weight: list[int] | None = None,
    bias: int = 0,
    x_zero: int = 0,
    y_zero: int = 0,
    bounds: Any = (),
) -> Graph:
    """A 1x1 convolution with one input channel for each weight and xs · ws / ys = `scale`."""
    row = np.array([weight or [1]], np.int8)
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    outputs = len(scales)
    op = Conv2d(
        name="conv",
        inputs=("x",),
        output="y",
        x_quant=Quant(dtype="int8", scale=(1.0,), zero_point=(x_zero,)),
        y_quant=Quant(dtype="int8", scale=(1.0,), zero_point=(y_zero,)),
        bounds=bounds,
        weight=np.repeat(row, outputs, axis=0)[:, :, None, None],
        weight_zero=np.zeros(outputs, np.int64),
        product_scale=scales,
        bias=np.full(outputs, bias, np.int64),
    )
    types = {
        "x": TensorType((1, row.size, 1, 1), "int8"),
        "y": TensorType((1, outputs, 1, 1), "int8"),
    }
    graph = Graph(inputs=("x",), outputs=("y",), types=types, ops=(op,))
    verify(graph)
    return graph


def lowered(graph: Graph) -> AccelConv2d:
    (op,) = lower_convs(graph).ops
    assert isinstance(op, AccelConv2d)
    return op


def with_params(op: AccelConv2d, **changes: Any) -> AccelConv2d:
    return replace(op, params=replace(op.params, **changes))


SCALES = [1 / 48, 1 / 3, 0.1, 1.0, 2.0**-9, 3e-4, 7.3, 1e-6, 0.0235285 * 0.00680513]


@pytest.mark.parametrize("scale", SCALES)
def test_float32_mode_is_proved(scale: float) -> None:
    graph = pointwise(scale, weight=[127, -3, 50], bias=-777, x_zero=5, y_zero=-9)
    assert first_difference(lowered(graph)) is None


def test_half_even_of_the_exact_product_is_caught_at_1_48() -> None:
    """fl32(1/48) is above 1/48, so exact arithmetic sees no tie where float32 has one."""
    op = lowered(pointwise(1 / 48, weight=[8]))
    wrong = with_params(op, rounding=Rounding.HALF_EVEN)
    found = first_difference(wrong)
    assert found is not None
    channel, total = found
    law = law_output(np.array([total]), np.array([1 / 48], np.float32), 0, -128, 127)
    params = wrong.params
    hardware = requantize(
        total,
        mult=params.mult[channel],
        shift=params.shift[channel],
        rounding=params.rounding,
    )
    assert law != hardware


@pytest.mark.parametrize("scale", [0.5, 2.0**-4, 1.0])
def test_half_even_is_proved_where_it_is_exact(scale: float) -> None:
    op = lowered(pointwise(scale, weight=[100]))
    assert first_difference(with_params(op, rounding=Rounding.HALF_EVEN)) is None
    half_up = first_difference(with_params(op, rounding=Rounding.HALF_UP))
    assert (half_up is None) == (scale == 1.0)


@pytest.mark.parametrize(
    ("field", "delta"), [("mult", 1), ("bias", 1), ("zero_point", 1), ("low", 1), ("high", -1)]
)
def test_any_parameter_off_by_one_is_caught(field: str, delta: int) -> None:
    op = lowered(pointwise([0.11, 0.013], weight=[120, -120]))
    assert first_difference(op) is None
    values = getattr(op.params, field).copy()
    values[1] += delta
    found = first_difference(with_params(op, **{field: values}))
    assert found is not None
    assert found[0] == 1


def test_other_weights_are_caught() -> None:
    op = lowered(pointwise([0.1, 0.1], weight=[3, 4]))
    weight = op.weight.copy()
    weight[1, 0] += 1
    assert first_difference(replace(op, weight=weight)) == (1, 0)


@pytest.mark.parametrize("seed", range(20))
def test_staircase_finds_every_step(seed: int) -> None:
    """Against all accumulators of a range: the law changes exactly where the proof looks."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([1 / 48, 0.1, 0.5, 1.0, 3.7, rng.uniform(1e-4, 0.3)])
    multiplier = np.array([scale], np.float32)
    lowest, highest = np.array([rng.integers(-40_000, 0)]), np.array([rng.integers(0, 40_000)])
    zero, low, high = int(rng.integers(-128, 128)), -128, int(rng.integers(-127, 128))
    points = staircase(multiplier, lowest, highest, zero, low, high)[0]
    every = np.arange(lowest[0], highest[0] + 1)
    law = law_output(every, multiplier, zero, low, high)
    steps = every[1:][np.diff(law) != 0]
    assert set(steps) <= set(points)
    assert set(steps - 1) <= set(points)
    assert {lowest[0], highest[0]} <= set(points)
    assert points.min() >= lowest[0]
    assert points.max() <= highest[0]


def test_failed_proof_sends_the_layer_to_the_cpu_with_a_notice() -> None:
    graph = lower_convs(pointwise(1 / 48, weight=[8]))
    op = graph.ops[0]
    assert isinstance(op, AccelConv2d)
    wrong = replace(graph, ops=(with_params(op, rounding=Rounding.HALF_EVEN),))
    checked = prove(wrong)
    assert isinstance(checked.ops[0], AccelConv2d)
    assert checked.ops[0].on_cpu
    assert "'conv' runs on the CPU: HALF_EVEN" in checked.notices[0]
    assert prove(graph).notices == ()


@pytest.mark.parametrize(
    ("bounds", "want"),
    [
        ((), (-128, 127)),
        (((0.0, np.inf),), (-9, 127)),
        (((0.0, 6.0),), (-9, -3)),
        (((-1.0, 1.0), (0.6, np.inf)), (-8, -8)),
        (((5.0, 1.0),), (-8, -8)),
        (((-np.inf, -1e30),), (-128, -128)),
    ],
)
def test_clamps_become_low_and_high(bounds: Any, want: tuple[int, int]) -> None:
    op = lowered(pointwise(0.1, y_zero=-9, bounds=bounds))
    assert (op.params.low[0], op.params.high[0]) == want
    assert first_difference(op) is None
