"""What an operator's import function gets: the node, its arguments as symbols, and the builder."""

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from vitral.compiler.frontends.onnx.builder import Builder
from vitral.compiler.frontends.onnx.model import Node
from vitral.compiler.frontends.onnx.symbols import (
    Const,
    ConstReal,
    Pending,
    Symbol,
    Tensor,
)
from vitral.compiler.ir.ops import FloatOp, Requantizing, Reshape, Transpose
from vitral.errors import CompileError

__all__ = ["Scope"]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One node being imported."""

    node: Node
    args: tuple[Symbol | None, ...]
    builder: Builder

    @property
    def output(self) -> str:
        """Name of the node's first result."""
        return self.node.outputs[0]

    def integer(self, attribute: str, default: int) -> int:
        """An integer attribute, or `default` when the node does not have it."""
        value = self.node.attributes.get(attribute, default)
        return self._checked(attribute, value, isinstance(value, int), "an integer")

    def number(self, attribute: str, default: float) -> float:
        """A float attribute, or `default` when the node does not have it."""
        value = self.node.attributes.get(attribute, default)
        return self._checked(attribute, value, isinstance(value, int | float), "a number")

    def text(self, attribute: str, default: str) -> str:
        """A string attribute, or `default` when the node does not have it."""
        value = self.node.attributes.get(attribute, default)
        return self._checked(attribute, value, isinstance(value, str), "a string")

    def integer_list(self, attribute: str) -> list[int] | None:
        """An attribute of several integers, None when the node does not have it."""
        value = self.node.attributes.get(attribute)
        good = value is None or (
            isinstance(value, list) and all(isinstance(item, int) for item in value)
        )
        return self._checked(attribute, value, good, "a list of integers")

    def numbers(self, attribute: str) -> list[float]:
        """An attribute of several numbers, none when the node does not have it."""
        value = self.node.attributes.get(attribute, [])
        good = isinstance(value, list) and all(isinstance(item, int | float) for item in value)
        return self._checked(attribute, value, good, "a list of numbers")

    def _checked(self, attribute: str, value: Any, good: bool, what: str) -> Any:
        if not good:
            raise self.fail(f"needs {what} as attribute {attribute!r}, got {value!r}")
        return value

    def fail(self, text: str) -> CompileError:
        """An error about this node, to be raised by the caller."""
        return self.node.fail(text)

    def given(self, index: int) -> Symbol | None:
        """Argument `index`, None when it is left out."""
        return self.args[index] if index < len(self.args) else None

    def need(self, index: int) -> Symbol:
        """Argument `index`; fails when it is left out."""
        symbol = self.given(index)
        if symbol is None:
            raise self.fail(f"needs input {index}, got none")
        return symbol

    def named(self, index: int) -> str:
        """Name of argument `index` for an error text."""
        inputs = self.node.inputs
        return f"tensor {inputs[index]!r}" if index < len(inputs) else f"input {index}"

    def array(self, index: int) -> npt.NDArray[Any] | None:
        """Constant argument `index` as an array, None when left out; fails when not constant."""
        symbol = self.given(index)
        if symbol is None:
            return None
        if isinstance(symbol, Const):
            return symbol.array
        if isinstance(symbol, ConstReal):
            return symbol.real()
        raise self.fail(f"needs a constant as {self.named(index)}, got one computed at run time")

    def integers(self, index: int) -> list[int] | None:
        """Constant integer argument `index`, None when left out."""
        array = self.array(index)
        if array is None:
            return None
        if array.dtype.kind not in "iu" or array.ndim > 1:
            raise self.fail(
                f"needs a list of integers as {self.named(index)}, got {array.dtype}"
                f" of shape {list(array.shape)}"
            )
        return [int(v) for v in array.reshape(-1)]

    def tensor(self, index: int) -> Tensor:
        """Argument `index` as a value of the graph."""
        return self.builder.tensor(self.need(index), self.node.name)

    def real(self, symbol: Symbol) -> Tensor:
        """A symbol as a float32 value of the graph."""
        tensor = self.builder.tensor(symbol, self.node.name)
        if tensor.type.dtype != "float32":
            raise self.fail(f"needs float32 or quantized inputs, got {tensor.type.dtype}")
        return tensor

    def pending(self, op: Requantizing) -> Pending:
        """`op` waiting for its output scale; fails when its arguments do not fit."""
        return Pending(op=op, shape=self.builder.type_of(op).shape)

    def value_name(self, symbol: Symbol) -> str:
        """Name of the value that an operator computes from `symbol`, an argument of this node.

        The node's result if that is a tensor; codes behind a real number get a name of their own.
        """
        if isinstance(symbol, Tensor):
            return self.output
        return self.builder.unique(f"{self.output}.codes")

    def reshape(self, tensor: Tensor, shape: tuple[int, ...], name: str | None = None) -> Tensor:
        """The same elements in another shape."""
        if tensor.shape == shape:
            return tensor
        output = name or self.builder.unique(f"{tensor.name}.view")
        inputs = (tensor.name,)
        return self.builder.emit(
            Reshape(name=self.node.name, inputs=inputs, output=output, shape=shape)
        )

    def transpose(self, tensor: Tensor, perm: tuple[int, ...], name: str | None = None) -> Tensor:
        """Axes in another order."""
        if perm == tuple(range(len(perm))):
            return tensor
        output = name or self.builder.unique(f"{tensor.name}.transposed")
        inputs = (tensor.name,)
        return self.builder.emit(
            Transpose(name=self.node.name, inputs=inputs, output=output, perm=perm)
        )

    def float_op(
        self,
        function: str,
        inputs: tuple[Tensor, ...],
        shape: tuple[int, ...],
        *,
        attributes: dict[str, Any] | None = None,
        output: str | None = None,
        macs: int = 0,
        dtype: str = "float32",
    ) -> Tensor:
        """An operator of a float island; its result is the node's by default."""
        return self.builder.emit(
            FloatOp(
                name=self.node.name,
                inputs=tuple(t.name for t in inputs),
                output=output or self.output,
                function=function,
                shape=shape,
                attributes=attributes or {},
                macs=macs,
                dtype=dtype,
            )
        )
