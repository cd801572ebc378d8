"""Pools, Gemm, MatMul and ConvTranspose with known right values, in both forms, on both simulators.

Pools follow an identity convolution, so that they run on the core where the compiler proves them.
"""

from typing import Any

import numpy as np
import onnx
import pytest
from cases import ModelBuilder, crc32, fill_x, read_rows

import vitral
from vitral.errors import CompileError

DEVICES = ("fsim", "tsim")
FORMS = ("qdq", "qoperator")
POOLS = [("qdq", "fsim"), ("qoperator", "fsim"), ("qdq", "tsim")]
"""On the RTL pools run in one form: the other one is the same program."""
pytestmark = pytest.mark.xdist_group("tsim")


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray], device: str) -> np.ndarray:
    module = vitral.compile(model)
    assert module.segments, "nothing runs on the core"
    with vitral.Session(module, device=device) as session:
        return session.run(None, feeds)[0]


def pool(
    form: str,
    op: str,
    x: np.ndarray,
    source: tuple[float, int],
    target: tuple[float, int],
    **how: Any,
) -> onnx.ModelProto:
    """x -> identity convolution -> pool, both ends quantized."""
    b = ModelBuilder(opset=19, contrib=True)
    channels = x.shape[1]
    zeros = [np.array(zero, x.dtype) for zero in (source[1], target[1])]
    one = b.constant("one", np.ones((channels, 1, 1, 1), np.int8))
    names = [b.dequantize("x", "x_real", source[0], zeros[0]), b.dequantize(one, "w", 1.0, None)]
    b.quantize(b.node("Conv", names, "copy", group=channels), "h", source[0], zeros[0])
    if form == "qdq":
        b.dequantize("h", "h_real", source[0], zeros[0])
        b.quantize(b.node(op, ["h_real"], "pooled", **how), "y", target[0], zeros[1])
    elif op == "MaxPool":
        b.node(op, ["h"], "y", **how)
    else:
        scales = [b.scale("hs", source[0]), b.constant("hz", zeros[0])]
        scales += [b.scale("ys", target[0]), b.constant("yz", zeros[1])]
        b.node(f"QLinear{op}", ["h", *scales], "y", domain="com.microsoft", **how)
    return b.model({"x": (x.dtype, x.shape)}, {"y": (x.dtype, tuple("nchw"))})


@pytest.mark.parametrize(("form", "device"), POOLS)
@pytest.mark.parametrize("row", read_rows("max_pools"), ids=lambda row: row["name"])
def test_max_pool_row(row: dict[str, Any], form: str, device: str) -> None:
    x, unit = fill_x(tuple(row["x"])), (1 / 16, 0)
    how = {"kernel_shape": row["kernel"], "strides": row["strides"], "pads": row["pads"]}
    model = pool(form, "MaxPool", x, unit, unit, ceil_mode=row["ceil_mode"], **how)
    y = run(model, {"x": x}, device)
    assert (y.shape, int(y.sum(dtype=np.int64)), crc32(y)) == (
        tuple(row["out"]),
        row["sum"],
        row["crc"],
    )


@pytest.mark.parametrize(("form", "device"), POOLS)
@pytest.mark.parametrize("row", read_rows("global_averages"), ids=lambda row: row["name"])
def test_global_average_row(row: dict[str, Any], form: str, device: str) -> None:
    x = fill_x(tuple(row["x"]))
    source, target = (row["x_scale"], row["x_zero"]), (row["y_scale"], row["y_zero"])
    y = run(pool(form, "GlobalAveragePool", x, source, target), {"x": x}, device)
    assert int(y.sum(dtype=np.int64)) == row["sum"]
    assert row["crc"] in (None, crc32(y))


@pytest.mark.parametrize(("form", "device"), POOLS)
def test_padding_never_wins_a_maximum(form: str, device: str) -> None:
    x = np.full((1, 1, 4, 4), -100, np.int8)
    how = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    model = pool(form, "MaxPool", x, (1.0, 0), (1.0, 0), **how)
    assert (run(model, {"x": x}, device) == -100).all()


A, B = np.array([[10, -20, 30]], np.int8), np.array([[1, -2], [3, 4], [-5, 6]], np.int8)
SCALES = np.array([0.25, 0.5], np.float32)
BIAS = np.array([8, -16], np.int32)


def gemm(form: str, bias: np.ndarray | None, *, trans_b: bool, **how: Any) -> onnx.ModelProto:
    b = ModelBuilder(contrib=True)
    right = B.T.copy() if trans_b else B
    product = np.float32(0.5) * SCALES
    zero = np.array(0, np.int8)
    if form == "qoperator":
        names = ["a", b.scale("as", 0.5), b.constant("az", zero), b.constant("b", right)]
        names += [b.scale("bs", SCALES), b.constant("bz", np.zeros(2, np.int8))]
        names.append("" if bias is None else b.constant("c", bias.reshape(-1)))
        names += [b.scale("ys", 1.0), b.constant("yz", zero)]
        b.node("QGemm", names, "y", domain="com.microsoft", transB=int(trans_b), **how)
        return b.model({"a": (np.int8, A.shape)}, {"y": (np.int8, (1, 2))})
    names = [b.dequantize("a", "a_real", 0.5, None)]
    names.append(b.dequantize(b.constant("b", right), "b_real", SCALES, None, 0 if trans_b else 1))
    if bias is not None:
        names.append(b.dequantize(b.constant("c", bias), "c_real", product, None, bias.ndim - 1))
    b.quantize(b.node("Gemm", names, "sum", transB=int(trans_b), **how), "y", 1.0, zero)
    return b.model({"a": (np.int8, A.shape)}, {"y": (np.int8, (1, 2))})


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_gemm_bias(form: str, trans_b: bool, device: str) -> None:
    for bias, want in ((BIAS, [-24, 16]), (BIAS[None], [-24, 16]), (None, [-25, 20])):
        y = run(gemm(form, bias, trans_b=trans_b), {"a": A}, device)
        assert y.tolist() == [want]


def test_gemm_bias_that_no_accumulator_holds_names_its_channel() -> None:
    """xs .5, ws 7.843e-10: 5 and -4.5 are about 1.3e10 units."""
    b = ModelBuilder()
    names = [b.dequantize("a", "a_real", 0.5, None)]
    names.append(b.dequantize(b.constant("b", B), "b_real", 7.843e-10, None))
    names.append(b.constant("c", np.array([5, -4.5], np.float32)))
    b.quantize(b.node("Gemm", names, "sum"), "y", 1.0, np.array(0, np.int8))
    with pytest.raises(CompileError, match=r"^node 'sum_Gemm'[^\n]*channel 0"):
        vitral.compile(b.model({"a": (np.int8, A.shape)}, {"y": (np.int8, (1, 2))}))


LEFT = np.array([[238, 115, 94], [245, 111, 102], [158, 225, 48]], np.uint8)
RIGHT = np.array([[25, 36, 125], [42, -123, 76], [-81, -86, 35]], np.int8)
PRODUCT = np.array([[12100, 1951, 40214], [11745, 2293, 41351], [18030, -10919, 36548]])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", FORMS)
def test_product_with_both_zero_points(form: str, device: str) -> None:
    """In steps of 512, of which no sum is a tie."""
    b = ModelBuilder()
    zeros = np.array(42, np.uint8), np.array(-26, np.int8), np.array(0, np.int8)
    right = b.constant("b", RIGHT)
    if form == "qdq":
        names = [b.dequantize("a", "a_real", 1.0, zeros[0])]
        names.append(b.dequantize(right, "b_real", 1.0, zeros[1]))
        b.quantize(b.node("MatMul", names, "sum"), "y", 512.0, zeros[2])
    else:
        names = ["a", b.scale("as", 1.0), b.constant("az", zeros[0]), right, b.scale("bs", 1.0)]
        names += [b.constant("bz", zeros[1]), b.scale("ys", 512.0), b.constant("yz", zeros[2])]
        b.node("QLinearMatMul", names, "y")
    model = b.model({"a": (np.uint8, LEFT.shape)}, {"y": (np.int8, LEFT.shape)})
    y = run(model, {"a": LEFT}, device)
    np.testing.assert_array_equal(y, np.rint(PRODUCT / 512))


def test_product_as_integers() -> None:
    b = ModelBuilder()
    names = ["a", b.constant("b", RIGHT), b.constant("az", np.array(42, np.uint8))]
    b.node("MatMulInteger", [*names, b.constant("bz", np.array(-26, np.int8))], "y")
    model = b.model({"a": (np.uint8, LEFT.shape)}, {"y": (np.int32, LEFT.shape)})
    with vitral.Session(vitral.compile(model)) as session:
        np.testing.assert_array_equal(session.run(None, {"a": LEFT})[0], PRODUCT)


@pytest.mark.parametrize("device", DEVICES)
def test_transposed_convolution_repeats(device: str) -> None:
    """x [1,2;3,4], W channel 0 all 1 and channel 1 all 2 with scales 1 and .5, stride 2."""
    b = ModelBuilder()
    w = np.array([1] * 4 + [2] * 4, np.int8).reshape(1, 2, 2, 2)
    names = [b.dequantize("x", "x_real", 1.0, None)]
    names.append(b.dequantize(b.constant("w", w), "w_real", [1, 0.5], None, axis=1))
    b.node("ConvTranspose", names, "sum", strides=[2, 2])
    b.quantize("sum", "y", 1.0, np.array(0, np.int8))
    x = np.array([[[[1, 2], [3, 4]]]], np.int8)
    model = b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, (1, 2, 4, 4))})
    repeated = x[0, 0].repeat(2, axis=0).repeat(2, axis=1)
    assert run(model, {"x": x}, device).tolist() == [[repeated.tolist()] * 2]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", FORMS)
def test_ones_under_a_row_of_ones_are_counted(form: str, device: str) -> None:
    """1 x 16 ones, kernel 1 x 8, seven pads on each side: 1..8, eight times 8, 7..1."""
    b = ModelBuilder()
    zero = np.array(0, np.int8)
    x, w = np.ones((1, 1, 1, 16), np.int8), b.constant("w", np.ones((1, 1, 1, 8), np.int8))
    how = {"pads": [0, 7, 0, 7]}
    if form == "qdq":
        names = [b.dequantize("x", "x_real", 1.0, zero), b.dequantize(w, "w_real", 1.0, None)]
        b.quantize(b.node("Conv", names, "sum", **how), "y", 1.0, zero)
    else:
        unit, nothing = b.scale("unit", 1.0), b.constant("zero", zero)
        b.node("QLinearConv", ["x", unit, nothing, w, unit, nothing, unit, nothing], "y", **how)
    model = b.model({"x": (np.int8, x.shape)}, {"y": (np.int8, (1, 1, 1, 23))})
    want = [*range(1, 9), *[8] * 7, *range(8, 0, -1)]
    assert run(model, {"x": x}, device).reshape(-1).tolist() == want
