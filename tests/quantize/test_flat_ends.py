"""Ranges are cut where the functions behind a tensor are flat."""

from collections.abc import Callable

import numpy as np
import pytest
from float_nets import FloatNet

from vitral.compiler.quantize.flat_ends import cut_flat_ends
from vitral.compiler.quantize.fold_scales import fold_scales
from vitral.compiler.quantize.prepare import prepare
from vitral.compiler.quantize.select import select

SPAN = (-20.0, 10.0)


def number(net: FloatNet, value: float) -> str:
    return net.constant(np.array(value))


def hard_swish(net: FloatNet, y: str) -> str:
    gate = net.op("Add", y, number(net, 3))
    gate = net.op("Clip", gate, number(net, 0), number(net, 6))
    return net.op("Div", net.op("Mul", y, gate), number(net, 6))


def sigmoid_and_itself(net: FloatNet, y: str) -> str:
    return net.op("Concat", net.op("HardSigmoid", y), net.op("Relu", net.op("Neg", y)), axis=1)


CASES: dict[str, tuple[Callable[[FloatNet, str], str], tuple[float, float]]] = {
    "hard_swish": (hard_swish, (-3.0, 10.0)),
    "hard_sigmoid": (lambda n, y: n.op("HardSigmoid", y), (-2.5, 2.5)),  # x / 5 + 1/2 in 0 ... 1
    "tanh": (lambda n, y: n.op("Tanh", y), (-3.46, 3.46)),  # 1 - tanh x = 2 / 1020
    "leaky": (lambda n, y: n.op("LeakyRelu", y, alpha=0.5), SPAN),
    "two readers": (sigmoid_and_itself, (-20.0, 2.5)),
    "also read as it is": (lambda n, y: n.op("Add", y, n.conv(n.op("Tanh", y), 2, 2)), SPAN),
    "per channel": (
        lambda n, y: n.op("Mul", n.op("Tanh", y), n.constant(np.ones((1, 2, 1, 1)))),
        SPAN,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_range_of_a_convolution(case: str) -> None:
    behind, wanted = CASES[case]
    net = FloatNet([1, 2, 4, 4])
    first = net.conv("x", 2, 2)
    graph = prepare(net.finish(net.op("AveragePool", behind(net, first), kernel_shape=[2, 2])))
    fold_scales(graph)
    selection = select(graph)
    name = graph.nodes[0].output[0]
    assert name in selection.tensors
    found = cut_flat_ends(graph, selection, dict.fromkeys(selection.tensors, SPAN))
    assert found[name] == pytest.approx(wanted, abs=0.05)


def test_values_that_are_all_in_a_flat_end() -> None:
    """HardSigmoid of -9 ... -5, and of the 0 that every range holds: flat up to -2.5."""
    net = FloatNet([1, 2, 4, 4])
    y = net.op("HardSigmoid", net.conv("x", 2, 2))
    graph = prepare(net.finish(net.op("AveragePool", y, kernel_shape=[2, 2])))
    selection = select(graph)
    seen = dict.fromkeys(selection.tensors, (-9.0, -5.0))
    low, high = cut_flat_ends(graph, selection, seen)["conv0"]
    assert low == pytest.approx(-2.5, abs=0.03)
    assert high == 0
