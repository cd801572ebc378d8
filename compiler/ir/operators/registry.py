"""The operators of the text form by their name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.operators import (
    annotation,
    arithmetic,
    convolution,
    pooling,
    quantization,
    reduction,
    shaping,
)
from vitral.compiler.ir.operators.foreign import PREFIX, foreign_operator
from vitral.compiler.ir.operators.operator import Arrays, Misfit, Operator

__all__ = ["OPERATORS", "attributes_of", "evaluate_call", "operator"]

_FILES = (annotation, arithmetic, convolution, pooling, shaping, reduction, quantization)

OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {entry.name: entry for file in _FILES for entry in file.OPERATORS}
)


def operator(name: str) -> Operator:
    """The entry of a name; Misfit when there is none."""
    if name.startswith(PREFIX):
        return foreign_operator(name)
    if name not in OPERATORS:
        raise Misfit(f"needs an operator of the registry, got {name!r}")
    return OPERATORS[name]


def attributes_of(op: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of all attributes, defaults included; Misfit for unknown or wrong ones."""
    return operator(op).complete(given)


def evaluate_call(op: str, given: Mapping[str, Any], args: Arrays) -> npt.NDArray[Any]:
    """The result of an operator, C-contiguous; needs numpy only.

    Misfit for an unknown operator, wrong attributes, and values that it has no result for.
    """
    result = operator(op).compute(attributes_of(op, given), args)
    return np.ascontiguousarray(result).reshape(result.shape)
