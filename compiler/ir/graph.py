"""A network as an immutable list of operators on named values."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from vitral.compiler.ir.ops import Op
from vitral.compiler.ir.types import Quant, TensorType

__all__ = ["Graph"]


def _empty() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph:
    """Operators in execution order.

    Parameters
    ----------
    inputs, outputs : tuple of str
        Value names in the model's order.
    types : mapping
        Type of every value: inputs, constants and results.
    ops : tuple of Op
        Each argument is an input, a constant or the result of an earlier operator.
    constants : mapping
        Values known at compile time.
    edges : mapping
        The quantized form of inputs and outputs that have one.
    notices : tuple of str
        What the user should know, one line each.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    types: Mapping[str, TensorType]
    ops: tuple[Op, ...]
    constants: Mapping[str, npt.NDArray[Any]] = field(default_factory=_empty)
    edges: Mapping[str, Quant] = field(default_factory=_empty)
    notices: tuple[str, ...] = ()

    def producers(self) -> dict[str, Op]:
        """Value name to the operator that computes it."""
        return {op.output: op for op in self.ops}

    def consumers(self) -> dict[str, list[Op]]:
        """Value name to the operators that read it; absent when none does."""
        readers: dict[str, list[Op]] = {}
        for op in self.ops:
            for name in dict.fromkeys(op.inputs):
                readers.setdefault(name, []).append(op)
        return readers

    def noted(self, *notices: str) -> "Graph":
        """The same graph with more notices."""
        return replace(self, notices=(*self.notices, *notices))
