"""Graphs of calls: building, type errors, and values worked out by hand."""

from typing import Any

import numpy as np
import pytest
from call_graphs import global_scale

from vitral.compiler.ir import GraphBuilder, TensorType, evaluate, evaluate_all, verify
from vitral.errors import CompileError


def one(op: str, *args: Any, **attrs: Any) -> np.ndarray:
    """What an operator makes of arrays."""
    arrays = [np.asarray(item) for item in args]
    types = {f"x{i}": TensorType(a.shape, str(a.dtype)) for i, a in enumerate(arrays)}
    b = GraphBuilder(types)
    graph = b.graph(b.call(op, *types, **attrs))
    verify(graph)
    (result,) = evaluate(graph, dict(zip(types, arrays, strict=True)))
    return result


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


TOP = 2**31 - 1
BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))

BY_HAND = [
    ("round", [f32(0.5, 1.5, 2.5, -0.5, -2.5, BELOW_HALF, 2**24 + 2)], {},
     f32(1, 2, 3, -1, -3, 0, 2**24 + 2)),
    ("right_shift", [i32(-1, -128, 127, 64, -2**31), i32(7, 7, 7, 7, 40)], {},
     i32(-1, -1, 0, 0, -1)),
    ("left_shift", [i32(1, -3, 5, TOP), i32(31, 2, 32, 1)], {}, i32(-2**31, -12, 0, -2)),
    ("add", [i32(TOP, 5), i32(1, -7)], {}, i32(-2**31, -2)),
    ("multiply", [i32(65536, 3), i32(65536, -3)], {}, i32(0, -9)),
    ("divide", [i32(7, -7, 6, -6), i32(2, 2, 3, 4)], {}, i32(3, -3, 2, -1)),
    ("cast", [f32(-1.9, 1.9, 300, -300, np.nan)], {"dtype": "int8"},
     np.array([-1, 1, 127, -128, 0], np.int8)),
    ("cast", [f32(3e9, -3e9)], {"dtype": "int32"}, i32(TOP, -2**31)),
    ("cast", [i32(255, 256, -129)], {"dtype": "int8"}, np.array([-1, 0, 127], np.int8)),
    ("clip", [i32(-500, -127, 3, 500)], {"a_min": -127, "a_max": 127}, i32(-127, -127, 3, 127)),
    ("argmax", [f32(1, 4, 2).reshape(1, 3)], {}, np.array(1, np.int32)),
    ("argmax", [f32(1, 4, 2).reshape(1, 3)], {"keepdims": True}, i32(1).reshape(1, 1)),
    ("nn.relu", [i32(-5, 5)], {}, i32(0, 5)),
    ("nn.leaky_relu", [f32(-2, 2)], {"alpha": 0.25}, f32(-0.5, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "args", "attrs", "wanted"), BY_HAND)
def test_values_by_hand(op: str, args: list, attrs: dict, wanted: np.ndarray) -> None:
    got = one(op, *args, **attrs)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


def test_int8_convolution_sums_in_int32() -> None:
    x = np.full((1, 300, 3, 3), -128, np.int8)
    weight = np.full((2, 300, 3, 3), -128, np.int8)
    got = one("nn.conv2d", x, weight, out_dtype="int32", padding=[1, 1])
    assert got.shape == (1, 2, 3, 3)
    assert got[0, 1, 1, 1] == 9 * 300 * 2**14
    assert got[0, 0, 0, 0] == 4 * 300 * 2**14


def test_global_scale_quantization() -> None:
    """Codes 16, 2, -2, 127, -127: times 96, plus 64, shifted: 12, 2, -1, 95, -95."""
    data = f32(1, 0.125, -0.125, 100, -100).reshape(1, 1, 1, 5)
    (got,) = evaluate(global_scale(), {"data": data})
    np.testing.assert_array_equal(got.ravel() * 16, [12, 2, -1, 95, -95])


def test_every_value_can_be_had() -> None:
    graph = global_scale()
    values = evaluate_all(graph, {"data": np.ones((1, 1, 1, 5), np.float32)})
    assert set(values) == set(graph.types)
    assert values["nn.conv2d"].dtype == np.int32
    assert set(values["nn.conv2d"].ravel()) == {16 * 96}


WRONG = [
    ("add", [f32(1), i32(1)], {}, "node 'add' (add): needs arguments of one element type"),
    ("add", [f32(1, 2), f32(1, 2, 3)], {}, "needs shapes that broadcast"),
    ("add", [f32(1)], {}, "needs 2 arguments, got 1"),
    ("clip", [f32(1)], {"a_min": 1}, "needs attribute a_max, got none"),
    ("clip", [f32(1)], {"a_min": "1", "a_max": 2}, "attribute a_min needs a number, got '1'"),
    ("round", [f32(1)], {"mode": 1}, "needs attributes among none, got mode"),
    ("cast", [f32(1)], {"dtype": "int9"}, "attribute dtype needs the name of an element type"),
    ("nn.softplus", [f32(1)], {}, "needs an operator of the registry, got 'nn.softplus'"),
    ("right_shift", [i32(1), i32(-1)], {}, "needs shifts from 0, got -1"),
    ("divide", [i32(1), i32(0)], {}, "needs divisors other than 0"),
]


@pytest.mark.parametrize(("op", "args", "attrs", "text"), WRONG)
def test_refusals_are_one_line(op: str, args: list, attrs: dict, text: str) -> None:
    with pytest.raises(CompileError) as caught:
        one(op, *args, **attrs)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_feeds_are_checked() -> None:
    graph = global_scale()
    with pytest.raises(CompileError, match="needs input 'data'"):
        evaluate(graph, {})
    with pytest.raises(CompileError, match="got other"):
        evaluate(graph, {"other": np.zeros(1)})
    with pytest.raises(CompileError, match="float64"):
        evaluate(graph, {"data": np.zeros((1, 1, 1, 5))})
