"""What an import function sees of one node."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt

from vitral.compiler.frontends.tflite.builder import Builder, Value
from vitral.compiler.frontends.tflite.fixed_point import activation_bounds, activation_codes
from vitral.compiler.frontends.tflite.model import Model, Node, TensorRecord
from vitral.compiler.frontends.tflite.states import States
from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import Op
from vitral.compiler.passes.law import code_bounds
from vitral.errors import CompileError
from vitral.isa import Rounding

__all__ = ["ROUNDINGS", "Scope", "TfliteRounding", "hint"]

Array = npt.NDArray[Any]

TfliteRounding = Literal["reference", "double", "single", "xnnpack"]
ROUNDINGS: tuple[TfliteRounding, ...] = ("reference", "double", "single", "xnnpack")
"""Whose bytes are wanted; see `vitral.compile`."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """A node with its tensors; `values` are those known so far, by index of the tensor."""

    model: Model
    node: Node
    values: dict[int, Value]
    builder: Builder
    states: States
    rounding: TfliteRounding

    def fail(self, text: str) -> CompileError:
        """An error about the node, to be raised by the caller."""
        return self.node.fail(text)

    @property
    def output(self) -> TensorRecord:
        """The first result."""
        return self.model.tensors[self.node.outputs[0]]

    @property
    def name(self) -> str:
        """What operators made for the node are called: its first result's name."""
        return self.output.name

    def has(self, index: int) -> bool:
        """Whether an optional input is there."""
        return index < len(self.node.inputs) and self.node.inputs[index] >= 0

    def tensor(self, index: int) -> TensorRecord:
        """Input `index` as the model describes it."""
        if not self.has(index):
            raise self.fail(f"needs input {index}, got {len(self.node.inputs)} inputs")
        return self.model.tensors[self.node.inputs[index]]

    def array(self, index: int) -> Array:
        """The data of an input that must be constant."""
        tensor = self.tensor(index)
        if tensor.array is None:
            raise self.fail(f"needs constant data in tensor {tensor.name!r}, got a computed one")
        return tensor.array

    def integers(self, index: int) -> list[int]:
        """A constant list of integers."""
        array = self.array(index)
        if array.dtype.kind not in "iu":
            raise self.fail(f"needs integers in {self.tensor(index).name!r}, got {array.dtype}")
        return [int(v) for v in array.reshape(-1)]

    def value(self, index: int) -> Value:
        """Input `index` as a value of the graph."""
        tensor = self.tensor(index)
        if tensor.index not in self.values:
            if tensor.array is None:
                raise self.fail(f"tensor {tensor.name!r} is read before anything computes it")
            self.values[tensor.index] = self.builder.constant(tensor.name, tensor.array)
        return self.values[tensor.index]

    def image(self, index: int) -> Value:
        """Input `index`, of rank 4, as (N, C, H, W)."""
        value = self.value(index)
        if len(value.shape) != 4:
            raise self.fail(
                f"needs a tensor of rank 4 as {self.tensor(index).name!r}, got {list(value.shape)}"
            )
        return self.builder.image(value, self.name)

    def plain(self, index: int) -> Value:
        """Input `index` in the model's order."""
        return self.builder.plain(self.value(index), self.name)

    def quant(self, index: int) -> Quant:
        """Scale and zero point of an int8 input."""
        return self.codes(self.tensor(index))

    @property
    def y_quant(self) -> Quant:
        """Scale and zero point of the int8 result."""
        return self.codes(self.output)

    def codes(self, tensor: TensorRecord) -> Quant:
        """The affine map of an int8 tensor with one scale."""
        if tensor.dtype != "int8" or tensor.quant is None:
            shown = tensor.dtype if tensor.dtype != "int8" else "int8 without scales"
            raise self.fail(
                f"needs int8 with a scale as tensor {tensor.name!r}, got {shown}{hint(tensor)}"
            )
        if tensor.quant.axis is not None:
            count = len(tensor.quant.scale)
            raise self.fail(f"needs one scale for tensor {tensor.name!r}, got {count}")
        return tensor.quant

    @property
    def mode(self) -> Rounding:
        """How fixed point rounds; where XNNPACK leaves an operator to them, as other kernels."""
        return Rounding.HALF_UP if self.rounding == "single" else Rounding.DOUBLE

    def clamp(self) -> tuple[int, int]:
        """Lowest and highest code behind the fused activation; XNNPACK rounds ties to even."""
        activation = self.integer("FusedActivationFunction")
        try:
            if self.rounding == "xnnpack":
                return code_bounds(self.y_quant, activation_bounds(activation))
            return activation_codes(self.y_quant, activation)
        except ValueError as error:
            raise self.fail(f"needs {error}") from None

    def integer(self, field: str, default: int = 0) -> int:
        """An option of the node."""
        return int(self.node.options.get(field, default))

    def number(self, field: str, default: float = 0.0) -> float:
        """A real option of the node."""
        return float(self.node.options.get(field, default))

    def image_name(self) -> str:
        """A name for the result as (N, C, H, W)."""
        return self.builder.unique(f"{self.output.name}.nchw")

    def emit_image(self, op: Op) -> Value:
        """Append an operator whose result is the node's, as (N, C, H, W)."""
        n, c, h, w = self.builder.emit(op).shape
        return Value(name=op.output, shape=(n, h, w, c), dtype=self.output.dtype, image=True)

    def emit_plain(self, op: Op) -> Value:
        """Append an operator whose result is the node's, in the model's order."""
        shape = self.builder.emit(op).shape
        return Value(name=op.output, shape=shape, dtype=self.output.dtype)

    def like(self, value: Value) -> str:
        """A name for a result that lies as `value` does."""
        return self.image_name() if value.image else self.output.name

    def emit_like(self, value: Value, op: Op) -> Value:
        """Append an operator whose result lies as `value` does."""
        return self.emit_image(op) if value.image else self.emit_plain(op)


def hint(tensor: TensorRecord) -> str:
    """What to do about a tensor of reals where codes are needed."""
    return "; quantize the network to int8 first" if tensor.dtype.startswith("float") else ""
