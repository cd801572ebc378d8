"""Passes one by one, on graphs made from small models."""

from typing import Any

import numpy as np
import onnx
import oracle
import pytest
from cases import ModelBuilder, build_qdq, conv_rows
from plans import run_model

from vitral.compiler.assemble import plan
from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.ir import Graph, verify
from vitral.compiler.ir.ops import AccelConv2d, FlipSign
from vitral.compiler.pipeline import PASSES, Io, lower
from vitral.compiler.place import Group
from vitral.compiler.schedule.layer import ConvLayer
from vitral.errors import CompileError
from vitral.isa import Rounding

INT8 = np.int8
ZERO = INT8(0)


class Net:
    """Writes QDQ groups with scale 1/16 activations and 1/64 weights."""

    def __init__(self, seed: int = 0) -> None:
        self.b = ModelBuilder()
        self.rng = np.random.default_rng(seed)
        self.real: dict[str, str] = {}

    def dq(self, name: str, scale: float = 1 / 16, zero: Any = ZERO) -> str:
        if name not in self.real:
            self.real[name] = self.b.dequantize(name, f"{name}_dq", scale, np.asarray(zero))
        return self.real[name]

    def q(self, source: str, name: str, scale: float = 1 / 16, zero: Any = ZERO) -> str:
        return self.b.quantize(source, name, scale, np.asarray(zero))

    def weight(self, name: str, *shape: int) -> str:
        values = self.rng.integers(-127, 128, shape).astype(INT8)
        return self.b.dequantize(self.b.constant(name, values), f"{name}_dq", 1 / 64, None)

    def conv(self, x: str, name: str, *shape: int, **attributes: Any) -> str:
        names = [self.dq(x), self.weight(f"{name}_w", *shape)]
        return self.q(self.b.node("Conv", names, f"{name}_sum", **attributes), name, 0.5)


def int8_model(net: Net, shape: tuple[int, ...], out: tuple[int, ...]) -> onnx.ModelProto:
    return net.b.model({"x": (INT8, shape)}, {"y": (INT8, out)})


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def groups(model: onnx.ModelProto) -> list[Group]:
    return [s for s in plan(lower(import_onnx(model))).steps if isinstance(s, Group)]


def check(model: onnx.ModelProto, shape: tuple[int, ...]) -> None:
    """The plan's bytes are the oracle's."""
    x = np.random.default_rng(7).integers(-128, 128, shape).astype(INT8)
    want = oracle.evaluate(model, {"x": x})["y"]
    np.testing.assert_array_equal(run_model(model, {"x": x})["y"], want)


def test_flatten_between_convolution_and_dense_stays_on_the_accelerator() -> None:
    net = Net()
    net.conv("x", "c", 8, 4, 3, 3)
    flat = net.b.node("Flatten", [net.dq("c", 0.5)], "flat")
    names = [flat, net.weight("w", 8 * 4 * 3, 10)]
    net.q(net.b.node("Gemm", names, "sum"), "y", 2.0)
    model = int8_model(net, (2, 4, 6, 5), (2, 10))
    check(model, (2, 4, 6, 5))
    (group,) = groups(model)
    convs = [layer for layer in group.layers if isinstance(layer, ConvLayer)]
    assert [layer.weight.shape for layer in convs] == [(8, 4, 3, 3), (10, 8, 4, 3)]
    assert group.layers[1].out_shape == (2, 10, 1, 1)


def test_one_dimensional_convolutions_chain_without_leaving_the_accelerator() -> None:
    net = Net()
    net.conv("x", "c", 8, 4, 3)
    names = [net.dq("c", 0.5), net.weight("w", 6, 8, 5)]
    net.q(net.b.node("Conv", names, "sum", pads=[2, 2]), "y", 2.0)
    model = int8_model(net, (1, 4, 20), (1, 6, 18))
    check(model, (1, 4, 20))
    (group,) = groups(model)
    assert len(group.layers) == 2


def test_host_and_accelerator_take_turns_as_rarely_as_possible() -> None:
    """Both branches run in one program, then the host multiplies them, then the next program."""
    net = Net()
    net.conv("x", "a", 4, 4, 3, 3, pads=[1, 1, 1, 1])
    names = [net.dq("a", 0.5), net.weight("w2", 4, 4, 3, 3)]
    net.q(net.b.node("Conv", names, "m_sum", pads=[1, 1, 1, 1]), "m", 1.0)
    net.conv("x", "short", 4, 4, 1, 1)
    product = net.b.node("Mul", [net.dq("m", 1.0), net.dq("short", 0.5)], "product")
    net.q(product, "t", 1 / 16)
    net.conv("t", "y", 4, 4, 1, 1)
    model = int8_model(net, (1, 4, 6, 6), (1, 4, 6, 6))
    check(model, (1, 4, 6, 6))
    first, second = groups(model)
    assert {layer.result for layer in first.layers} == {"a", "m", "short"}
    assert (first.outputs, second.outputs) == (("m", "short"), ("y",))


def standalone_relu(zero: int, *, same: bool) -> onnx.ModelProto:
    net = Net()
    names = [net.dq("x"), net.weight("w", 4, 3, 1, 1)]
    net.q(net.b.node("Conv", names, "sum"), "c", 0.5, INT8(zero))
    relu = net.b.node("Relu", [net.dq("c", 0.5, INT8(zero))], "r")
    net.q(relu, "y", 0.5 if same else 0.25, INT8(zero))
    return int8_model(net, (1, 3, 4, 4), (1, 4, 4, 4))


@pytest.mark.parametrize("zero", [-128, -5, 0])
def test_relu_between_equal_parameters_becomes_low(zero: int) -> None:
    model = standalone_relu(zero, same=True)
    check(model, (1, 3, 4, 4))
    graph = lower(import_onnx(model))
    (op,) = graph.ops
    assert isinstance(op, AccelConv2d)
    assert (op.params.low == zero).all()


def test_relu_with_other_output_parameters_is_a_layer_of_its_own() -> None:
    model = standalone_relu(-5, same=False)
    check(model, (1, 3, 4, 4))
    assert kinds(lower(import_onnx(model))) == ["vta.conv2d", "vta.conv2d"]


def test_table_is_not_folded_when_something_else_reads_the_convolution() -> None:
    net = Net()
    net.conv("x", "c", 4, 3, 1, 1)
    real = net.dq("c", 0.5)
    net.q(net.b.node("Relu", [real], "r"), "y", 0.5)
    net.q(net.b.node("LeakyRelu", [real], "l"), "z", 0.5)
    shape = (1, 4, 4, 4)
    model = net.b.model({"x": (INT8, (1, 3, 4, 4))}, {"y": (INT8, shape), "z": (INT8, shape)})
    check(model, (1, 3, 4, 4))
    graph = lower(import_onnx(model))
    readers = [op for op in graph.ops if "c" in op.inputs]
    assert {op.output for op in readers} >= {"y", "z"}


def test_quantize_to_the_parameters_it_has_costs_nothing() -> None:
    net = Net()
    net.q(net.dq("x", 0.3, INT8(7)), "same", 0.3, INT8(7))
    net.conv("same", "y", 4, 3, 1, 1)
    graph = lower(import_onnx(int8_model(net, (1, 3, 4, 4), (1, 4, 4, 4))))
    assert kinds(graph) == ["vta.conv2d"]


def test_two_clamps_in_a_row_fold_into_one_convolution() -> None:
    net = Net()
    net.conv("x", "c", 4, 3, 1, 1)
    net.q(net.b.node("Relu", [net.dq("c", 0.5)], "r"), "d", 0.5)
    names = [net.dq("d", 0.5), net.b.scale("low", 5.0), net.b.scale("high", 40.0)]
    net.q(net.b.node("Clip", names, "k"), "y", 0.5)
    model = int8_model(net, (1, 3, 4, 4), (1, 4, 4, 4))
    check(model, (1, 3, 4, 4))
    (op,) = lower(import_onnx(model)).ops
    assert isinstance(op, AccelConv2d)
    assert (op.output, op.params.low[0], op.params.high[0]) == ("y", 10, 80)


def test_one_value_under_two_output_names() -> None:
    """The first output takes the value's name, the second is a copy."""
    net = Net()
    net.conv("x", "c", 4, 3, 1, 1)
    for name in ("y", "z"):
        net.b.node("Identity", ["c"], name)
    shape = (1, 4, 4, 4)
    model = net.b.model({"x": (INT8, (1, 3, 4, 4))}, {"y": (INT8, shape), "z": (INT8, shape)})
    check(model, (1, 3, 4, 4))
    graph = lower(import_onnx(model))
    assert [(op.kind, op.output) for op in graph.ops] == [("vta.conv2d", "y"), ("reshape", "z")]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_uint8_becomes_int8_between_the_edges_only(dtype: Any) -> None:
    b = ModelBuilder()
    zero = np.array(100, dtype)
    w = b.constant("w", np.arange(12, dtype=np.uint8).reshape(4, 3, 1, 1))
    names = [
        b.dequantize("x", "xr", 0.1, zero),
        b.dequantize(w, "wr", 0.1, np.array(6, np.uint8)),
    ]
    b.quantize(b.node("Conv", names, "sum"), "y", 1.0, zero)
    model = b.model({"x": (dtype, (1, 3, 5, 5))}, {"y": (dtype, (1, 4, 5, 5))})
    graph = lower(import_onnx(model))
    inner = [graph.types[op.output].dtype for op in graph.ops if not isinstance(op, FlipSign)]
    assert set(inner) == {"int8"}
    assert kinds(graph).count("flip_sign") == (2 if dtype is np.uint8 else 0)
    (conv,) = (op for op in graph.ops if isinstance(op, AccelConv2d))
    assert conv.pad_value == (-28 if dtype is np.uint8 else 100)
    assert conv.weight.min() == -6
    assert conv.params.rounding is Rounding.FLOAT32


def test_edges_keep_their_scale_in_both_forms() -> None:
    case = next(c for c in conv_rows() if c.name == "V2")
    forms: tuple[tuple[Io, str], ...] = (("float", "float32"), ("quantized", "int8"))
    for io, dtype in forms:
        graph = lower(import_onnx(build_qdq(case, float_edges=True)), io=io)
        assert graph.types["x_float"].dtype == graph.types["y_float"].dtype == dtype
        assert graph.edges["x_float"].tensor_scale == case.x_scale
        assert graph.edges["y_float"].tensor_scale == case.y_scale
        assert ("quantize" in kinds(graph)) == (io == "float")


def test_output_that_is_also_read_keeps_its_dequantizer() -> None:
    """Two outputs of one tensor, as float and as codes: only one name can be the codes'."""
    b = ModelBuilder()
    b.quantize("x", "codes", 0.5, np.array(0, INT8))
    b.dequantize("codes", "real", 0.5, np.array(0, INT8))
    model = b.model({"x": (np.float32, (3,))}, {"codes": (INT8, (3,)), "real": (np.float32, (3,))})
    x = np.array([0.5, -7, 100], np.float32)
    for io in ("float", "quantized"):
        result = run_model(model, {"x": x}, io=io)
        assert result["codes"].tolist() == [1, -14, 127]
        assert result["real"].tolist() == [0.5, -7, 63.5]


def test_an_unknown_io_is_refused() -> None:
    graph = import_onnx(standalone_relu(0, same=True))
    with pytest.raises(CompileError, match="io must be 'float' or 'quantized', got 'both'"):
        lower(graph, io="both")  # pyright: ignore[reportArgumentType]


def test_every_pass_leaves_a_sound_graph_and_the_second_run_changes_nothing() -> None:
    graph = import_onnx(standalone_relu(-5, same=False))
    for apply in PASSES:
        graph = apply(graph)
        verify(graph)
    again = lower(graph)
    assert kinds(again) == kinds(graph)


def test_product_of_two_activations_runs_on_the_cpu_with_a_notice() -> None:
    net = Net()
    turned = net.b.node("Transpose", [net.dq("x")], "turned", perm=[0, 2, 1])
    net.q(net.b.node("MatMul", [net.dq("x"), turned], "product"), "y", 4.0, INT8(-3))
    model = int8_model(net, (2, 5, 30), (2, 5, 5))
    check(model, (2, 5, 30))
    notices = plan(lower(import_onnx(model))).graph.notices
    assert notices == ("node 'product_MatMul' (qnn.matmul) runs on the CPU",)


def test_convolution_with_a_float_result_runs_on_the_cpu_with_a_notice() -> None:
    net = Net()
    names = [net.dq("x"), net.weight("w", 4, 3, 3, 3)]
    net.b.node("Relu", [net.b.node("Conv", names, "sum")], "y")
    model = net.b.model({"x": (INT8, (1, 3, 5, 5))}, {"y": (np.float32, (1, 4, 3, 3))})
    check(model, (1, 3, 5, 5))
    planned = plan(lower(import_onnx(model)))
    assert planned.graph.notices == ("node 'sum_Conv' (qnn.conv2d) runs on the CPU",)
    steps = [s for s in planned.steps if not isinstance(s, Group)]
    assert [(s.op, s.exact) for s in steps] == [
        ("conv2d_sum", True),
        ("scale", False),
        ("float.clip", False),
    ]
    assert steps[0].macs == 4 * 9 * 27
