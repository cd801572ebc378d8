"""What an ONNX node gives to the function that imports it as calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.model import Node
from vitral.compiler.ir import GraphBuilder, TensorType

__all__ = ["Argument", "NodeScope", "Unfit", "pair"]

Argument = str | npt.NDArray[Any]


class Unfit(Exception):
    """The registry has no operator that means what the node means."""


@dataclass(frozen=True, kw_only=True)
class NodeScope:
    """A node, its arguments and where its calls go.

    An argument is the name of a value, an array that is known, or None where it is left out.
    `place` makes a constant of a known tensor, by its name.
    """

    node: Node
    args: tuple[Argument | None, ...]
    builder: GraphBuilder
    place: Callable[[str], str]

    def need(self, index: int) -> Argument:
        """An argument that the node must have."""
        found = self.optional(index)
        if found is None:
            raise self.node.fail(f"needs input {index}, got none")
        return found

    def optional(self, index: int) -> Argument | None:
        return self.args[index] if index < len(self.args) else None

    def known(self, index: int) -> npt.NDArray[Any]:
        """An argument whose value is known; Unfit when it is computed."""
        found = self.need(index)
        if isinstance(found, str):
            raise Unfit
        return found

    def single(self, index: int) -> Argument:
        """An argument that has rank 0 if it has one element."""
        found, type_ = self.need(index), self.type(index)
        if type_.size != 1 or not type_.shape:
            return found
        if isinstance(found, str):
            return self.inner("reshape", found, newshape=())
        return found.reshape(())

    def numbers(self, index: int, attribute: str) -> list[int] | None:
        """Integers of an attribute, or in later opsets of a known argument; None without both."""
        if attribute in self.node.attributes:
            return [int(item) for item in self.node.attributes[attribute]]
        if self.optional(index) is None:
            return None
        return [int(item) for item in np.atleast_1d(self.known(index))]

    def type(self, index: int) -> TensorType:
        """Type of an argument."""
        found = self.need(index)
        if isinstance(found, str):
            return self.builder.types[found]
        return TensorType(found.shape, str(found.dtype))

    def integer(self, name: str, default: int) -> int:
        """An attribute."""
        value = self.node.attributes.get(name, default)
        if not isinstance(value, int):
            raise self.node.fail(f"needs an integer as attribute {name}, got {value!r}")
        return value

    def real(self, name: str, default: float) -> float:
        value = self.node.attributes.get(name, default)
        if not isinstance(value, int | float):
            raise self.node.fail(f"needs a number as attribute {name}, got {value!r}")
        return float(value)

    def text(self, name: str, default: str) -> str:
        return str(self.node.attributes.get(name, default))

    def axis(self, name: str, default: int, rank: int) -> int:
        """An attribute as 0..rank-1; Unfit outside."""
        axis = self.integer(name, default)
        if not -rank <= axis < rank:
            raise self.node.fail(f"needs {name} in {-rank}..{rank - 1}, got {axis}")
        return axis % rank

    def call(self, op: str, *args: Argument, **attrs: Any) -> str:
        """The node's result."""
        return self._call(op, args, self.node.outputs[0], attrs)

    def inner(self, op: str, *args: Argument, **attrs: Any) -> str:
        """A value on the way to the node's result."""
        output = self.builder.fresh(f"{self.node.outputs[0]}_{op.rpartition('.')[2]}")
        return self._call(op, args, output, attrs)

    def _call(
        self, op: str, args: Sequence[Argument], output: str, attrs: Mapping[str, Any]
    ) -> str:
        values = [arg if isinstance(arg, str) else self._named(arg) for arg in args]
        return self.builder.call(op, *values, name=self.node.name, output=output, **attrs)

    def _named(self, array: npt.NDArray[Any]) -> Argument:
        """The node's own constants keep their names."""
        for name, arg in zip(self.node.inputs, self.args, strict=True):
            if arg is array:
                return self.place(name)
        return array

    def unfit_unless(self, good: bool) -> None:
        if not good:
            raise Unfit


def pair(values: Sequence[int]) -> tuple[int, ...]:
    """Pads of ONNX in the shortest form: (rows, columns) where both sides are equal."""
    half = len(values) // 2
    symmetric = tuple(values[:half]) == tuple(values[half:])
    return tuple(values[:half]) if symmetric else tuple(values)
