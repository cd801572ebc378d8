"""onnx's node tests of single operators, and what the backend makes of them."""

import importlib
import pkgutil
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case import node as cases

from conformance.scope import OPERATORS, out_of_scope
from vitral import onnx_backend
from vitral.errors import VitralError

__all__ = ["NodeTest", "Outcome", "node_tests", "run"]


@dataclass(frozen=True, eq=False)
class NodeTest:
    """A test of onnx: a model, inputs with their right outputs, and the tolerance it asks for.

    `operator` is the one tested; the graph holds others when onnx expanded it. `excluded` is why
    it is out of scope, or None.
    """

    name: str
    operator: str
    model: onnx.ModelProto
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float
    excluded: str | None


@dataclass(frozen=True)
class Outcome:
    """`problem` is None when every output had the right type, shape and values."""

    test: NodeTest
    problem: str | None


@cache
def node_tests() -> tuple[NodeTest, ...]:
    """Every node test of the operators in `OPERATORS`, sorted by name.

    Loads onnx's modules of these operators only: all of them take three times as long.
    """
    modules = {m.name.replace("_", ""): m.name for m in pkgutil.iter_modules(cases.__path__)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some cases overflow on purpose
        for operator in OPERATORS:
            importlib.import_module(f"{cases.__name__}.{modules[operator.lower()]}")
    found: list[NodeTest] = []
    operator = ""
    for case in cases._NodeTestCases:  # a case is followed by its graphs of simpler operators
        assert case.model is not None
        if "_expanded" not in case.name:
            (node,) = case.model.graph.node
            operator = node.op_type
        if operator in OPERATORS:
            found.append(_node_test(case, case.model, operator))
    return tuple(sorted(found, key=lambda test: test.name))


def run(test: NodeTest, device: str = "fsim") -> Outcome:
    """Whether the backend gives what onnx says it must, within the test's own tolerance."""
    try:
        prepared = onnx_backend.prepare(test.model, device)
        for inputs, wanted in test.data_sets:
            got = prepared.run(list(inputs))
            problem = _problem(wanted, got, test)
            if problem is not None:
                return Outcome(test, problem)
    except VitralError as error:
        return Outcome(test, f"refused: {error}")
    return Outcome(test, None)


def _node_test(case: Any, model: onnx.ModelProto, operator: str) -> NodeTest:
    return NodeTest(
        name=case.name,
        operator=operator,
        model=model,
        data_sets=case.data_sets,
        rtol=case.rtol,
        atol=case.atol,
        excluded=out_of_scope(model),
    )


def _problem(wanted: Sequence[Any], got: Sequence[Any], test: NodeTest) -> str | None:
    if len(wanted) != len(got):
        return f"{len(got)} outputs, not {len(wanted)}"
    for index, (right, ours) in enumerate(zip(wanted, got, strict=True)):
        right = np.asarray(right)
        if (ours.dtype, ours.shape) != (right.dtype, right.shape):
            return f"output {index} is {ours.dtype}{ours.shape}, not {right.dtype}{right.shape}"
        exact = right.dtype.kind in "iu"
        rtol, atol = (0, 0) if exact else (test.rtol, test.atol)
        differing = ~np.isclose(ours, right, rtol=rtol, atol=atol, equal_nan=True)
        if differing.any():
            return f"{differing.sum()} of {right.size} elements of output {index} differ"
    return None
