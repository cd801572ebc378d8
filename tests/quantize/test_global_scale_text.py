"""The text of quantized graphs, in full."""

import numpy as np
import pytest

from vitral.compiler.ir import Graph, GraphBuilder, TensorType, parse_text, to_text
from vitral.compiler.quantize.global_scale import PASSES, QConfig, quantize

HEAD = """\
fn (%data: Tensor[(1, 1, 16, 16), float32])
    -> Tensor[(1, 1, 16, 16), float32] {
  %0 = multiply(%data, 16f)
  %1 = round(%0)
  %2 = clip(%1, a_min=-127, a_max=127)
  %3 = cast(%2, dtype="int8")
  %4 = meta[relay.Constant][0]
  %5 = nn.conv2d(%3, %4, out_dtype="int32")
  %6 = nn.relu(%5)
"""

SHIFTED = """\
  %7 = add(%6, {half})
  %8 = right_shift(%7, {shift})
  %9 = clip(%8, a_min=-127, a_max=127)
  %10 = cast(%9, dtype="int8")
  %11 = cast(%10, dtype="float32")
  %12 = multiply(%11, 0.0625f)
  %12
}}
"""

ROUNDED_DOWN = """\
  %7 = right_shift(%6, 7)
  %8 = clip(%7, a_min=-127, a_max=127)
  %9 = cast(%8, dtype="int8")
  %10 = cast(%9, dtype="float32")
  %11 = multiply(%10, 0.0625f)
  %11
}
"""

SUMS = """\
  %7 = cast(%6, dtype="float32")
  %8 = multiply(%7, 0.00048828125f)
  %8
}
"""

FLOAT = """\
fn (%data: Tensor[(1, 1, 16, 16), float32])
    -> Tensor[(1, 1, 16, 16), float32] {
  %0 = meta[relay.Constant][0]
  %1 = nn.conv2d(%data, %0)
  %2 = nn.relu(%1)
  %2
}
"""


def one_conv(largest: float) -> Graph:
    """A 1x1 convolution and ReLU."""
    build = GraphBuilder({"data": TensorType((1, 1, 16, 16), "float32")})
    weight = np.full((1, 1, 1, 1), largest, np.float32)
    return build.graph(build.call("nn.relu", build.call("nn.conv2d", "data", weight)))


@pytest.mark.parametrize(
    ("largest", "changed", "tail"),
    [
        (0.6, {}, SHIFTED.format(half=64, shift=7)),
        (1.0, {}, SHIFTED.format(half=64, shift=7)),
        (0.3, {}, SHIFTED.format(half=128, shift=8)),
        (3, {}, SHIFTED.format(half=16, shift=5)),
        (0.6, {"round_for_shift": False}, ROUNDED_DOWN),
        (0.6, {"store_lowbit_output": False}, SUMS),
    ],
)
def test_text_of_one_convolution(largest: float, changed: dict, tail: str) -> None:
    graph = quantize(one_conv(largest), qconfig=QConfig(skip_k_conv=0, **changed))
    assert to_text(graph, results=True, metadata=False) == HEAD + tail


def test_text_of_a_convolution_that_is_skipped() -> None:
    graph = quantize(one_conv(0.6), qconfig=QConfig(skip_k_conv=1))
    assert to_text(graph, results=True, metadata=False) == FLOAT


def test_every_pass_gives_a_graph_that_the_parser_reads() -> None:
    graph = one_conv(0.6)
    for apply in PASSES:
        graph = apply(graph, QConfig(skip_k_conv=0))
        text = to_text(graph)
        assert to_text(parse_text(text)) == text


def test_annotations_show_their_scale_once_calibrated() -> None:
    graph = one_conv(0.6)
    for apply in PASSES[:3]:
        graph = apply(graph, QConfig(skip_k_conv=0))
    text = to_text(graph, metadata=False)
    assert "simulated_quantize(%data, 0.0625f, -127f, 127f, kind=" in text
    assert "0.0078125f, -127f, 127f, kind=" in text
