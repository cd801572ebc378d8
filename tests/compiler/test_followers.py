"""Pools and sums behind convolutions: one program, the model's bytes."""

import itertools
from typing import Any

import numpy as np
import onnx
import oracle
import pytest
from cases import ModelBuilder
from plans import run_model

import vitral
from vitral.arithmetic import requantize
from vitral.compiler.assemble import plan
from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.ir import Graph, Quant, TensorType
from vitral.compiler.ir.ops import AccelAdd, AccelConv2d, AccelMaxPool2d, AccelOp, AveragePool
from vitral.compiler.passes.averages import average_thresholds
from vitral.compiler.passes.lower_pools import lower_pools
from vitral.compiler.pipeline import lower
from vitral.compiler.place import Group
from vitral.isa import Rounding
from vitral.runtime.module import CpuStep, Segment

INT8 = np.int8


class Net:
    """A chain of QDQ groups; every tensor has a scale and zero point of its own."""

    def __init__(self, seed: int = 0) -> None:
        self.b = ModelBuilder()
        self.rng = np.random.default_rng(seed)
        self.quants: dict[str, tuple[float, int]] = {"x": (1 / 32, 3)}

    def real(self, name: str) -> str:
        scale, zero = self.quants[name]
        count = sum(key.startswith(f"{name}~") for key in self.quants)
        self.quants[f"{name}~{count}"] = (scale, zero)
        return self.b.dequantize(name, f"{name}_real{count}", scale, np.array(zero, INT8))

    def rounded(self, source: str, name: str, scale: float, zero: int) -> str:
        self.quants[name] = (scale, zero)
        return self.b.quantize(source, name, scale, np.array(zero, INT8))

    def conv(self, x: str, name: str, shape: Any, scale: float = 0.3, zero: int = -9) -> str:
        weights = self.rng.integers(-127, 128, shape).astype(INT8)
        kernel = shape[2]
        names = [
            self.real(x),
            self.b.dequantize(self.b.constant(f"{name}_w", weights), f"{name}_wr", 1 / 64, None),
        ]
        self.b.node("Conv", names, f"{name}_sum", pads=[kernel // 2] * 4)
        return self.rounded(f"{name}_sum", name, scale, zero)


def model_of(net: Net, shape: Any, out: Any, *more: str) -> onnx.ModelProto:
    return net.b.model({"x": (INT8, shape)}, dict.fromkeys(("y", *more), (INT8, out)))


def check(model: onnx.ModelProto, shape: Any) -> Graph:
    """The plan's and the simulator's bytes are the oracle's; the lowered graph."""
    x = np.random.default_rng(7).integers(-128, 128, shape).astype(INT8)
    want = oracle.evaluate(model, {"x": x}, outputs_only=True)
    module = vitral.compile(model)
    with vitral.Session(module, device="fsim") as session:
        actual = session.run(None, {"x": x})
    planned = run_model(model, {"x": x})
    for (name, codes), result in zip(want.items(), actual, strict=True):
        np.testing.assert_array_equal(planned[name], codes)
        np.testing.assert_array_equal(result, codes)
    return lower(import_onnx(model))


def accelerated(graph: Graph, kind: type[AccelOp]) -> list[Any]:
    return [op for op in graph.ops if isinstance(op, kind) and not op.on_cpu]


def programs(model: onnx.ModelProto) -> list[Group]:
    return [s for s in plan(lower(import_onnx(model))).steps if isinstance(s, Group)]


def residual(scales: tuple[float, float], *, relu: bool, function: str = "Add") -> onnx.ModelProto:
    net = Net()
    net.conv("x", "a", (20, 5, 3, 3), scales[0])
    net.conv("x", "b", (20, 5, 1, 1), scales[1], zero=17)
    last = net.b.node(function, [net.real("a"), net.real("b")], "total")
    if relu:
        last = net.b.node("Relu", [last], "relu")
    net.rounded(last, "y", 0.31415927, -20)
    return model_of(net, (1, 5, 9, 8), (1, 20, 9, 8))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("function", ["Add", "Sub"])
@pytest.mark.parametrize("scales", [(0.2171828, 0.1234567), (0.25, 0.25), (0.0333741, 0.27182818)])
def test_a_residual_block_is_one_program(scales: Any, function: str, *, relu: bool) -> None:
    model = residual(scales, relu=relu, function=function)
    graph = check(model, (1, 5, 9, 8))
    (group,) = programs(model)
    assert [type(layer).__name__ for layer in group.layers] == ["ConvLayer"] * 2 + ["AddLayer"]
    (total,) = accelerated(graph, AccelAdd)
    assert (total.multipliers[1] < 0) == (function == "Sub")
    assert total.params.low[0] == (-20 if relu else -128)


def test_a_clamp_behind_a_sum_becomes_its_low() -> None:
    net = Net()
    net.conv("x", "a", (4, 3, 1, 1))
    net.conv("x", "b", (4, 3, 1, 1), 0.15)
    net.rounded(net.b.node("Add", [net.real("a"), net.real("b")], "t"), "s", 0.41421356, -5)
    net.rounded(net.b.node("Relu", [net.real("s")], "r"), "y", 0.41421356, -5)
    graph = check(model_of(net, (1, 3, 6, 6), (1, 4, 6, 6)), (1, 3, 6, 6))
    (total,) = accelerated(graph, AccelAdd)
    assert (total.output, total.params.low[0]) == ("y", -5)


def test_a_sum_of_a_value_with_itself() -> None:
    net = Net()
    net.conv("x", "a", (4, 3, 1, 1))
    net.rounded(net.b.node("Add", [net.real("a"), net.real("a")], "t"), "y", 0.7, 2)
    check(model_of(net, (1, 3, 5, 5), (1, 4, 5, 5)), (1, 3, 5, 5))


def test_sums_that_broadcast_stay_on_the_cpu() -> None:
    net = Net()
    net.conv("x", "a", (4, 3, 1, 1))
    average = net.b.node("GlobalAveragePool", [net.real("a")], "g")
    net.rounded(average, "m", 0.05, 0)
    net.rounded(net.b.node("Add", [net.real("a"), net.real("m")], "t"), "y", 0.5, 2)
    graph = check(model_of(net, (1, 3, 5, 5), (1, 4, 5, 5)), (1, 3, 5, 5))
    assert not any(isinstance(op, AccelAdd) for op in graph.ops)


def test_pools_and_sums_of_the_host_s_values_stay_there() -> None:
    net = Net()
    net.rounded(net.b.node("Add", [net.real("x"), net.real("x")], "t"), "s", 0.05, 0)
    net.b.node("MaxPool", [net.real("s")], "m", kernel_shape=[2, 2])
    net.rounded("m", "y", 0.05, 0)
    graph = check(model_of(net, (1, 3, 5, 5), (1, 3, 4, 4)), (1, 3, 5, 5))
    assert all(op.on_cpu for op in graph.ops if isinstance(op, AccelOp))


POOLS: list[dict[str, Any]] = [
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [2, 2], "strides": [1, 1], "pads": [0, 0, 1, 1]},
    {"kernel_shape": [5, 3], "strides": [3, 1], "pads": [2, 0, 1, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [1, 6], "dilations": [1, 2], "pads": [0, 3, 0, 4]},
]


@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_a_maximum_behind_a_convolution_is_part_of_its_program(pool: Any) -> None:
    if pool["kernel_shape"][1] == 6:
        pool = {**pool, "pads": [0, 5, 0, 6]}
    net = Net()
    net.conv("x", "a", (18, 5, 3, 3))
    net.b.node("MaxPool", [net.real("a")], "m", **pool)
    net.rounded("m", "y", *net.quants["a"])
    probe = model_of(net, (1, 5, 11, 12), ("N", "C", "H", "W"))
    x = np.zeros((1, 5, 11, 12), INT8)
    shape = oracle.evaluate(probe, {"x": x}, outputs_only=True)["y"].shape
    model = model_of(net, (1, 5, 11, 12), shape)
    graph = check(model, (1, 5, 11, 12))
    assert len(accelerated(graph, AccelMaxPool2d)) == 1
    assert len(programs(model)) == 1


def average(scale: float, zero: int, pool: Any, shape: Any, out: Any) -> onnx.ModelProto:
    net = Net()
    net.conv("x", "a", (6, 5, 1, 1))
    kind = "AveragePool" if pool else "GlobalAveragePool"
    net.b.node(kind, [net.real("a")], "m", **(pool or {}))
    net.rounded("m", "y", scale, zero)
    return model_of(net, shape, out)


@pytest.mark.parametrize(
    ("pool", "out"),
    [
        ({}, (1, 6, 1, 1)),
        ({"kernel_shape": [2, 2], "strides": [2, 2]}, (1, 6, 4, 3)),
        ({"kernel_shape": [3, 2], "strides": [1, 2]}, (1, 6, 6, 3)),
        (
            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
            (1, 6, 8, 7),
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("scale", [0.3, 0.11, 0.05, 0.6])
def test_an_average_with_one_count_is_part_of_the_program(
    pool: Any, out: Any, scale: float
) -> None:
    model = average(scale, -3, pool, (1, 5, 8, 7), out)
    graph = check(model, (1, 5, 8, 7))
    assert len(accelerated(graph, AccelConv2d)) == 2
    assert len(programs(model)) == 1
    module = vitral.compile(model)
    layers = [layer for part in module.segments for layer in part.layers]
    assert [layer.macs for layer in layers] == [module.macs, 0]


def test_padding_that_no_window_counts_adds_nothing() -> None:
    """Width 3, kernel 3, stride 2, one pad on each side: both windows have two elements."""
    pool = {"kernel_shape": [1, 3], "strides": [1, 2], "pads": [0, 1, 0, 1]}
    model = average(0.11, -3, pool, (1, 5, 8, 3), (1, 6, 8, 2))
    graph = check(model, (1, 5, 8, 3))
    conv = accelerated(graph, AccelConv2d)[-1]
    assert conv.pad_value != 0
    assert len(programs(model)) == 1


def test_an_average_whose_windows_count_differently_stays_on_the_cpu() -> None:
    pool = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    graph = check(average(0.1, 0, pool, (1, 5, 8, 7), (1, 6, 8, 7)), (1, 5, 8, 7))
    assert sum(isinstance(op, AveragePool) for op in graph.ops) == 1


def test_a_weight_makes_the_ties_of_a_seventh_hit_a_float32() -> None:
    """All windows have 56 elements: 1/56 as a float32 misses ties, 1/(56 w) does not."""
    graph = check(average(0.3, -9, {}, (1, 5, 8, 7), (1, 6, 1, 1)), (1, 5, 8, 7))
    conv = accelerated(graph, AccelConv2d)[-1]
    assert conv.params.rounding is Rounding.FLOAT32
    assert len(np.unique(conv.weight)) == 1 < conv.weight[0, 0, 0, 0]


@pytest.mark.parametrize(("count", "rounding"), [(4, Rounding.HALF_EVEN), (6, Rounding.FLOAT32)])
def test_ties_of_an_average_go_to_even(count: int, rounding: Rounding) -> None:
    """A quarter is exact; a sixth is not, and the float32 mode finds its ties all the same."""
    pool = {"kernel_shape": [2, count // 2]}
    graph = check(average(0.3, -9, pool, (1, 5, 8, 7), (1, 6, 7, 8 - count // 2)), (1, 5, 8, 7))
    conv = accelerated(graph, AccelConv2d)[-1]
    assert isinstance(conv.origin, AveragePool)
    assert conv.params.rounding is rounding


@pytest.mark.parametrize(
    ("x_scale", "count"), list(itertools.product([0.3, 0.07], [2, 9, 25, 49, 150]))
)
def test_each_reachable_sum_of_an_average_is_rounded_as_the_rational(
    x_scale: float, count: int
) -> None:
    """All sums, not only those of the proof: a column of constant codes and one that differs."""

    def quant(scale: float, zero: int) -> Quant:
        return Quant(dtype="int8", scale=(float(np.float32(scale)),), zero_point=(zero,))

    op = AveragePool(
        name="mean",
        inputs=("x",),
        output="y",
        x_quant=quant(x_scale, -5),
        y_quant=quant(0.09, 11),
        kernel=(1, count),
        strides=(1, 1),
    )
    types = {
        "x": TensorType((1, 1, 1, count), "int8"),
        "y": TensorType((1, 1, 1, 1), "int8"),
    }
    (conv,) = lower_pools(Graph(inputs=("x",), outputs=("y",), types=types, ops=(op,))).ops
    assert isinstance(conv, AccelConv2d)
    sums = np.arange(-128 * count, 127 * count + 1)
    _, (thresholds,), low = average_thresholds(op, (1, count))
    law = low + np.searchsorted(thresholds, sums + 5 * count, side="right")
    p = conv.params
    core = requantize(
        sums,
        bias=int(p.bias[0]),
        mult=int(p.mult[0]),
        shift=int(p.shift[0]),
        zero_point=int(p.zero_point[0]),
        low=int(p.low[0]),
        high=int(p.high[0]),
        rounding=p.rounding,
    )
    np.testing.assert_array_equal(core, law)


@pytest.mark.parametrize("kind", ["MaxPool", "Add", "GlobalAveragePool"])
def test_flatten_and_dense_behind_a_pool_or_a_sum_stay_in_the_program(kind: str) -> None:
    net = Net()
    net.conv("x", "a", (6, 5, 3, 3))
    if kind == "Add":
        net.conv("x", "b", (6, 5, 1, 1), 0.27182818)
        net.b.node(kind, [net.real("a"), net.real("b")], "t")
        net.rounded("t", "p", 0.41421356, 4)
    else:
        options = {"kernel_shape": [2, 2], "strides": [2, 2]} if kind == "MaxPool" else {}
        net.b.node(kind, [net.real("a")], "t", **options)
        net.rounded("t", "p", *net.quants["a"])
    depth = {"MaxPool": 6 * 9, "Add": 6 * 36, "GlobalAveragePool": 6}[kind]
    flat = net.b.node("Flatten", [net.real("p")], "flat")
    w = net.rng.integers(-127, 128, (depth, 10)).astype(INT8)
    names = [flat, net.b.dequantize(net.b.constant("w", w), "wr", 1 / 64, None)]
    net.rounded(net.b.node("Gemm", names, "g"), "y", 1.0, 0)
    model = model_of(net, (1, 5, 6, 6), (1, 10))
    check(model, (1, 5, 6, 6))
    assert len(programs(model)) == 1


def test_a_table_goes_behind_the_maximum_that_reads_it() -> None:
    """The table then has a quarter of the codes, here as a clamp and a sum."""
    net = Net()
    net.conv("x", "a", (6, 5, 3, 3))
    net.rounded(net.b.node("LeakyRelu", [net.real("a")], "l", alpha=0.1), "t", 0.27, -40)
    net.b.node("MaxPool", [net.real("t")], "m", kernel_shape=[2, 2], strides=[2, 2])
    net.rounded("m", "y", 0.27, -40)
    model = model_of(net, (1, 5, 8, 8), (1, 6, 4, 4))
    graph = check(model, (1, 5, 8, 8))
    kinds = [op.kind for op in graph.ops]
    assert kinds == ["vta.conv2d", "vta.max_pool2d", "vta.conv2d", "vta.add"]


@pytest.mark.parametrize("reason", ["falls", "read twice"])
def test_a_table_that_falls_or_is_read_twice_stays_before_the_maximum(reason: str) -> None:
    net = Net()
    net.conv("x", "a", (6, 5, 3, 3))
    alpha = -0.5 if reason == "falls" else 0.1
    net.rounded(net.b.node("LeakyRelu", [net.real("a")], "l", alpha=alpha), "t", 0.25, -40)
    net.b.node("MaxPool", [net.real("t")], "m", kernel_shape=[2, 2], strides=[2, 2])
    net.rounded("m", "y", 0.25, -40)
    more = ()
    if reason == "read twice":
        net.b.node(
            "MaxPool", [net.real("t")], "m2", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1]
        )
        net.rounded("m2", "z", 0.25, -40)
        more = ("z",)
    graph = check(model_of(net, (1, 5, 8, 8), (1, 6, 4, 4), *more), (1, 5, 8, 8))
    assert [op.kind for op in graph.ops][-1] == "vta.max_pool2d"


def test_a_small_resnet_is_one_program() -> None:
    """Image, first layer, maximum, two blocks, average and dense: no step between them."""
    net = Net(4)
    net.conv("x", "c", (16, 3, 7, 7), 0.4)
    net.b.node("MaxPool", [net.real("c")], "m", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    net.rounded("m", "p", *net.quants["c"])
    source = "p"
    for number in range(2):
        net.conv(source, f"u{number}", (16, 16, 3, 3), 0.5)
        net.conv(f"u{number}", f"v{number}", (16, 16, 3, 3), 0.61803399 + number / 7)
        total = net.b.node("Add", [net.real(f"v{number}"), net.real(source)], f"t{number}")
        net.rounded(net.b.node("Relu", [total], f"r{number}"), f"s{number}", 0.57721567, -128)
        source = f"s{number}"
    net.rounded(net.b.node("GlobalAveragePool", [net.real(source)], "g"), "a", 0.05, -128)
    flat = net.b.node("Flatten", [net.real("a")], "flat")
    w = net.rng.integers(-127, 128, (16, 10)).astype(INT8)
    names = [flat, net.b.dequantize(net.b.constant("w", w), "wr", 1 / 64, None)]
    net.rounded(net.b.node("Gemm", names, "gemm"), "y", 0.2, 0)
    model = model_of(net, (1, 3, 24, 24), (1, 10))
    check(model, (1, 3, 24, 24))
    module = vitral.compile(model)
    kinds = [s.op if isinstance(s, CpuStep) else "program" for s in module.steps]
    assert kinds == ["patches", "program", "reshape"]
    (segment,) = (s for s in module.steps if isinstance(s, Segment))
    assert len(segment.layers) == 10
    assert module.notices == ()
