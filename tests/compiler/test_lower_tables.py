"""Tables that are lines become layers; every code is checked against the oracle."""

from typing import Any

import numpy as np
import onnx
import oracle
import pytest
from cases import ModelBuilder
from plans import run_model

import vitral
from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.ir.ops import AccelAdd
from vitral.compiler.pipeline import lower

INT8 = np.int8
SHAPE = (1, 3, 16, 16)


def after_convolution(
    kind: str,
    *,
    scales: tuple[float, float] = (0.31415927, 0.21718282),
    zeros: tuple[int, int] = (-5, 9),
    bounds: tuple[float, float] | None = None,
    dtype: Any = INT8,
    **attributes: Any,
) -> onnx.ModelProto:
    """1x1 convolution that passes all 256 codes on, then the function between two scales."""
    b = ModelBuilder()
    w = np.eye(3, dtype=INT8)[:, :, None, None]
    middle = 0 if dtype is INT8 else 128
    first, last = (np.array(zero + middle, dtype) for zero in zeros)
    names = [
        b.dequantize("x", "x_real", scales[0], first),
        b.dequantize(b.constant("w", w), "w_real", 1.0, None),
    ]
    b.quantize(b.node("Conv", names, "s"), "c", scales[0], first)
    more = [] if bounds is None else [b.scale("low", bounds[0]), b.scale("high", bounds[1])]
    real = b.dequantize("c", "c_real", scales[0], first)
    result = b.node(kind, [real, *more], "r", **attributes) if kind else real
    b.quantize(result, "y", scales[1], last)
    return b.model({"x": (dtype, SHAPE)}, {"y": (dtype, SHAPE)})


def check(model: onnx.ModelProto, dtype: Any = INT8) -> list[str]:
    """Plan and simulator have the oracle's bytes for all codes; the kinds of the operators."""
    limits = np.iinfo(dtype)
    codes = np.arange(limits.min, limits.max + 1).astype(dtype)
    x = np.broadcast_to(codes.reshape(16, 16), SHAPE).copy()
    want = oracle.evaluate(model, {"x": x}, outputs_only=True)["y"]
    np.testing.assert_array_equal(run_model(model, {"x": x})["y"], want)
    with vitral.Session(vitral.compile(model), device="fsim") as session:
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], want)
    return [op.kind for op in lower(import_onnx(model)).ops if op.kind != "flip_sign"]


LINE = ["vta.conv2d", "vta.conv2d"]
BENT = [*LINE, "vta.add"]
TABLE = ["vta.conv2d", "table"]


@pytest.mark.parametrize("dtype", [INT8, np.uint8])
@pytest.mark.parametrize(
    "scales", [(0.314159, 0.217), (0.0173, 0.0441), (0.25, 0.5), (0.1, 0.3), (1, 7)]
)
@pytest.mark.parametrize("kind", ["", "Relu", "Clip"])
def test_another_scale_or_clamp_is_one_layer(kind: str, scales: Any, dtype: Any) -> None:
    bounds = (-12 * scales[0], 60 * scales[0]) if kind == "Clip" else None
    model = after_convolution(kind, scales=scales, bounds=bounds, dtype=dtype)
    assert check(model, dtype) == LINE


@pytest.mark.parametrize("zeros", [(-5, 9), (0, 0), (-128, -128), (127, 0), (40, -100)])
@pytest.mark.parametrize("alpha", [0.1, 0.01, 0.2, 0.125, 0.3, -0.25, 1.5])
def test_leaky_relu_is_a_clamp_and_a_sum(alpha: float, zeros: Any) -> None:
    """One layer where the codes, or the results, lie on one side of 0 only."""
    found = check(after_convolution("LeakyRelu", zeros=zeros, alpha=alpha))
    assert found == (LINE if zeros[0] in (-128, 127) else BENT)


@pytest.mark.parametrize("seed", range(40))
def test_leaky_relu_of_yolo_is_lowered_for_any_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.01, 0.2)
    zeros = (int(rng.integers(-100, 50)), int(rng.integers(-120, 0)))
    scales = (scale, scale * rng.uniform(0.5, 1.1))
    assert check(after_convolution("LeakyRelu", scales=scales, zeros=zeros, alpha=0.1)) == BENT


def test_ties_that_no_multiplier_makes_stay_a_table() -> None:
    """xs / ys = 1.5 has ties for the line above 0, and 0.15 is no binary fraction."""
    assert check(after_convolution("LeakyRelu", scales=(0.3, 0.2), alpha=0.1)) == TABLE


def test_multipliers_of_a_leaky_relu_take_one_pass() -> None:
    graph = lower(import_onnx(after_convolution("LeakyRelu", alpha=0.1)))
    (total,) = (op for op in graph.ops if isinstance(op, AccelAdd))
    straight, bent = total.multipliers
    assert max(abs(straight), abs(bent)) <= 127
    assert bent == 9 * straight


def test_two_functions_in_a_row_that_are_no_two_lines_stay_a_table() -> None:
    b = ModelBuilder()
    w = np.eye(3, dtype=INT8)[:, :, None, None]
    zero = np.array(-5, INT8)
    names = [
        b.dequantize("x", "x_real", 0.3, zero),
        b.dequantize(b.constant("w", w), "w_real", 1.0, None),
    ]
    b.quantize(b.node("Conv", names, "s"), "c", 0.3, zero)
    b.node("LeakyRelu", [b.dequantize("c", "c_real", 0.3, zero)], "l", alpha=0.1)
    b.node("Clip", ["l", b.scale("low", -2.0), b.scale("high", 6.0)], "r")
    b.quantize("r", "y", 0.05, zero)
    model = b.model({"x": (INT8, SHAPE)}, {"y": (INT8, SHAPE)})
    assert check(model) == TABLE


def test_the_host_s_tables_stay_there() -> None:
    b = ModelBuilder()
    b.node("LeakyRelu", [b.dequantize("x", "x_real", 0.3, np.array(0, INT8))], "r")
    b.quantize("r", "y", 0.2, np.array(0, INT8))
    graph = lower(import_onnx(b.model({"x": (INT8, SHAPE)}, {"y": (INT8, SHAPE)})))
    assert [op.kind for op in graph.ops] == ["table"]
