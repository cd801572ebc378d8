"""The text form: golden files, round trips, and errors with their place."""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from call_graphs import global_scale
from cases import build_qdq, small_convs

from vitral.compiler.ir import Graph, GraphBuilder, TensorType, evaluate, parse_text, to_text
from vitral.compiler.pipeline import import_model, lower
from vitral.errors import CompileError

DIGITS = Path(__file__).parents[2] / "examples/digits/digits_int8.onnx"

FLOAT = """\
fn (%data: Tensor[(1, 1, 16, 16), float32]) {
  %0 = meta[relay.Constant][0]
  %1 = nn.conv2d(%data, %0)
  %2 = nn.relu(%1)
  %2
}
"""

PLACED = """\
fn (%data: Tensor[(1, 1, 16, 16), float32]) {
  %0 = meta[relay.Constant][0] # ty=Tensor[(1, 1, 1, 1), float32]
  %1 = nn.conv2d(%data, %0) # ty=Tensor[(1, 1, 16, 16), float32]
  %2 = device_copy(%1, meta[relay.attrs.DeviceCopyAttrs][0]) # ty=Tensor[(1, 1, 16, 16), float32]
  %3 = nn.relu(%2) # ty=Tensor[(1, 1, 16, 16), float32]
  %3
}
"""

SCALED = """\
fn (%data: Tensor[(1, 1, 1, 5), float32])
    -> Tensor[(1, 1, 1, 5), float32] {
  %0 = multiply(%data, 16f)
  %1 = round(%0)
  %2 = clip(%1, a_min=-127, a_max=127)
  %3 = cast(%2, dtype="int8")
  %4 = meta[relay.Constant][0]
  %5 = nn.conv2d(%3, %4, out_dtype="int32")
  %6 = add(%5, 64)
  %7 = right_shift(%6, 7)
  %8 = clip(%7, a_min=-127, a_max=127)
  %9 = cast(%8, dtype="float32")
  %10 = multiply(%9, 0.0625f)
  %10
}
"""

WEIGHT = np.full((1, 1, 1, 1), 0.75, np.float32)


def small(copied: bool) -> Graph:
    b = GraphBuilder({"data": TensorType((1, 1, 16, 16), "float32")})
    x = b.call("nn.conv2d", "data", WEIGHT)
    if copied:
        x = b.call("device_copy", x, source="accelerator", target="cpu")
    return b.graph(b.call("nn.relu", x))


def test_golden_files() -> None:
    assert to_text(small(False), metadata=False) == FLOAT
    assert to_text(small(True), types=True, metadata=False) == PLACED
    assert to_text(global_scale(), results=True, metadata=False) == SCALED


@pytest.mark.parametrize("graph", [small(False), small(True), global_scale()])
def test_text_parses_to_the_same_text_and_values(graph: Graph) -> None:
    text = to_text(graph, types=True, results=True)
    again = parse_text(text)
    assert to_text(again, types=True, results=True) == text
    assert [op.name for op in again.ops] == [op.name for op in graph.ops]
    shape = graph.types["data"].shape
    data = np.random.default_rng(5).normal(0, 2, shape).astype(np.float32)
    for got, want in zip(
        evaluate(again, {"data": data}), evaluate(graph, {"data": data}), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_graphs_of_the_passes_come_back() -> None:
    """Records, arrays, origins and edges, of a network before and after lowering."""
    imported = import_model(DIGITS)
    for graph in (imported, lower(imported)):
        text = to_text(graph)
        again = parse_text(text)
        assert to_text(again) == text
        assert again.edges.keys() == graph.edges.keys()
        assert [(op.kind, op.name, op.inputs, op.output) for op in again.ops] == [
            (op.kind, op.name, op.inputs, op.output) for op in graph.ops
        ]


def test_names_that_are_no_words_are_quoted() -> None:
    b = GraphBuilder({"a b%": TensorType((2,), "float32"), "0": TensorType((2,), "float32")})
    graph = b.graph(b.call("add", "a b%", "0"), "0")
    text = to_text(graph)
    assert text.startswith('fn (%"a b%": Tensor[(2,), float32], %"0": Tensor[(2,), float32]) {')
    assert '  (%0, %"0")\n' in text
    again = parse_text(text)
    assert again.inputs == graph.inputs
    assert to_text(again) == text


SCALARS = [
    (np.float32(16), "16f"),
    (np.float32(-0.0), "-0f"),
    (np.float32(2**-11), "0.00048828125f"),
    (np.float32(1e-5), "1e-05f"),
    (np.float32(3.4e38), "3.4e+38f"),
    (np.int32(-64), "-64"),
    (np.int64(2**40), "1099511627776i64"),
    (np.int8(-128), "-128i8"),
    (np.uint8(255), "255u8"),
    (np.float64(0.1), "0.1f64"),
    (np.float16(0.1), "0.1f16"),
    (np.bool_(True), "True"),
]


@pytest.mark.parametrize(("value", "shown"), SCALARS)
def test_numbers_of_rank_0_stand_in_the_line(value: np.generic, shown: str) -> None:
    b = GraphBuilder({"x": TensorType((), str(value.dtype))})
    text = to_text(b.graph(b.call("maximum", "x", value)))
    assert f"maximum(%x, {shown})" in text
    (constant,) = parse_text(text).constants.values()
    assert constant.tobytes() == value.tobytes()
    assert constant.dtype == value.dtype


def test_numbers_that_are_none_go_to_the_metadata() -> None:
    b = GraphBuilder({"x": TensorType((), "float32")})
    text = to_text(b.graph(b.call("maximum", "x", np.float32("nan"))))
    assert "maximum(%x, %0)" in text
    (constant,) = parse_text(text).constants.values()
    assert np.isnan(constant)


HEAD = "fn (%x: Tensor[(2, 3), float32]) {\n"
WRONG = [
    ("", "m.ir:1:1: needs 'fn', got the end"),
    ("fn (%x Tensor[(2,), float32]) {", "m.ir:1:8: needs ':', got 'Tensor'"),
    ("fn (%x: Tensor[(2,), int9]) {", "m.ir:1:22: needs an element type, got 'int9'"),
    ("fn (%x: Tensor[(2.5,), int8]) {", "m.ir:1:17: needs a size, got '2.5'"),
    (HEAD + "  %0 = nn.relu(%y)\n  %0\n}", "m.ir:2:16: needs a value defined before, got '%y'"),
    (HEAD + "  %0 = nn.rely(%x)\n  %0\n}", "m.ir:2:8: needs a known operator, got 'nn.rely'"),
    (HEAD + "  %0 = nn.relu(%x\n  %0\n}", "m.ir:3:3: needs ',', got '%0'"),
    (HEAD + "  %0 = clip(%x, a_min=, a_max=2)\n  %0\n}", "m.ir:2:23: needs a value, got ','"),
    (HEAD + "  %0 = clip(%x, a_min=1)\n  %0\n}",
     "m.ir:2:8: node '%0' (clip): needs attribute a_max, got none"),
    (HEAD + "  %0 = add(%x, 1)\n  %0\n}",
     "m.ir:2:8: node '%0' (add): needs arguments of one element type, got float32, int32"),
    (HEAD + "  %0 = meta[relay.Constant][3]\n  %0\n}",
     "m.ir:2:8: needs an entry of relay.Constant in the metadata, which has none"),
    (HEAD + "  %x = nn.relu(%x)\n  %x\n}",
     "m.ir:2:3: needs a value that is not defined yet, got '%x'"),
    (HEAD + "  %x\n} extra", "m.ir:3:3: needs the end of the function, or a line METADATA:,"
     " got 'extra'"),
    (HEAD + "  $\n}", "m.ir:2:3: needs a word of the text form, got '$\\n}'"),
    (HEAD.replace(" {", " -> Tensor[(3, 2), float32] {") + "  %x\n}",
     "m.ir:1:34: needs the results' types, Tensor[(2, 3), float32]"),
    (HEAD + "  %x\n}\n\nMETADATA:\n{", "m.ir:6:2: needs JSON in the metadata"),
    (HEAD + '  %x\n}\n\nMETADATA:\n{"relay.Constant": [{"dtype": "int8", "shape": [2],'
     ' "data": "AA=="}]}', "m.ir: meta[relay.Constant][0]: needs base64 of the shape's bytes"),
    (HEAD + "  %0 = add(%x, 1e400f64)\n  %0\n}", "got float32, float64"),
    (HEAD + "  %0 = add(%x, 300i8)\n  %0\n}", "m.ir:2:16: needs a number of int8, got '300i8'"),
    (HEAD + "  %0 = quantize(%x, quant=Quant(dtype=\"int8\"))\n  %0\n}", "m.ir:2:27: Quant: "),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_errors_name_line_and_column(text: str, said: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse_text(text, "m.ir")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


RECORD = "  %0 = quantize(%x, quant={})\n  %0\n}}"
MAP = 'Quant(dtype="int8", scale={}, zero_point=[0])'


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("3", "m.ir:2:8: quantize: needs another kind of value as quant"),
        (MAP.format("[1]").replace("[0]", "[0.5]"), "Quant: needs another kind of value as zero_"),
        (MAP.format("meta[relay.Constant][0]"), "needs an entry of relay.Constant in the metadata"),
        (MAP.format("None"), "m.ir:2:27: Quant: needs another kind of value as scale"),
    ],
)
def test_fields_of_records_are_checked(shown: str, said: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse_text(HEAD + RECORD.format(shown), "m.ir")
    assert said in str(caught.value)
    parse_text(HEAD + RECORD.format(MAP.format("[0.5]")), "m.ir")


def outcome(text: str) -> str:
    """What is said about a text; nothing when it is one, and then it prints as it was read."""
    try:
        graph = parse_text(text, "m.ir")
    except CompileError as error:
        return str(error)
    assert to_text(parse_text(to_text(graph))) == to_text(graph)
    return ""


def test_broken_texts_parse_or_are_refused_in_one_line() -> None:
    """Words left out, doubled and replaced by others, in function and metadata."""
    case = next(c for c in small_convs() if c.name == "CLIP6-B")
    texts = [to_text(global_scale(), types=True), to_text(lower(import_model(build_qdq(case))))]
    refused = 0
    for seed in range(200):
        rng = random.Random(seed)
        text = texts[seed % 2]
        words = list(re.finditer(r"[\w.]+|[^\w\s]", text))
        gone, other = rng.choice(words), rng.choice(words).group()
        new = rng.choice(["", other, gone.group() * 2, "-1", "None", "1e99", '"', "[", "(", "meta"])
        said = outcome(text[: gone.start()] + new + text[gone.end() :])
        assert not said or (said.startswith("m.ir:") and "\n" not in said), f"seed {seed}: {said}"
        refused += bool(said)
    assert refused > 120
