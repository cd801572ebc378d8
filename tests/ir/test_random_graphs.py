"""Random graphs of calls: text, parse, run."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vitral.compiler.ir import Graph, GraphBuilder, TensorType, evaluate, parse_text, to_text

NAMES = st.text('aZ_07.%:/- "\\\n#é→', min_size=1, max_size=5)
NUMBERS = st.floats(-(2.0**100), 2.0**100, width=32)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Element-wise operators, convolutions and views of values of one image shape."""
    names = draw(st.lists(NAMES, min_size=1, max_size=2, unique=True))
    b = GraphBuilder({name: TensorType((1, 2, 3, 3), "float32") for name in names})
    values = list(names)
    for _ in range(draw(st.integers(1, 8))):
        x = draw(st.sampled_from(values))
        output = draw(st.none() | NAMES.filter(lambda name: name not in b.types))
        kind = draw(st.sampled_from(["add", "scalar", "clip", "conv", "view", "cast", "concat"]))
        if kind == "add":
            made = b.call("add", x, draw(st.sampled_from(values)), output=output)
        elif kind == "scalar":
            made = b.call("maximum", x, np.float32(draw(NUMBERS)), output=output)
        elif kind == "clip":
            low = draw(NUMBERS)
            made = b.call("clip", x, a_min=low, a_max=draw(st.floats(low, 2.0**101)), output=output)
        elif kind == "conv":
            padding = draw(st.sampled_from([(1, 1), (0, 2), (1, 1, 1, 1), (2, 0, 0, 2)]))
            seed = draw(st.integers(0, 99))
            weight = np.random.default_rng(seed).normal(0, 1, (2, 2, 3, 3)).astype(np.float32)
            wide = b.call("nn.conv2d", x, weight, padding=padding)
            begin = tuple(0 for _ in range(4))
            end = (1, 2, 3, 3)
            if b.types[wide].shape != end:
                wide = b.call("nn.pad", wide, pad_width=(0, 0, 0, 0, 2, 2, 2, 2))
            made = b.call("strided_slice", wide, begin=begin, end=end, output=output)
        elif kind == "view":
            flat = b.call("transpose", b.call("reshape", x, newshape=(0, -1)), axes=(1, 0))
            made = b.call("reshape", flat, newshape=(1, 2, 3, 3), output=output)
        elif kind == "cast":
            made = b.call("cast", b.call("cast", x, dtype="int32"), dtype="float32", output=output)
        else:
            both = b.call("concatenate", x, draw(st.sampled_from(values)), axis=1)
            made = b.call("split", both, indices_or_sections=(2,), axis=1, index=1, output=output)
        values.append(made)
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    return b.graph(*outputs)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(graph=graphs(), types=st.booleans(), results=st.booleans())
def test_text_gives_the_same_graph(graph: Graph, types: bool, results: bool) -> None:
    text = to_text(graph, types=types, results=results)
    again = parse_text(text)
    assert to_text(again, types=types, results=results) == text
    assert again.inputs == graph.inputs
    assert again.outputs == graph.outputs
    assert [(op.name, op.output) for op in again.ops] == [(op.name, op.output) for op in graph.ops]
    rng = np.random.default_rng(7)
    feeds = {name: rng.normal(0, 3, (1, 2, 3, 3)).astype(np.float32) for name in graph.inputs}
    with np.errstate(all="ignore"):
        pairs = zip(evaluate(again, feeds), evaluate(graph, feeds), strict=True)
        assert all(got.tobytes() == want.tobytes() for got, want in pairs)
