"""Quantization with one global scale: what each pass makes of small graphs."""

import numpy as np
import pytest

from vitral.compiler.ir import Call, Graph, GraphBuilder, TensorType, evaluate
from vitral.compiler.quantize.global_scale import QConfig, annotate, quantize
from vitral.errors import CompileError, ConfigError

DATA = TensorType((1, 1, 16, 16), "float32")


def one_conv(largest: float) -> Graph:
    """A 1x1 convolution and ReLU."""
    build = GraphBuilder({"data": DATA})
    conv = build.call("nn.conv2d", "data", np.full((1, 1, 1, 1), largest, np.float32))
    return build.graph(build.call("nn.relu", conv, output="out"))


def words(graph: Graph) -> list[str]:
    """Operators in order, each with its scalar argument."""
    found = []
    for op in graph.ops:
        assert isinstance(op, Call)
        scalars = [graph.constants[name] for name in op.inputs if name in graph.constants]
        shown = [f"{value.item():.10g}" for value in scalars if value.ndim == 0]
        found.append(" ".join([op.op, *shown]))
    return found


FRONT = ["multiply 16", "round", "clip", "cast", "nn.conv2d", "nn.relu"]
BACK = ["clip", "cast", "cast", "multiply 0.0625"]


@pytest.mark.parametrize(
    ("largest", "middle"),
    [
        (0.50001, ["add 64", "right_shift 7"]),
        (1.0, ["add 64", "right_shift 7"]),
        (0.5, ["add 128", "right_shift 8"]),
        (0.3, ["add 128", "right_shift 8"]),
        (3, ["add 16", "right_shift 5"]),
        (-3, ["add 16", "right_shift 5"]),
        (64, ["add 1", "right_shift 1"]),
        (100, []),
        (200, ["clip", "left_shift 1"]),
        (1e6, ["clip", "left_shift 8"]),
        (0, ["add 64", "right_shift 7"]),
        (1e-30, ["add 536870912", "right_shift 30"]),
    ],
)
def test_shift_follows_the_largest_weight(largest: float, middle: list[str]) -> None:
    graph = quantize(one_conv(largest), qconfig=QConfig(skip_k_conv=0))
    assert words(graph) == [*FRONT, *middle, *BACK]


def test_without_rounding_there_is_no_summand() -> None:
    config = QConfig(skip_k_conv=0, round_for_shift=False)
    graph = quantize(one_conv(0.8), qconfig=config)
    assert words(graph) == [*FRONT, "right_shift 7", *BACK]


def test_outputs_keep_their_sums_without_store_lowbit_output() -> None:
    config = QConfig(skip_k_conv=0, store_lowbit_output=False)
    graph = quantize(one_conv(0.8), qconfig=config)
    assert words(graph) == [*FRONT, "cast", "multiply 0.00048828125"]


def test_skipped_convolutions_stay_float() -> None:
    graph = quantize(one_conv(0.8))
    assert words(graph) == ["nn.conv2d", "nn.relu"]


@pytest.mark.parametrize(("bits", "limit"), [(2, 1), (4, 7), (7, 63), (8, 127)])
def test_fewer_bits_clip_earlier(bits: int, limit: int) -> None:
    config = QConfig(skip_k_conv=0, nbit_input=bits, nbit_weight=bits)
    graph = quantize(one_conv(0.8), qconfig=config)
    clips = [op.attrs for op in graph.ops if isinstance(op, Call) and op.op == "clip"]
    assert [(a["a_min"], a["a_max"]) for a in clips] == [(-limit, limit)] * 2
    (weight,) = (w for w in graph.constants.values() if w.ndim == 4)
    assert weight.item() == min(round(0.8 * (limit + 1)), limit)
    data = np.full(DATA.shape, 3.0, np.float32)
    (result,) = evaluate(graph, {"data": data})
    assert abs(result - 2.4).max() <= 8 / (limit + 1)


def test_a_scale_that_is_no_power_of_two_gives_the_same_shifts() -> None:
    graph = quantize(one_conv(0.8), qconfig=QConfig(skip_k_conv=0, global_scale=6))
    front = [f"multiply {np.float32(128 / 6):.10g}", *FRONT[1:]]
    back = [*BACK[:-1], f"multiply {6 / 128:g}"]
    assert words(graph) == [*front, "add 64", "right_shift 7", *back]


@pytest.mark.parametrize(
    "wrong",
    [
        {"nbit_input": 9},
        {"nbit_weight": 1},
        {"nbit_input": 4.0},
        {"nbit_activation": 16},
        {"dtype_input": "uint8"},
        {"dtype_activation": "int16"},
        {"global_scale": 0},
        {"global_scale": -8},
        {"global_scale": float("nan")},
        {"global_scale": "8"},
        {"skip_k_conv": -1},
        {"skip_k_conv": True},
        {"round_for_shift": 1},
        {"store_lowbit_output": "yes"},
    ],
)
def test_wrong_parameters_are_named(wrong: dict) -> None:
    with pytest.raises(ConfigError) as caught:
        QConfig(**wrong)
    (name,) = wrong
    assert str(caught.value).startswith(f"{name} must be ")
    assert "\n" not in str(caught.value)


def test_weights_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(CompileError, match="needs finite numbers"):
        quantize(one_conv(float("nan")), qconfig=QConfig(skip_k_conv=0))


def test_annotation_alone_cannot_be_evaluated() -> None:
    graph = annotate(one_conv(0.8), QConfig(skip_k_conv=0))
    with pytest.raises(CompileError, match="calibrate the graph first"):
        evaluate(graph, {"data": np.zeros(DATA.shape, np.float32)})
