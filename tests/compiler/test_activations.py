"""Functions of one quantized tensor: every code, in both forms, against oracle and onnxruntime."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import oracle
import pytest
from cases import ModelBuilder
from plans import run_model

UNARY: dict[str, dict[str, float]] = {
    "Abs": {},
    "Ceil": {},
    "Celu": {"alpha": 0.7},
    "Elu": {"alpha": 1.3},
    "Erf": {},
    "Exp": {},
    "Floor": {},
    "Gelu": {},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "HardSwish": {},
    "LeakyRelu": {"alpha": 0.1},
    "Mish": {},
    "Neg": {},
    "Round": {},
    "Selu": {},
    "Sigmoid": {},
    "Sign": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
    "ThresholdedRelu": {"alpha": 0.5},
}
OPSET = {"Gelu": 21, "HardSwish": 19, "Mish": 19}
SCALES = [((0.05, 0.03), np.int8), ((2.0**-5, 1 / 127), np.uint8), ((0.11, 0.25), np.int8)]
DTYPES = [np.int8, np.uint8]


def all_codes(dtype: Any) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.arange(limits.min, limits.max + 1).astype(dtype).reshape(1, 4, 8, 8)


def zero(dtype: Any, value: int) -> np.ndarray:
    return np.array(value + (128 if dtype is np.uint8 else 0), dtype)


def chain(dtype: Any, scales: tuple[float, float], add: Callable[..., str], **how: Any) -> Any:
    """DQ -> what `add(builder, name)` makes of it -> Q."""
    b = ModelBuilder(contrib=True, **how)
    x = b.dequantize("x", "x_real", scales[0], zero(dtype, 9))
    b.quantize(add(b, x), "y", scales[1], zero(dtype, -5))
    shape = all_codes(dtype).shape
    return b.model({"x": (dtype, shape)}, {"y": (dtype, shape)})


def checked(model: onnx.ModelProto, dtype: Any, *, with_onnxruntime: bool = True) -> np.ndarray:
    """The product's codes, which are the oracle's; a differing onnxruntime was near a tie."""
    x = {"x": all_codes(dtype)}
    unrounded: dict[str, np.ndarray] = {}
    want = oracle.evaluate(model, x, unrounded=unrounded)["y"]
    got = run_model(model, x)["y"]
    np.testing.assert_array_equal(got, want)
    assert got.dtype == dtype
    if with_onnxruntime:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        theirs = np.asarray(session.run(None, x)[0]).astype(int)
        steps = unrounded["y"]
        band = 1e-5 * (1 + np.abs(steps))
        near = np.abs(steps - np.floor(steps) - 0.5) <= band
        differs = theirs != want
        assert (np.abs(theirs - want) <= 1).all()
        assert not (differs & ~near).any()
    return got


@pytest.mark.parametrize(("scales", "dtype"), SCALES)
@pytest.mark.parametrize("op", UNARY)
def test_every_code_of_a_function(op: str, scales: tuple[float, float], dtype: Any) -> None:
    opset = OPSET.get(op, 13)

    def add(b: ModelBuilder, x: str) -> str:
        return b.node(op, [x], "result", **UNARY[op])

    y = checked(chain(dtype, scales, add, opset=opset), dtype)
    assert np.unique(y).size > 2


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_in_both_approximations(approximate: str) -> None:
    def add(b: ModelBuilder, x: str) -> str:
        return b.node("Gelu", [x], "result", approximate=approximate)

    checked(chain(np.int8, (0.03, 0.01), add, opset=21), np.int8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("swapped", [False, True])
def test_silu_is_one_function_of_its_codes(swapped: bool, dtype: Any) -> None:
    def add(b: ModelBuilder, x: str) -> str:
        names = [x, b.node("Sigmoid", [x], "gate")]
        return b.node("Mul", names[::-1] if swapped else names, "result")

    model = chain(dtype, (0.05, 0.04), add)
    checked(model, dtype)
    x = (np.arange(256) - 137) * float(np.float32(0.05))
    steps = x / (1 + np.exp(-x)) / float(np.float32(0.04))
    got = run_model(model, {"x": all_codes(dtype)})["y"].reshape(-1).astype(int)
    want = np.clip(steps, -128 + 5, 127 + 5) + int(zero(dtype, -5))
    assert (np.abs(got - want) <= 0.5 + 1e-9).all()


def test_hard_swish_written_out_equals_hard_swish() -> None:
    def written(b: ModelBuilder, x: str) -> str:
        gate = b.node("HardSigmoid", [x], "gate", alpha=1 / 6, beta=0.5)
        return b.node("Mul", [x, gate], "result")

    def named(b: ModelBuilder, x: str) -> str:
        return b.node("HardSwish", [x], "result")

    results = [
        checked(chain(np.int8, (0.05, 0.03), f, opset=19), np.int8) for f in (written, named)
    ]
    np.testing.assert_array_equal(results[0], results[1])


def test_hard_swish_as_add_clip_mul_div() -> None:
    """x · clip(x + 3, 0, 6) / 6, as older exporters write it: op by op in float32."""

    def add(b: ModelBuilder, x: str) -> str:
        shifted = b.node("Add", [x, b.scale("three", 3)], "shifted")
        gate = b.node("Clip", [shifted, b.scale("low", 0), b.scale("high", 6)], "gate")
        return b.node("Div", [b.node("Mul", [x, gate], "product"), b.scale("six", 6)], "result")

    checked(chain(np.int8, (0.05, 0.03), add), np.int8)


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_qlinear_form_has_the_bytes_of_its_qdq_form(op: str, dtype: Any) -> None:
    attributes = {"alpha": 0.2} if op == "QLinearLeakyRelu" else {}
    b = ModelBuilder(contrib=True)
    names = ["x", b.scale("xs", 0.05), b.constant("xz", zero(dtype, 9))]
    names += [b.scale("ys", 0.02), b.constant("yz", zero(dtype, -5))]
    b.node(op, names, "y", domain="com.microsoft", **attributes)
    shape = all_codes(dtype).shape
    qlinear = b.model({"x": (dtype, shape)}, {"y": (dtype, shape)})

    def add(b: ModelBuilder, x: str) -> str:
        return b.node(op.removeprefix("QLinear"), [x], "result", **attributes)

    qdq = chain(dtype, (0.05, 0.02), add)
    one = checked(qlinear, dtype, with_onnxruntime=False)
    np.testing.assert_array_equal(one, checked(qdq, dtype))


PER_CHANNEL = np.array([0.5, -1.25, 2.0, 0.01], np.float32).reshape(4, 1, 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("op", "first"),
    [
        *((op, False) for op in ("Add", "Sub", "Mul", "Div", "PRelu", "Max", "Min")),
        *((op, True) for op in ("Add", "Sub", "Mul", "Max", "Min")),
    ],
)
def test_one_constant_for_each_channel(op: str, first: bool, dtype: Any) -> None:
    def add(b: ModelBuilder, x: str) -> str:
        names = [x, b.constant("c", PER_CHANNEL)]
        return b.node(op, names[::-1] if first else names, "result")

    checked(chain(dtype, (0.05, 0.03), add), dtype)


def test_two_steps_with_constants_for_each_channel_in_uint8() -> None:
    def add(b: ModelBuilder, x: str) -> str:
        scaled = b.node("Mul", [x, b.constant("c", PER_CHANNEL)], "scaled")
        moved = b.node("Add", [scaled, b.constant("d", PER_CHANNEL[::-1].copy())], "moved")
        return b.node("Relu", [moved], "result")

    checked(chain(np.uint8, (0.05, 0.03), add), np.uint8)


def test_function_of_numbers_that_have_none_is_refused_in_one_line() -> None:
    from vitral.errors import CompileError

    def add(b: ModelBuilder, x: str) -> str:
        return b.node("Sqrt", [x], "result")

    with pytest.raises(CompileError, match=r"^node 'y_QuantizeLinear'[^\n]*NaN"):
        run_model(chain(np.int8, (0.05, 0.03), add), {"x": all_codes(np.int8)})
