"""The oracle gives the known bytes of every convolution case, in QOperator and in QDQ form."""

import numpy as np
import oracle
import pytest
from cases import (
    ConvCase,
    ModelBuilder,
    build_qdq,
    build_qoperator,
    conv_rows,
    crc32,
    small_convs,
)

ALL = (*conv_rows(), *small_convs())
WITHOUT_CLIP = tuple(case for case in ALL if case.clip is None)


def _row(name: str) -> ConvCase:
    return next(case for case in ALL if case.name == name)


@pytest.mark.parametrize("case", WITHOUT_CLIP, ids=str)
def test_qoperator_form_gives_the_known_bytes(case: ConvCase) -> None:
    case.check(oracle.evaluate(build_qoperator(case), {"x": case.x})["y"])


@pytest.mark.parametrize("case", ALL, ids=str)
def test_qdq_form_gives_the_known_bytes(case: ConvCase) -> None:
    case.check(oracle.evaluate(build_qdq(case), {"x": case.x})["y"])


@pytest.mark.parametrize("case", conv_rows(), ids=str)
def test_sum_and_first_elements_of_a_row(case: ConvCase) -> None:
    y = oracle.evaluate(build_qdq(case), {"x": case.x})["y"]
    assert int(y.sum(dtype=np.int64)) == case.expected.total
    assert tuple(y.reshape(-1)[:4]) == case.expected.first


def test_float_edges_give_the_same_integers() -> None:
    case = _row("V2")
    real = (case.x.astype(np.float32) - case.x_zero) * np.float32(case.x_scale)
    result = oracle.evaluate(build_qdq(case, float_edges=True), {"x_float": real})
    case.check(result["y"])
    np.testing.assert_array_equal(result["x"], case.x)
    np.testing.assert_array_equal(result["y_float"], result["y"] * np.float32(case.y_scale))


@pytest.mark.parametrize("policy", ["rounds half up", "shifts without rounding"])
def test_failure_names_the_wrong_rounding(policy: str) -> None:
    case = _row("ROUND-TIE")
    wrong = np.array(case.expected.wrong[policy], dtype=np.int8).reshape(case.expected.shape)
    with pytest.raises(AssertionError, match=policy):
        case.check(wrong)


def test_failure_of_a_row_names_the_wrong_rounding() -> None:
    """V7 truncated: the sums come from the oracle, the wrong policy from here."""
    case = _row("V7")
    unrounded: dict[str, np.ndarray] = {}
    oracle.evaluate(build_qdq(case), {"x": case.x}, unrounded=unrounded)
    half_up = np.clip(np.floor(unrounded["y"] + 0.5), -128, 127).astype(np.int8)
    truncated = np.clip(np.floor(unrounded["y"]), -128, 127).astype(np.int8)
    with pytest.raises(AssertionError, match="rounds half up"):
        case.check(half_up)
    with pytest.raises(AssertionError, match="shifts without rounding"):
        case.check(truncated)


def test_right_bytes_without_bias_whether_left_out_or_empty() -> None:
    case = _row("V11")
    model = build_qoperator(case)
    model.graph.node[0].input.append("")
    case.check(oracle.evaluate(model, {"x": case.x})["y"])


def test_dilated_single_row_counts_its_taps() -> None:
    """1x16x1x16 of ones, 1x8 kernel of ones on one channel, 7 pads: 1..8, 8 x 8, 7..1."""
    case = _row("V14")
    b = ModelBuilder()
    w = np.zeros((1, 16, 1, 8), dtype=np.int8)
    w[:, 0] = 1
    names = [b.dequantize("x", "x_real", 1.0, None)]
    names.append(b.dequantize(b.constant("w", w), "w_real", 1.0, None))
    b.node("Conv", names, "sum", pads=list(case.pads))
    b.quantize("sum", "y", 1.0, np.array(0, dtype=np.int8))
    model = b.model({"x": (np.int8, (1, 16, 1, 16))}, {"y": (np.int8, (1, 1, 1, 23))})
    y = oracle.evaluate(model, {"x": np.ones((1, 16, 1, 16), dtype=np.int8)})["y"]
    assert y.reshape(-1).tolist() == [*range(1, 9), *[8] * 8, *range(7, 0, -1)]


def test_rank_3_convolution_equals_its_rank_4_form() -> None:
    rng = np.random.default_rng(10)
    x = rng.integers(-128, 128, (1, 16, 32), dtype=np.int8)
    w = rng.integers(-127, 128, (16, 16, 5), dtype=np.int8)

    def run(x: np.ndarray, w: np.ndarray, pads: list[int]) -> np.ndarray:
        b = ModelBuilder()
        names = [b.dequantize("x", "x_real", 2.0**-6, None)]
        names.append(b.dequantize(b.constant("w", w), "w_real", 2.0**-9, None))
        b.node("Conv", names, "sum", pads=pads)
        b.quantize("sum", "y", 2.0**-4, np.array(0, dtype=np.int8))
        return oracle.evaluate(b.model({"x": (np.int8, x.shape)}, {}), {"x": x})["y"]

    flat = run(x, w, [2, 2])
    assert flat.shape == (1, 16, 32)
    np.testing.assert_array_equal(flat, run(x[:, :, None], w[:, :, None], [0, 2, 0, 2])[:, :, 0])


def test_depthwise_equals_one_convolution_per_channel() -> None:
    rng = np.random.default_rng(9)
    x = rng.integers(-128, 128, (2, 6, 9, 7), dtype=np.int8)
    w = rng.integers(-127, 128, (12, 1, 3, 3), dtype=np.int8)

    def run(x: np.ndarray, w: np.ndarray, group: int) -> np.ndarray:
        b = ModelBuilder()
        names = [b.dequantize("x", "x_real", 2.0**-6, None)]
        names.append(b.dequantize(b.constant("w", w), "w_real", 2.0**-9, None))
        b.node("Conv", names, "sum", pads=[1, 1, 1, 1], strides=[2, 1], group=group)
        b.quantize("sum", "y", 2.0**-7, np.array(3, dtype=np.int8))
        return oracle.evaluate(b.model({"x": (np.int8, x.shape)}, {}), {"x": x})["y"]

    whole = run(x, w, 6)
    for channel in range(6):
        pair = slice(2 * channel, 2 * channel + 2)
        single = run(x[:, channel : channel + 1], w[pair], 1)
        np.testing.assert_array_equal(whole[:, pair], single)


def test_accumulator_of_a_float_output_is_exact() -> None:
    """x u8 [210,198,234], w [-81,-80,127]: the sum is -3132 before any rounding."""
    case = _row("DOT-U8S8")
    model = build_qdq(case)
    del model.graph.output[0]
    del model.graph.node[-1]
    model.graph.output.add().name = "sum"
    result = oracle.evaluate(model, {"x": case.x})["sum"]
    assert result.dtype == np.float32
    assert result.reshape(-1).tolist() == [-3132.0]


def test_same_padding_is_never_negative() -> None:
    """Stride 3 beyond kernel 1: SAME pads clamp to 0, so elements 0, 3, 6 are taken."""
    b = ModelBuilder()
    names = [b.dequantize("x", "x_real", 1.0, None)]
    names.append(b.dequantize(b.constant("w", np.ones((1, 1, 1, 1), np.int8)), "w_real", 1.0, None))
    b.node("Conv", names, "sum", auto_pad="SAME_UPPER", strides=[1, 3])
    b.quantize("sum", "y", 1.0, np.array(0, dtype=np.int8))
    x = np.arange(8, dtype=np.int8).reshape(1, 1, 1, 8)
    y = oracle.evaluate(b.model({"x": (np.int8, x.shape)}, {}), {"x": x})["y"]
    assert y.reshape(-1).tolist() == [0, 3, 6]


def test_crc_is_of_bytes_in_c_order() -> None:
    grid = np.arange(6, dtype=np.int8).reshape(2, 3)
    assert crc32(grid.T) == crc32(grid.T.copy())
    assert crc32(grid.T) != crc32(grid)
