"""A random quantized graph in the making: tensors with scales, constants, and the form of nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from cases import ModelBuilder

__all__ = ["CONTRIB", "Array", "Network", "Operand", "Tensor"]

Array = npt.NDArray[Any]
CONTRIB = "com.microsoft"
_TYPES = (np.int8, np.uint8)
_STANDARD = ("QLinearConv", "QLinearMatMul")


@dataclass(frozen=True)
class Tensor:
    """A quantized tensor; `spread` is about the standard deviation of its real values."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    scale: np.float32
    zero: int
    spread: float


@dataclass(frozen=True)
class Operand:
    """Names of codes, scale and zero point; the axis of the scales when there are several."""

    names: Sequence[str]
    axis: int | None = None


class _Builder(ModelBuilder):
    """Also makes nodes of several results."""

    def __init__(self, opset: int) -> None:
        super().__init__(opset=opset, contrib=True)
        self.opset = opset

    def nodes(self, op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        self._nodes.append(
            onnx.helper.make_node(op, inputs, outputs, name=f"{outputs[0]}_{op}", **attributes)
        )


class Network:
    """Grows a model, one group of operators at a time.

    Half of the scales are powers of two, so that many results lie exactly between two codes. With
    `qdq_only`, nodes of the QOperator form are written as DequantizeLinear, operator,
    QuantizeLinear; all else is the same, tensor names included.

    `slack` maps a tensor to what may be added to the band of its comparison with onnxruntime, in
    steps: biases that are no whole number of accumulator units are rounded at compile time.
    """

    def __init__(self, seed: int, *, qdq_only: bool = False) -> None:
        self.rng = np.random.default_rng([seed, 0xF022])
        self.builder = _Builder(self.pick(13, 19, 21))
        self.inputs: dict[str, tuple[Any, tuple[int | str, ...]]] = {}
        self.feeds: dict[str, Array] = {}
        self.tensors: list[Tensor] = []
        self.others: dict[str, tuple[Any, tuple[int, ...]]] = {}
        self.slack: dict[str, float] = {}
        self.qdq_only = qdq_only
        self._tensors = self._helpers = 0

    def fresh(self, stem: str) -> str:
        """A new name of a quantized tensor; both forms of a graph use up the same ones."""
        self._tensors += 1
        return f"{stem}{self._tensors}"

    def helper(self, stem: str) -> str:
        """A new name of a constant or float tensor."""
        self._helpers += 1
        return f"{stem}.{self._helpers}"

    def pick(self, *values: Any) -> Any:
        """One of `values`."""
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)

    def number(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def scale(self, near: float) -> np.float32:
        """A scale of about this size."""
        if self.chance():
            return np.float32(2.0 ** np.rint(np.log2(near)))
        return np.float32(near * self.rng.uniform(0.75, 1.3))

    def result(self, name: str, shape: tuple[int, ...], spread: float) -> Tensor:
        """A tensor of random type, with parameters that fit real values of `spread`."""
        dtype = self.pick(*_TYPES)
        middle = 128 if dtype is np.uint8 else 0
        zero = self.pick(middle, middle + self.number(-40, 40), self.pick(0, 1) * middle)
        tensor = Tensor(name, shape, dtype, self.scale(spread / 40), zero, spread)
        self.tensors.append(tensor)
        return tensor

    def like(self, x: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
        """A tensor of another shape with the parameters of `x`."""
        tensor = replace(x, name=name, shape=shape)
        self.tensors.append(tensor)
        return tensor

    def image(self, shape: tuple[int, ...]) -> Tensor:
        """A new graph input."""
        tensor = self.result(self.fresh("x"), shape, 1.0)
        self.inputs[tensor.name] = (tensor.dtype, shape)
        self.feeds[tensor.name] = self.codes(shape, tensor.dtype)
        return tensor

    def codes(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """All codes of the type."""
        limits = np.iinfo(dtype)
        return self.rng.integers(limits.min, limits.max + 1, shape).astype(dtype)

    def constant(self, stem: str, value: Any, dtype: Any = None) -> str:
        return self.builder.constant(self.helper(stem), value, dtype)

    def parameters(self, tensor: Tensor) -> list[str]:
        """Names of scale and zero point."""
        scale = self.builder.scale(self.helper("scale"), tensor.scale)
        return [scale, self.constant("zero", np.array(tensor.zero, tensor.dtype))]

    def triple(self, tensor: Tensor) -> list[str]:
        """Data, scale and zero point as a QLinear operator takes them."""
        return [tensor.name, *self.parameters(tensor)]

    def real(self, tensor: Tensor) -> str:
        """A DequantizeLinear of the tensor."""
        names = self.triple(tensor)
        return self.builder.node("DequantizeLinear", names, self.helper("real"))

    def node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        """A node with a float result; returns the result's name."""
        return self.builder.node(op, inputs, self.helper(op.lower()), **attributes)

    def rounded(self, source: str, tensor: Tensor) -> Tensor:
        """A QuantizeLinear that makes the tensor."""
        names = [source, *self.parameters(tensor)]
        self.builder.node("QuantizeLinear", names, tensor.name)
        return tensor

    def fused(
        self,
        op: str,
        operands: Sequence[Operand],
        y: Tensor,
        *,
        bias: Operand | None = None,
        **attributes: Any,
    ) -> Tensor:
        """An operator that reads and makes codes, with the scale and zero point of each.

        A bias is given with its scale, which only the other form writes.
        """
        if self.qdq_only:
            reals = [self.dequantized(o) for o in (*operands, *([] if bias is None else [bias]))]
            plain = "Gemm" if op == "QGemm" else op.removeprefix("QLinear")
            return self.rounded(self.node(plain, reals, **attributes), y)
        names = [name for operand in operands for name in operand.names]
        added = [] if bias is None else [bias.names[0]]
        if op == "QLinearConcat":
            names = [*self.parameters(y), *names]
        elif op == "QGemm":
            names = [*names, *(added or [""]), *self.parameters(y)]
        else:
            names = [*names, *self.parameters(y), *added]
        domain = "" if op in _STANDARD else CONTRIB
        self.builder.node(op, names, y.name, domain=domain, **attributes)
        return y

    def dequantized(self, operand: Operand) -> str:
        """A DequantizeLinear of an operand."""
        attributes = {} if operand.axis is None else {"axis": operand.axis}
        return self.node("DequantizeLinear", list(operand.names), **attributes)

    def activated(self, source: str, spread: float) -> str:
        """Nothing, a Relu, or a Clip with one or two bounds."""
        kind = self.pick("", "", "Relu", "Clip")
        if not kind:
            return source
        if kind == "Relu":
            return self.node("Relu", [source])
        low = self.constant("low", -spread * self.rng.uniform(0, 1), np.float32)
        high = self.constant("high", spread * self.rng.uniform(0.5, 2), np.float32)
        return self.node("Clip", [source, *self.pick([low, high], [low], ["", high])])
