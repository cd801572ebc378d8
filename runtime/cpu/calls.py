"""`call`: any operator of the text form, with the numbers of its interpreter."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

__all__ = ["OPERATORS"]


def _call(*args: npt.NDArray[Any], operator: str, attrs: Mapping[str, Any]) -> npt.NDArray[Any]:
    from vitral.compiler.ir.operators import Misfit, evaluate_call
    from vitral.compiler.ir.types import TensorType

    given = dict(attrs)
    if operator.startswith("onnx."):  # a node that the registry lacks, with its result's type
        dtype, *shape = given["result"]
        given["result"] = TensorType(tuple(shape), dtype)
    try:
        return evaluate_call(operator, given, args)
    except Misfit as error:
        raise ValueError(f"{operator}: {error}") from None


OPERATORS = {"call": _call}
