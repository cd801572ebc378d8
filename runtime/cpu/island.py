"""Operators of float islands that onnxruntime runs."""

import base64
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]


@lru_cache(maxsize=256)
def _session(model: str, operator: str) -> Any:
    """A session for a model given as base64; `operator` is what an error names."""
    try:
        import onnxruntime
    except ImportError:
        raise ValueError(
            f"needs onnxruntime for operator {operator}; install it, or compile with cpu='numpy'"
        ) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Node by node as the model has them: joining steps changes no bit of what they give.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        base64.b64decode(model), options, providers=["CPUExecutionProvider"]
    )


def _onnx(*arrays: Array, model: str, result: int, operator: str) -> Array:
    """Result `result` of a model of one node whose inputs are `arrays` in order."""
    session = _session(model, operator)
    feeds = {given.name: x for given, x in zip(session.get_inputs(), arrays, strict=True)}
    (found,) = session.run([session.get_outputs()[result].name], feeds)
    return np.asarray(found)


def _region(*arrays: Array, model: str, operators: Sequence[str]) -> tuple[Array, ...]:
    """All results of a model of several nodes, in order; `operators` are theirs."""
    session = _session(model, ", ".join(dict.fromkeys(operators)))
    feeds = {given.name: x for given, x in zip(session.get_inputs(), arrays, strict=True)}
    return tuple(np.asarray(found) for found in session.run(None, feeds))


OPERATORS = {"float.onnx": _onnx, "float.region": _region}
"""float.onnx(*x) and float.region(*x), which has as many results as its model."""
