"""onnx's node tests of every operator that quantized networks are made of."""

from functools import cache

import onnx
import pytest

from conformance import OPERATORS, NodeTest, Outcome, node_tests, out_of_scope, run
from conformance.page import PAGE, page

pytestmark = [pytest.mark.conformance, pytest.mark.xdist_group("conformance")]


@cache
def outcome(test: NodeTest) -> Outcome:
    return run(test)


def in_scope(operator: str | None = None) -> list[NodeTest]:
    return [t for t in node_tests() if t.excluded is None and operator in (None, t.operator)]


@pytest.mark.parametrize("operator", OPERATORS)
def test_node_tests_pass(operator: str) -> None:
    tests = in_scope(operator)
    assert tests, f"{operator}: no test of onnx is in scope"
    failed = [o for o in map(outcome, tests) if o.problem is not None]
    lines = [f"{o.test.name}: {o.problem}" for o in failed]
    assert not failed, f"{len(failed)} of {len(tests)} fail\n" + "\n".join(lines)


def test_the_page_is_current() -> None:
    wanted = page([outcome(test) for test in in_scope()])
    assert PAGE.read_text() == wanted, "run make docs"


def test_a_wrong_result_fails() -> None:
    (test,) = (t for t in node_tests() if t.name == "test_qlinearconv")
    (inputs, (right,)) = test.data_sets[0]
    wrong = right.copy()
    wrong.flat[5] ^= 1
    changed = NodeTest(**{**vars(test), "data_sets": [(inputs, [wrong])]})
    problem = run(changed).problem
    assert problem == f"1 of {right.size} elements of output 0 differ"
    shorter = NodeTest(**{**vars(test), "data_sets": [(inputs, [right.reshape(-1)])]})
    assert "output 0 is" in str(run(shorter).problem)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("test_qlinearconv", None),
        ("test_averagepool_2d_ceil", None),
        ("test_clip_example_expanded", "operator Less"),
        ("test_add_int8", "arithmetic on integers without scale"),
        ("test_quantizelinear_int16", "element type int16"),
        ("test_qlinearmatmul_2D_int8_float16", "element type float16"),
        ("test_maxpool_3d_default", "three spatial dimensions"),
        ("test_dequantizelinear_blocked", "scales of blocks"),
        ("test_split_zero_size_splits_opset18", "tensors without elements"),
        ("test_resize_upsample_scales_cubic", "cubic interpolation"),
        ("test_batchnorm_example_training_mode", "training"),
    ],
)
def test_scope_follows_from_the_graph(name: str, reason: str | None) -> None:
    (test,) = (t for t in node_tests() if t.name == name)
    renamed = onnx.ModelProto()
    renamed.CopyFrom(test.model)
    renamed.graph.name = "another"
    assert out_of_scope(renamed) == reason


@pytest.mark.parametrize("operator", ["QLinearConv", "QLinearMatMul"])
def test_the_core_gives_the_same(operator: str) -> None:
    for test in in_scope(operator):
        assert run(test, "tsim").problem is None, test.name
