"""The oracle against onnxruntime's own kernels, on seeded random graphs.

QLinearConv and QLinearMatMul follow the same law and must agree to the bit. Where onnxruntime is
known to differ (zero point inside the rounding of QLinearAdd), the difference itself is asserted.

On x86 without VNNI onnxruntime adds two uint8 * int8 products in 16 bits with saturation, so it is
wrong for large weights. uint8 * int8 is checked with 7-bit weights, which cannot saturate, and the
cases with both types are rewritten to uint8 weights with zero point 128.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import oracle
import pytest
from cases import ConvCase, ModelBuilder, build_qdq, build_qoperator, conv_rows, small_convs

CONV_TYPES = [
    # x and y, w, weight zero points
    (np.uint8, np.uint8, True),
    (np.uint8, np.int8, False),
    (np.int8, np.int8, False),
]
SEEDS = range(12)
X_SCALE, W_SCALE = 0.017, 0.0043


def run_onnxruntime(
    model: onnx.ModelProto, inputs: dict[str, np.ndarray], *, optimised: bool = False
) -> list[np.ndarray]:
    """All outputs; single-threaded, and without graph rewriting unless `optimised`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    )
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [np.asarray(output) for output in session.run(None, inputs)]


@pytest.mark.parametrize("case", [*conv_rows(), *small_convs()], ids=str)
def test_cases_agree_with_onnxruntime(case: ConvCase) -> None:
    """Known bytes: the QOperator kernel where the form exists, else the optimised QDQ session."""
    exact = _with_unsigned_weights(case) if case.x.dtype == np.uint8 else case
    model = build_qdq(exact) if case.clip is not None else build_qoperator(exact)
    (y,) = run_onnxruntime(model, {"x": case.x}, optimised=case.clip is not None)
    case.check(y)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("dtype", "w_dtype", "w_zero"), CONV_TYPES)
def test_qlinear_conv_agrees_to_the_bit(dtype: Any, w_dtype: Any, w_zero: bool, seed: int) -> None:
    model, x = random_conv(np.random.default_rng([seed, 1]), dtype, w_dtype, w_zero)
    want = run_onnxruntime(model, {"x": x})[0]
    got = oracle.evaluate(model, {"x": x})["y"]
    oracle.compare({"y": want}, {"y": got})


@pytest.mark.parametrize("divisor", [26, 28, 30, 94])
def test_multiplier_and_product_are_each_rounded_to_float32(divisor: int) -> None:
    """Every sum is an exact tie of 1 / divisor, a multiplier that float32 cannot hold.

    Exact rationals send all ties to even, and the exact product with the float32 multiplier sends
    all to one side. The law, like onnxruntime's kernel, rounds twice and does neither.
    """
    x = np.arange(-127, 128, 2, dtype=np.int8).reshape(1, 1, 1, -1)
    b = ModelBuilder()
    names = ["x", b.scale("x_scale", 1.0), b.constant("zero", np.array(0, np.int8))]
    names += [b.constant("w", np.full((1, 1, 1, 1), divisor // 2, np.int8)), "x_scale", "zero"]
    names += [b.scale("y_scale", divisor), "zero"]
    b.node("QLinearConv", names, "y")
    model = b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, x.shape)})
    want = run_onnxruntime(model, {"x": x})[0]
    sums = x.astype(np.float64) * (divisor // 2)
    multiplier = np.float32(1) / np.float32(divisor)
    assert (want != np.rint(sums / divisor)).any()
    assert (want != np.rint(sums * np.float64(multiplier))).any()
    oracle.compare({"y": want}, {"y": oracle.evaluate(model, {"x": x})["y"]})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_qlinear_matmul_agrees_to_the_bit(dtype: Any, seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    m, k, n = (int(v) for v in rng.integers(4, 80, 3))
    a, right = random_tensor(rng, (m, k), dtype), random_tensor(rng, (k, n), dtype)
    b = ModelBuilder()
    names = ["a", b.scale("a_scale", X_SCALE), b.constant("a_zero", zero(rng, dtype))]
    names += [b.constant("b", right), b.scale("b_scale", random_w_scales(rng, n))]
    names.append(b.constant("b_zero", np.full(n, zero(rng, dtype))))
    y_scale = fitting_scale(X_SCALE, W_SCALE, k)
    names += [b.scale("y_scale", y_scale), b.constant("y_zero", zero(rng, dtype))]
    b.node("QLinearMatMul", names, "y")
    model = b.model({"a": (dtype, (m, k))}, {"y": (dtype, (m, n))})
    want = run_onnxruntime(model, {"a": a})[0]
    oracle.compare({"y": want}, {"y": oracle.evaluate(model, {"a": a})["y"]})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_qgemm_agrees_to_the_bit(dtype: Any, seed: int) -> None:
    rng = np.random.default_rng([seed, 6])
    m, k, n = (int(v) for v in rng.integers(4, 80, 3))
    trans_b, alpha = int(rng.integers(0, 2)), float(rng.choice([1.0, 0.3]))
    a = random_tensor(rng, (m, k), dtype)
    right = random_tensor(rng, (n, k) if trans_b else (k, n), dtype)
    b = ModelBuilder(contrib=True)
    names = ["a", b.scale("a_scale", X_SCALE), b.constant("a_zero", zero(rng, dtype))]
    names += [b.constant("b", right), b.scale("b_scale", random_w_scales(rng, n))]
    names.append(b.constant("b_zero", np.full(n, zero(rng, dtype))))
    names.append(b.constant("c", rng.integers(-20000, 20000, n), np.int32))
    y_scale = alpha * fitting_scale(X_SCALE, W_SCALE, k)
    names += [b.scale("y_scale", y_scale), b.constant("y_zero", zero(rng, dtype))]
    b.node("QGemm", names, "y", domain="com.microsoft", transB=trans_b, alpha=alpha)
    model = b.model({"a": (dtype, (m, k))}, {"y": (dtype, (m, n))})
    want = run_onnxruntime(model, {"a": a})[0]
    oracle.compare({"y": want}, {"y": oracle.evaluate(model, {"a": a})["y"]})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("op", ["Add", "Mul", "Sub"])
def test_elementwise_agrees_with_the_unoptimised_qdq_session(op: str, seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    a, right = (random_tensor(rng, (3, 40, 7), np.int8) for _ in range(2))
    b = ModelBuilder()
    names = [
        b.dequantize(n, f"{n}_real", random_scale(rng), zero(rng, np.int8)) for n in ("a", "b")
    ]
    last = b.node(op, names, "real")
    last = b.node("Relu", [last], "positive") if seed % 2 else last
    b.quantize(last, "y", 0.01, zero(rng, np.int8))
    model = b.model(dict.fromkeys(("a", "b"), (np.int8, a.shape)), {"y": (np.int8, a.shape)})
    want = run_onnxruntime(model, {"a": a, "b": right})[0]
    got = oracle.evaluate(model, {"a": a, "b": right})["y"]
    oracle.compare({"y": want}, {"y": got}, allow_collapsed=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_quantize_and_dequantize_agree(seed: int) -> None:
    rng = np.random.default_rng([seed, 4])
    dtype = [np.int8, np.uint8][seed % 2]
    x = (rng.normal(size=(5, 50)) * 4).astype(np.float32)
    b = ModelBuilder()
    zeros = np.array([zero(rng, dtype) for _ in range(5)])
    scales = random_scale(rng, 5)
    names = [b.scale("scale", scales), b.constant("zero", zeros)]
    b.node("QuantizeLinear", ["x", *names], "q", axis=0)
    b.node("DequantizeLinear", ["q", *names], "y", axis=0)
    model = b.model(
        {"x": (np.float32, x.shape)}, {"q": (dtype, x.shape), "y": (np.float32, x.shape)}
    )
    quantized, real = run_onnxruntime(model, {"x": x})
    want = {"q": quantized, "y": real}
    oracle.compare(want, oracle.evaluate(model, {"x": x}), allow_collapsed=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_max_pool_agrees(seed: int) -> None:
    rng = np.random.default_rng([seed, 5])
    dtype = [np.int8, np.uint8][seed % 2]
    x = random_tensor(rng, (1, 3, *(int(v) for v in rng.integers(8, 15, 2))), dtype)
    kernel = [int(v) for v in rng.integers(2, 4, 2)]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [int(v) for v in rng.integers(1, 4, 2)],
        "pads": [int(v) for v in rng.integers(0, min(kernel), 4)],
        "ceil_mode": int(rng.integers(0, 2)),
    }
    b = ModelBuilder(opset=13)
    b.node("MaxPool", ["x"], "y", **attributes)
    model = b.model({"x": (dtype, x.shape)}, {"y": (dtype, ("n", "c", "h", "w"))})
    want = run_onnxruntime(model, {"x": x})[0]
    got = oracle.evaluate(model, {"x": x})["y"]
    oracle.compare({"y": want}, {"y": got}, allow_collapsed=True)


def test_fused_add_of_onnxruntime_differs_only_at_ties() -> None:
    """The documented difference: its QLinearAdd rounds with the zero point inside.

    a runs up and b down over all 256 values: 64 of the sums are exact ties that go the other way.
    """
    up = np.arange(-128, 128, dtype=np.int8)
    inputs = {"a": up, "b": up[::-1].copy()}
    b = ModelBuilder()
    names = [
        b.dequantize("a", "a_real", 1 / 32, np.array(-7, np.int8)),
        b.dequantize("b", "b_real", 3 / 64, np.array(5, np.int8)),
    ]
    b.quantize(b.node("Add", names, "sum"), "y", 1 / 16, np.array(3, np.int8))
    model = b.model(dict.fromkeys(inputs, (np.int8, up.shape)), {"y": (np.int8, up.shape)})
    fused = run_onnxruntime(model, inputs, optimised=True)[0].astype(int)
    unrounded: dict[str, np.ndarray] = {}
    golden = oracle.evaluate(model, inputs, unrounded=unrounded)["y"].astype(int)
    differs = fused != golden
    assert differs.sum() == 64
    assert set(np.abs(fused - golden)[differs]) == {1}
    assert (unrounded["y"][differs] % 1 == 0.5).all()


def random_conv(
    rng: np.random.Generator, dtype: Any, w_dtype: Any, w_zero: bool
) -> tuple[onnx.ModelProto, np.ndarray]:
    """One QLinearConv with random geometry, per-channel scales, and bias half of the time."""
    group = int(rng.choice([1, 1, 2, 5]))
    outputs, inputs = group * int(rng.integers(1, 9)), group * int(rng.integers(1, 9))
    kernel = [int(v) for v in rng.integers(1, 5, 2)]
    dilations = [int(v) for v in rng.integers(1, 3, 2)]
    x = random_tensor(rng, (2, inputs, *(int(v) for v in rng.integers(8, 16, 2))), dtype)
    w = random_tensor(rng, (outputs, inputs // group, *kernel), w_dtype)
    if np.dtype(dtype) == np.uint8 and np.dtype(w_dtype) == np.int8:
        w //= 2
    b = ModelBuilder()
    names = ["x", b.scale("x_scale", X_SCALE), b.constant("x_zero", zero(rng, dtype))]
    names += [b.constant("w", w), b.scale("w_scale", random_w_scales(rng, outputs))]
    w_zeros = np.full(outputs, zero(rng, w_dtype) if w_zero else 0, dtype=w_dtype)
    names.append(b.constant("w_zero", w_zeros))
    y_scale = fitting_scale(X_SCALE, W_SCALE, w[0].size)
    names += [b.scale("y_scale", y_scale), b.constant("y_zero", zero(rng, dtype))]
    if rng.integers(0, 2):
        names.append(b.constant("bias", rng.integers(-20000, 20000, outputs), np.int32))
    pads = [int(v) for v in rng.integers(0, 4, 4)]
    strides = [int(v) for v in rng.integers(1, 4, 2)]
    b.node("QLinearConv", names, "y", group=group, pads=pads, strides=strides, dilations=dilations)
    model = b.model({"x": (dtype, x.shape)}, {"y": (dtype, ("n", "c", "h", "w"))})
    return model, x


def random_tensor(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def random_scale(rng: np.random.Generator, size: int | None = None) -> np.ndarray:
    return np.exp(rng.uniform(np.log(0.002), np.log(0.05), size)).astype(np.float32)


def random_w_scales(rng: np.random.Generator, size: int) -> np.ndarray:
    """Per-channel weight scales from a half to twice W_SCALE."""
    return (W_SCALE * np.exp2(rng.uniform(-1, 1, size))).astype(np.float32)


def fitting_scale(x_scale: float, w_scale: float, terms: int) -> float:
    """An output scale at which a sum of `terms` random products spans about 40 steps."""
    return x_scale * w_scale * 74 * 74 * terms**0.5 / 40


def zero(rng: np.random.Generator, dtype: Any) -> np.ndarray:
    """A zero point within 20 of the middle of the type, so that sums stay centred."""
    middle = 128 if np.dtype(dtype) == np.uint8 else 0
    return np.array(middle + rng.integers(-20, 21), dtype=dtype)


def _with_unsigned_weights(case: ConvCase) -> ConvCase:
    """The same numbers with weights w + 128 as uint8, zero point 128."""
    w = (case.w.astype(np.int16) + 128).astype(np.uint8)
    return replace(case, w=w, w_zero=case.w_zero + 128)
