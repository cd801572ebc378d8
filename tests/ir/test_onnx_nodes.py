"""onnx's own node tests, with results that onnx gives, against the interpreter."""

import numpy as np
import onnx
import pytest
from conformance import NodeTest, node_tests
from onnx import numpy_helper

from vitral.compiler.frontends.relay import import_calls
from vitral.compiler.ir import Graph, evaluate, parse_text, to_text
from vitral.errors import CompileError

FEWEST = 180
"""So many of the tests have operators of the registry only."""


def with_parameters(test: NodeTest) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model with all inputs but the first one, and all that are no data, as constants."""
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    names = [info.name for info in model.graph.input]
    arrays = [np.asarray(value) for value in test.data_sets[0][0]]
    fed = {names[0]: arrays[0]} if arrays and arrays[0].dtype in (np.float32, np.int8) else {}
    for name, array in list(zip(names, arrays, strict=False)):
        if name not in fed:
            model.graph.initializer.append(numpy_helper.from_array(array, name))
    kept = [info for info in model.graph.input if info.name in fed]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model, fed


def native(graph: Graph) -> bool:
    return bool(graph.ops) and not any(op.kind.startswith("onnx.") for op in graph.ops)


@pytest.mark.slow
def test_registry_gives_the_results_of_onnx() -> None:
    wrong: list[str] = []
    passed = 0
    for test in node_tests():
        try:
            model, feeds = with_parameters(test)
            graph = import_calls(model, {name: array.shape for name, array in feeds.items()})
        except (CompileError, NotImplementedError, TypeError, ValueError):
            continue
        if not native(graph):
            continue
        got = evaluate(parse_text(to_text(graph)), feeds)
        same = all(
            g.dtype == w.dtype and g.shape == w.shape
            and np.allclose(g, w, rtol=max(test.rtol, 1e-5), atol=max(test.atol, 1e-6))
            for g, w in zip(got, test.data_sets[0][1], strict=True)
        )  # fmt: skip
        passed += same
        wrong += [] if same else [test.name]
    assert wrong == []
    assert passed >= FEWEST
