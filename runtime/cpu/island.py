"""Operators of float islands that onnxruntime runs."""

import base64
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]


@lru_cache(maxsize=256)
def _session(model: str, operator: str) -> Any:
    """A session for a model of one node, given as base64."""
    try:
        import onnxruntime
    except ImportError:
        raise ValueError(
            f"needs onnxruntime for operator {operator}; install it, or compile with cpu='numpy'"
        ) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        base64.b64decode(model), options, providers=["CPUExecutionProvider"]
    )


def _onnx(*arrays: Array, model: str, result: int, operator: str) -> Array:
    """Result `result` of a model of one node whose inputs are `arrays` in order."""
    session = _session(model, operator)
    feeds = {given.name: x for given, x in zip(session.get_inputs(), arrays, strict=True)}
    (found,) = session.run([session.get_outputs()[result].name], feeds)
    return np.asarray(found)


OPERATORS = {"float.onnx": _onnx}
"""float.onnx(*x)."""
