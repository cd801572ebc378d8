"""ConvTranspose, integer products and BatchNormalization: the oracle's bytes in every geometry."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import oracle
import pytest
from cases import ModelBuilder
from plans import run_model

from vitral.errors import CompileError

GEOMETRIES: dict[str, dict[str, Any]] = {
    "stride 1": {},
    "stride 2": {"strides": [2, 2], "pads": [1, 1, 1, 1]},
    "stride 2, kernel 2": {"kernel": (2, 2), "strides": [2, 2]},
    "stride beyond the kernel": {"kernel": (2, 1), "strides": [3, 2], "output_padding": [1, 0]},
    "output padding": {"strides": [2, 3], "pads": [1, 0, 1, 1], "output_padding": [1, 1]},
    "uneven pads": {"kernel": (4, 3), "strides": [2, 1], "pads": [3, 0, 0, 2]},
    "pads beyond a phase": {"kernel": (2, 2), "strides": [3, 3], "pads": [4, 2, 3, 5]},
    "dilations": {"strides": [2, 1], "dilations": [2, 3], "pads": [1, 2, 1, 2]},
    "groups": {"group": 2, "strides": [2, 2], "pads": [0, 1, 1, 0]},
    "depthwise": {"group": 4, "outputs": 4, "strides": [2, 2]},
    "same upper": {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    "same lower": {"strides": [2, 2], "auto_pad": "SAME_LOWER"},
    "output shape": {"strides": [3, 2], "output_shape": [14, 9]},
    "output shape beyond": {"strides": [3, 2], "output_shape": [16, 10]},
    "one dimension": {"kernel": (4,), "strides": [2], "pads": [1, 1]},
}


def transposed(
    seed: int,
    *,
    kernel: tuple[int, ...] = (3, 3),
    outputs: int = 6,
    group: int = 1,
    dtype: Any = np.int8,
    quantized: bool = True,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """DQ, DQ -> ConvTranspose with bias -> Relu -> Q, scales for each output channel."""
    rng = np.random.default_rng([seed, 0x7A])
    shape = (2, 4, 5, 4)[: 2 + len(kernel)]
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
    w = rng.integers(-127, 128, (4, outputs // group, *kernel)).astype(np.int8)
    scales = (0.01 * np.exp2(rng.uniform(-1, 1, outputs // group))).astype(np.float32)
    b = ModelBuilder(opset=13)
    zero = np.array(limits.max // 2 - 60, dtype)
    names = [b.dequantize("x", "x_real", 0.05, zero)]
    names.append(b.dequantize(b.constant("w", w), "w_real", scales, None, 1))
    names.append(b.constant("bias", rng.normal(size=outputs).astype(np.float32)))
    last = b.node("ConvTranspose", names, "sum", group=group, **attributes)
    dims = tuple("nchw"[: len(shape)])
    if not quantized:
        return b.model({"x": (dtype, shape)}, {"sum": (np.float32, dims)}), {"x": x}
    b.quantize(b.node("Relu", [last], "positive"), "y", 0.03, np.array(-100, np.int8))
    return b.model({"x": (dtype, shape)}, {"y": (np.int8, dims)}), {"x": x}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_bytes_of_the_oracle(name: str, dtype: Any) -> None:
    model, feeds = transposed(3, dtype=dtype, **GEOMETRIES[name])
    want = oracle.evaluate(model, feeds)["y"]
    got = run_model(model, feeds)["y"]
    assert np.unique(want).size > 20
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_oracle_means_the_operator_of_onnxruntime(name: str) -> None:
    """Real results, before any rounding: only the float bias in units of the sum differs."""
    model, feeds = transposed(4, quantized=False, **GEOMETRIES[name])
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    want = np.asarray(session.run(None, feeds)[0])
    got = oracle.evaluate(model, feeds)["sum"]
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=2e-3)


def test_scales_belong_to_output_channels() -> None:
    """x [1,2;3,4], W channel 0 all 1 and channel 1 all 2 with scales 1 and .5, stride 2."""
    b = ModelBuilder()
    w = np.array([1] * 4 + [2] * 4, np.int8).reshape(1, 2, 2, 2)
    names = [b.dequantize("x", "x_real", 1.0, None)]
    names.append(b.dequantize(b.constant("w", w), "w_real", [1, 0.5], None, axis=1))
    b.node("ConvTranspose", names, "sum", strides=[2, 2])
    b.quantize("sum", "y", 1.0, np.array(0, np.int8))
    x = np.array([[[[1, 2], [3, 4]]]], np.int8)
    model = b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, (1, 2, 4, 4))})
    repeated = [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]
    assert run_model(model, {"x": x})["y"].tolist() == [[repeated, repeated]]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"group": 3}, "group 3"),
        ({"pads": [9, 9, 9, 9]}, "pads below"),
        ({"output_padding": [-1, 0]}, "output_padding"),
        ({"auto_pad": "UPPER"}, "auto_pad"),
        ({"kernel_shape": [2, 2]}, "kernel_shape"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], text: str) -> None:
    changes = dict(changes)
    group = changes.pop("group", 1)
    model, feeds = transposed(5, **changes)
    if group != 1:
        node = next(n for n in model.graph.node if n.op_type == "ConvTranspose")
        next(a for a in node.attribute if a.name == "group").i = group
    with pytest.raises(CompileError, match=rf"^node 'sum_ConvTranspose'[^\n]*{text}"):
        run_model(model, feeds)


@pytest.mark.parametrize("x_type", [np.int8, np.uint8])
@pytest.mark.parametrize("w_zeros", ["none", "one", "each"])
def test_conv_integer(w_zeros: str, x_type: Any) -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 100, (2, 4, 6, 5)).astype(x_type)
    w = rng.integers(0, 256, (6, 2, 3, 3)).astype(np.uint8)
    b = ModelBuilder(opset=13)
    names = ["x", b.constant("w", w), b.constant("xz", np.array(17, x_type))]
    if w_zeros != "none":
        zeros = np.array(120) if w_zeros == "one" else np.arange(110, 116)
        names.append(b.constant("wz", zeros.astype(np.uint8)))
    b.node("ConvInteger", names, "y", group=2, pads=[1, 0, 1, 2], strides=[2, 1])
    model = b.model({"x": (x_type, x.shape)}, {"y": (np.int32, tuple("nchw"))})
    got = run_model(model, {"x": x})["y"]
    np.testing.assert_array_equal(got, oracle.evaluate(model, {"x": x})["y"])
    assert got.dtype == np.int32
    if x_type is np.uint8 and w_zeros != "each":
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        np.testing.assert_array_equal(got, session.run(None, {"x": x})[0])


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("zeros", ["none", "one", "each"])
def test_matmul_integer(zeros: str, constant: bool) -> None:
    rng = np.random.default_rng(7)
    a = rng.integers(0, 256, (3, 4, 5)).astype(np.uint8)
    right = rng.integers(0, 256, (5, 6)).astype(np.uint8)
    b = ModelBuilder(opset=13)
    names = ["a", b.constant("b", right) if constant else "b"]
    if zeros != "none":
        each = np.arange(100, 106) if zeros == "each" and constant else np.array(103)
        names += [b.constant("az", np.array(12, np.uint8)), b.constant("bz", each.astype(np.uint8))]
    b.node("MatMulInteger", names, "y")
    inputs = {"a": (np.uint8, a.shape)}
    feeds = {"a": a}
    if not constant:
        inputs["b"], feeds["b"] = (np.uint8, right.shape), right
    model = b.model(inputs, {"y": (np.int32, (3, 4, 6))})
    got = run_model(model, feeds)["y"]
    np.testing.assert_array_equal(got, oracle.evaluate(model, feeds)["y"])
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    np.testing.assert_array_equal(got, session.run(None, feeds)[0])


def normalized(*, conv: bool, gains: list[float]) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    rng = np.random.default_rng(8)
    channels = len(gains)
    x = rng.integers(-128, 128, (2, channels, 6, 5)).astype(np.int8)
    b = ModelBuilder(opset=15)
    last = b.dequantize("x", "x_real", 0.05, np.array(4, np.int8))
    if conv:
        w = rng.integers(-127, 128, (channels, channels, 3, 3)).astype(np.int8)
        scales = (0.01 * np.exp2(rng.uniform(-1, 1, channels))).astype(np.float32)
        names = [last, b.dequantize(b.constant("w", w), "w_real", scales, None, 0)]
        last = b.node("Conv", names, "sum")
    parameters = {
        "scale": np.array(gains),
        "offset": rng.normal(size=channels),
        "mean": rng.normal(size=channels),
        "variance": rng.uniform(0.5, 2, channels),
    }
    names = [last, *(b.constant(n, v.astype(np.float32)) for n, v in parameters.items())]
    last = b.node("Relu", [b.node("BatchNormalization", names, "line")], "positive")
    b.quantize(last, "y", 0.06, np.array(-100, np.int8))
    return b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, tuple("nchw"))}), {"x": x}


@pytest.mark.parametrize("conv", [False, True])
def test_batch_normalization_of_either_sign(conv: bool) -> None:
    model, feeds = normalized(conv=conv, gains=[1.0, -0.7, 0.0, 0.3])
    unrounded: dict[str, np.ndarray] = {}
    want = oracle.evaluate(model, feeds, unrounded=unrounded)["y"]
    np.testing.assert_array_equal(run_model(model, feeds)["y"], want)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    theirs = np.asarray(session.run(None, feeds)[0]).astype(int)
    assert np.abs(theirs - want).max() <= 1
    assert (theirs != want).mean() < 0.01


def test_batch_normalization_runs_on_the_accelerator_with_its_convolution() -> None:
    import vitral

    model, feeds = normalized(conv=True, gains=[1.0, -0.7, 2.0, 0.3])
    module = vitral.compile(model)
    assert sum(layer.macs for s in module.segments for layer in s.layers) == module.macs > 0
    assert any("folded into the convolution" in notice for notice in module.notices)
    with vitral.Session(module) as session:
        (y,) = session.run(None, feeds)
    np.testing.assert_array_equal(y, oracle.evaluate(model, feeds)["y"])


def test_batch_normalization_that_gives_no_number_is_refused() -> None:
    model, feeds = normalized(conv=False, gains=[1.0, 1.0])
    variance = next(t for t in model.graph.initializer if t.name == "variance")
    variance.CopyFrom(onnx.numpy_helper.from_array(np.array([1, -1], np.float32), "variance"))
    with pytest.raises(CompileError, match=r"^node 'line_BatchNormalization'[^\n]*variances"):
        run_model(model, feeds)


def test_a_transposed_convolution_runs_on_the_accelerator() -> None:
    import vitral

    model, feeds = transposed(9, kernel=(4, 4), strides=[2, 2], pads=[1, 1, 1, 1])
    module = vitral.compile(model)
    assert sum(layer.macs for s in module.segments for layer in s.layers) == module.macs > 0
    with vitral.Session(module) as session:
        (y,) = session.run(None, feeds)
    np.testing.assert_array_equal(y, oracle.evaluate(model, feeds)["y"])
