"""The oracle for networks with float islands: what it has no law for runs in onnxruntime.

Such operators are outside the promise of equal bytes, so they judge nothing: their float32 results
are handed on to the operators that the oracle does know. `vitral zoo run --judge judge:evaluate`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import oracle
from onnx import helper
from oracle.graph import Node
from oracle.values import Value, materialise

__all__ = ["evaluate"]

Array = npt.NDArray[Any]


def evaluate(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor of the model by name."""
    unknown = {(_domain(n), n.op_type) for n in model.graph.node} - oracle.OPERATORS.keys()
    added = dict.fromkeys(unknown, _island)
    oracle.OPERATORS.update(added)
    try:
        return oracle.evaluate(model, feeds)
    finally:
        for key in added:
            del oracle.OPERATORS[key]


def _domain(node: onnx.NodeProto) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _island(node: Node, args: Sequence[Value | None]) -> Value | list[Value]:
    arrays = [None if arg is None else materialise(arg) for arg in args]
    given = {f"i{i}": array for i, array in enumerate(arrays) if array is not None}
    infos = tuple((name, array.dtype.str, array.shape) for name, array in given.items())
    names = tuple("" if array is None else f"i{i}" for i, array in enumerate(arrays))
    attributes = tuple((key, _frozen(value)) for key, value in node.attributes.items())
    session = _session(node.op, node.opset, names, len(node.outputs), infos, attributes)
    found = [np.asarray(result) for result in session.run(None, given)]
    return found[0] if len(found) == 1 else list(found)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@cache
def _session(
    op: str,
    opset: int,
    names: tuple[str, ...],
    results: int,
    infos: tuple[tuple[str, str, tuple[int, ...]], ...],
    attributes: tuple[tuple[str, Any], ...],
) -> onnxruntime.InferenceSession:
    outputs = [f"o{i}" for i in range(results)]
    node = helper.make_node(op, names, outputs, **dict(attributes))
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)
        for name, kind, shape in infos
    ]
    ends = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "island", inputs, ends)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
