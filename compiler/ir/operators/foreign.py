"""`onnx.<operator>`: nodes that an ONNX model had and the registry lacks.

Their attributes are the node's, and `opset`, `result` (the result's type, as the importer found
it) and `inputs` (which of the node's inputs the arguments are, where some are left out).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from vitral.compiler.ir.operators.operator import Arrays, Attrs, Misfit, Operator, Types, need
from vitral.compiler.ir.types import TensorType

__all__ = ["PREFIX", "foreign_operator"]

PREFIX = "onnx."


@dataclass(frozen=True, kw_only=True)
class _Foreign(Operator):
    """Takes whatever attributes there are."""

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        need(isinstance(given.get("opset"), int), "needs attribute opset, a number")
        good = isinstance(given.get("result"), TensorType)
        need(good, "needs attribute result, such as Tensor[(1, 3), float32]")
        return dict(given)


def _result(attrs: Attrs, args: Types) -> TensorType:
    return attrs["result"]


def foreign_operator(name: str) -> Operator:
    """What computes with ONNX's reference operators; needs onnx then, and not before."""

    def compute(attrs: Attrs, args: Arrays) -> npt.NDArray[Any]:
        from vitral.compiler.frontends.relay.fallback import result_of

        try:
            return result_of(name, dict(attrs), list(args))
        except Exception as error:
            text = " ".join(str(error).split())
            raise Misfit(f"needs a node that can be computed: {text}") from None

    return _Foreign(name=name, arity=range(1 << 16), relation=_result, compute=compute)
