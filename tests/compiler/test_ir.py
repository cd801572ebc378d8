"""The graph's verifier, type rules and printed form."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitral.compiler.ir import Graph, Quant, TensorType, infer, verify
from vitral.compiler.ir.macs import macs
from vitral.compiler.ir.ops import (
    AveragePool,
    Binary,
    Concat,
    Conv2d,
    Dequantize,
    FlipSign,
    FloatOp,
    MatMul,
    MaxPool,
    Op,
    Quantize,
    Reshape,
    Table,
    Transpose,
)
from vitral.errors import CompileError

INT8 = Quant(dtype="int8", scale=(0.5,), zero_point=(3,))
UINT8 = Quant(dtype="uint8", scale=(0.25,), zero_point=(128,))


def made(kind: type[Op], *inputs: str, **fields: Any) -> Any:
    """An operator called n that writes y."""
    return kind(name="n", inputs=inputs or ("x",), output="y", **fields)


def conv(**changes: Any) -> Conv2d:
    fields: dict[str, Any] = {
        "x_quant": INT8,
        "y_quant": UINT8,
        "weight": np.ones((6, 4, 3, 3), np.int8),
        "weight_zero": np.zeros(6, np.int64),
        "product_scale": np.ones(6, np.float32),
        "bias": np.zeros(6, np.int64),
    }
    return made(Conv2d, **{**fields, **changes})


def t(*shape: int, dtype: str = "int8") -> TensorType:
    return TensorType(shape, dtype)


RIGHT = [
    (made(Quantize, quant=UINT8), [t(2, 3, dtype="float32")], t(2, 3, dtype="uint8")),
    (made(Dequantize, quant=INT8), [t(2, 3)], t(2, 3, dtype="float32")),
    (made(FlipSign), [t(5)], t(5, dtype="uint8")),
    (made(Table, table=np.zeros(256, np.float32)), [t(5)], t(5, dtype="float32")),
    (conv(), [t(2, 4, 9, 8)], t(2, 6, 7, 6, dtype="uint8")),
    (conv(y_quant=None), [t(2, 4, 9, 8)], t(2, 6, 7, 6, dtype="float32")),
    (conv(strides=(2, 3), pads=(1, 0, 2, 5)), [t(1, 4, 9, 8)], t(1, 6, 5, 4, dtype="uint8")),
    (conv(dilations=(4, 1)), [t(1, 4, 9, 8)], t(1, 6, 1, 6, dtype="uint8")),
    (conv(group=2), [t(1, 8, 3, 3)], t(1, 6, 1, 1, dtype="uint8")),
    (
        made(
            MatMul,
            "a",
            "b",
            a_quant=INT8,
            b_quant=INT8,
            y_quant=INT8,
            product_scale=np.array([1], np.float32),
        ),
        [t(3, 2, 5), t(5, 7)],
        t(3, 2, 7),
    ),
    (
        made(Binary, "a", "b", function="add", a_quant=INT8, b_quant=UINT8, y_quant=INT8),
        [t(2, 1, 4), t(3, 1, dtype="uint8")],
        t(2, 3, 4),
    ),
    (
        made(AveragePool, x_quant=INT8, y_quant=INT8, kernel=(3, 3), strides=(2, 2), excess=(1, 1)),
        [t(1, 4, 4, 4)],
        t(1, 4, 2, 2),
    ),
    (made(MaxPool, kernel=(2, 2), strides=(2, 2)), [t(1, 4, 5, 4)], t(1, 4, 2, 2)),
    (made(Concat, "a", "b", axis=1), [t(2, 3, 4), t(2, 5, 4)], t(2, 8, 4)),
    (made(Reshape, shape=(6,)), [t(2, 3)], t(6)),
    (made(Transpose, perm=(2, 0, 1)), [t(2, 3, 4)], t(4, 2, 3)),
    (
        made(FloatOp, function="clip", shape=(4,)),
        [t(4, dtype="float32")],
        t(4, dtype="float32"),
    ),
]


@pytest.mark.parametrize(("op", "args", "want"), RIGHT, ids=lambda v: getattr(v, "kind", None))
def test_type_of_a_result(op: Op, args: list[TensorType], want: TensorType) -> None:
    assert infer(op, args) == want


WRONG = [
    (made(Quantize, quant=INT8), [t(3)], "needs float32, got int8"),
    (made(Dequantize, quant=INT8), [t(3, dtype="uint8")], "needs int8, got uint8"),
    (made(Table, table=np.zeros(16)), [t(3)], "needs 256 table entries"),
    (made(Table, table=np.zeros(256)), [t(3, dtype="int32")], "needs int8 or uint8, got int32"),
    (conv(), [t(4, 9, 8)], r"needs a rank 4 input, got shape \[4, 9, 8\]"),
    (conv(), [t(1, 5, 9, 8)], "needs channels that fit group 1, got input channels 5"),
    (conv(group=4), [t(1, 16, 9, 8)], "needs channels that fit group 4"),
    (conv(), [t(1, 4, 2, 8)], "needs a padded input of at least 3, got 2"),
    (made(Concat, "a", "b", axis=1), [t(2, 3), t(3, 3)], "needs inputs that differ in axis 1"),
    (made(Concat, "a", "b", axis=0), [t(2), t(2, dtype="uint8")], "differ in axis 0 only"),
    (made(Reshape, shape=(5,)), [t(2, 3)], "needs 6 elements"),
    (made(Transpose, perm=(0, 0)), [t(2, 3)], "needs a permutation of 2 axes"),
    (made(FloatOp, function="add", shape=(1,)), [t(1)], "needs float32 or wide integers, got int8"),
    (
        made(Binary, "a", "b", function="add", a_quant=INT8, b_quant=INT8, y_quant=INT8),
        [t(2, 3), t(4)],
        "needs shapes that broadcast",
    ),
]


@pytest.mark.parametrize(("op", "args", "text"), WRONG)
def test_misfit_is_refused_with_the_node(op: Op, args: list[TensorType], text: str) -> None:
    with pytest.raises(CompileError, match=rf"^node 'n' \({op.kind}\): .*{text}"):
        infer(op, args)


def small() -> Graph:
    """x -> reshape -> y."""
    op = made(Reshape, shape=(6,))
    return Graph(inputs=("x",), outputs=("y",), types={"x": t(2, 3), "y": t(6)}, ops=(op,))


def test_sound_graph_passes() -> None:
    verify(small())


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"inputs": ()}, "needs value 'x' computed before it"),
        ({"outputs": ("z",)}, "output 'z': needs a node that computes it"),
        ({"types": {"x": t(2, 3)}}, "value 'y' needs a type"),
        ({"types": {"x": t(2, 3), "y": t(3, 2)}}, r"declared Tensor\[\(3, 2\), int8\], computed"),
        ({"inputs": ("x", "y")}, "value 'y' is defined a second time"),
        ({"constants": {"x": np.zeros(6)}}, "value 'x' is defined a second time"),
    ],
)
def test_unsound_graph_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(CompileError, match=text):
        verify(replace(small(), **changes))


def test_per_tensor_map_covers_all_codes() -> None:
    assert INT8.real_table()[[0, 131, 255]].tolist() == [-65.5, 0, 62]
    assert UINT8.real_table()[[0, 128, 255]].tolist() == [-32, 0, 31.75]
    for quant in (INT8, UINT8):
        np.testing.assert_array_equal(quant.code(quant.real_table()), quant.codes())


def test_multiply_accumulates_of_real_shapes() -> None:
    types = {"x": t(2, 4, 9, 8), "y": t(2, 6, 7, 6, dtype="uint8")}
    graph = Graph(inputs=("x",), outputs=("y",), types=types, ops=(conv(),))
    assert macs(graph.ops[0], graph) == 2 * 6 * 7 * 6 * 4 * 9
