"""ONNX models as calls: what is folded, what keeps its name, what is refused, and same bytes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from cases import build_qdq, small_convs
from cases.forms import accepted_forms
from cases.models import build_qoperator
from onnx import helper, numpy_helper
from onnx.parser import parse_model

import vitral
from vitral.compiler.frontends.relay import export_calls, import_calls
from vitral.compiler.ir import Call, Graph, GraphBuilder, TensorType, evaluate, parse_text, to_text
from vitral.errors import CompileError

DIGITS = Path(__file__).parents[2] / "examples/digits/digits_float.onnx"


def model(body: str, opset: int = 17, inputs: str = "float[1,4,6,6] x") -> onnx.ModelProto:
    """A model in onnx's own text form with result y."""
    head = f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>'
    return parse_model(f"{head} g ({inputs}) => (float[N,C,H,W] y) {{ {body} }}")


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def quantized() -> Iterator[tuple[str, onnx.ModelProto]]:
    yield from accepted_forms().items()
    for case in small_convs()[:8]:
        yield f"{case.name} QOperator", build_qoperator(case)
        yield f"{case.name} QDQ", build_qdq(case)


def image(module: vitral.Module) -> list[tuple[int, bytes]]:
    return [(place, bytes(data)) for place, data in module.image.items()]


@pytest.mark.parametrize(("name", "proto"), list(quantized()))
def test_text_of_a_quantized_model_compiles_to_the_same_bytes(
    name: str, proto: onnx.ModelProto
) -> None:
    graph = parse_text(to_text(import_calls(proto)))
    assert not [op for op in kinds(graph) if op.startswith("onnx.")], name
    assert image(vitral.compile(graph)) == image(vitral.compile(proto))


def test_names_are_the_models() -> None:
    graph = import_calls(DIGITS)
    proto = onnx.load(DIGITS)
    named = {node.name: node.output[0] for node in proto.graph.node}
    assert graph.inputs == tuple(i.name for i in proto.graph.input)
    assert graph.outputs == tuple(o.name for o in proto.graph.output)
    assert {op.name for op in graph.ops} == set(named)
    again = export_calls(graph).graph
    assert {node.name: node.output[0] for node in again.node} == named
    stored = {t.name for t in proto.graph.initializer}
    assert stored == {t.name for t in again.initializer}


def test_shapes_are_computed_at_import() -> None:
    graph = import_calls(model("""
        s = Shape(x)
        i = Constant<value = int64[1] {0}>()
        n = Gather(s, i)
        m = Constant<value = int64[3] {-1, 6, 3}>()
        t = Concat<axis = 0>(n, m)
        y = Reshape(x, t)"""))  # fmt: skip
    assert kinds(graph) == ["reshape"]
    assert graph.types["y"].shape == (1, 8, 6, 3)


def test_padding_by_name() -> None:
    """SAME_LOWER puts the odd element in front, SAME_UPPER behind."""
    for auto, pads in (("SAME_LOWER", (1, 1, 0, 0)), ("SAME_UPPER", (0, 0, 1, 1))):
        text = f'y = MaxPool<auto_pad = "{auto}", kernel_shape = [3, 3], strides = [2, 2]>(x)'
        (op,) = import_calls(model(text)).ops
        assert isinstance(op, Call)
        assert op.attrs["padding"] == pads


def test_nodes_without_an_operator_stay_what_they_are() -> None:
    proto = model("a = HardSwish(x) y = Mul(a, x)")
    graph = parse_text(to_text(import_calls(proto)))
    assert kinds(graph) == ["onnx.HardSwish", "multiply"]
    x = np.random.default_rng(2).normal(0, 3, (1, 4, 6, 6)).astype(np.float32)
    (got,) = evaluate(graph, {"x": x})
    np.testing.assert_allclose(got, x * x * np.clip(x / 6 + 0.5, 0, 1), rtol=1e-6, atol=1e-6)
    assert [node.op_type for node in export_calls(graph).graph.node] == ["HardSwish", "Mul"]


def test_a_node_of_an_opset_that_differs_is_not_exported() -> None:
    graph = import_calls(model("y = Softmax<axis = 1>(x)", opset=11))
    assert kinds(graph) == ["onnx.Softmax"]
    with pytest.raises(CompileError, match="has no form in opset 19, it is of opset 11"):
        export_calls(graph)


def test_split_gives_a_call_for_each_part() -> None:
    proto = model("a, b = Split<axis = 1>(x, s) y = Mul(a, b)")
    proto.graph.initializer.append(numpy_helper.from_array(np.array([1, 3], np.int64), "s"))
    graph = import_calls(proto)
    assert kinds(graph) == ["split", "split", "multiply"]
    assert [graph.types[op.output].shape[1] for op in graph.ops[:2]] == [1, 3]


REFUSED = [
    ("y, i = MaxPool<kernel_shape = [2, 2]>(x)", "needs one result, got a second one, 'i'"),
    ("y = Conv<group = 2>(x, x)", "needs channels that fit groups=2"),
    ("y = Add(x, z)", "z"),
    ("y = NoSuchOperator(x)", "needs a node that can be computed"),
]


@pytest.mark.parametrize(("body", "said"), REFUSED)
def test_refusals_name_the_node_in_one_line(body: str, said: str) -> None:
    with pytest.raises(CompileError) as caught:
        import_calls(model(body))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_integer_arithmetic_has_no_form_in_onnx() -> None:
    b = GraphBuilder({"x": TensorType((1, 2), "int32")})
    graph = b.graph(b.call("right_shift", "x", np.int32(3), name="halve"))
    with pytest.raises(CompileError, match=r"node 'halve' \(right_shift\): has no form in ONNX"):
        export_calls(graph)


def test_exported_attributes_are_the_nodes() -> None:
    """A foreign call keeps inputs that were left out, and attributes that are arrays."""
    node = helper.make_node(
        "Resize", ["x", "", "scales"], ["y"], mode="linear", name="r",
        coordinate_transformation_mode="align_corners",
    )  # fmt: skip
    info = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", [1, 1, 3, 3]), ("y", None))]
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")
    graph = helper.make_graph([node], "g", info[:1], info[1:], [scales])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    (again,) = export_calls(parse_text(to_text(import_calls(proto)))).graph.node
    assert list(again.input) == ["x", "", "scales"]
    assert {a.name for a in again.attribute} == {"mode", "coordinate_transformation_mode"}
