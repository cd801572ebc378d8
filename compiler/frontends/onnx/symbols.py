"""What a tensor name of the model stands for while it is imported.

A float tensor between DequantizeLinear and QuantizeLinear is not computed. It is carried in the
exact form it came from until a QuantizeLinear (or a float operator) asks for it, so that a group
DQ -> op -> [Relu | Clip] -> Q needs no pattern matching: the symbols compose.

    Const        an array known at compile time
    ConstReal    constant integers behind a DequantizeLinear
    Tensor       a value of the graph
    Real         a quantized value of the graph seen through a function of its 256 codes
    Pending      a result that has not been rounded
    Joined       Reals one after the other along an axis
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Quant, TensorType
from vitral.compiler.ir.ops import Requantizing

__all__ = ["Const", "ConstReal", "Joined", "Pending", "Real", "Symbol", "Tensor"]

Array = npt.NDArray[Any]
UnaryFunction = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Const:
    """An array known at compile time."""

    array: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


@dataclass(frozen=True, kw_only=True, eq=False)
class ConstReal:
    """Constant integers that mean (codes - zero point) * scale."""

    codes: Array
    quant: Quant

    @property
    def shape(self) -> tuple[int, ...]:
        return self.codes.shape

    def real(self) -> npt.NDArray[np.float32]:
        """Dequantized in IEEE float32."""
        return self.quant.real(self.codes)


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A value of the graph."""

    name: str
    type: TensorType

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape


@dataclass(frozen=True, kw_only=True, eq=False)
class Real:
    """table[code] of a quantized `tensor`; `quant` when the table is its plain dequantization.

    `table` holds float32 for all 256 codes in ascending order. Element-wise operators of one
    argument map the table, in the very float32 arithmetic that they would do on the tensor.
    """

    tensor: Tensor
    table: npt.NDArray[np.float32]
    quant: Quant | None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    def mapped(self, function: UnaryFunction) -> "Real":
        """The same tensor seen through one more element-wise function."""
        return replace(self, table=function(self.table), quant=None)

    @property
    def monotone(self) -> bool:
        """Whether larger codes mean larger or equal reals."""
        return bool((np.diff(self.table) >= 0).all())


@dataclass(frozen=True, kw_only=True, eq=False)
class Pending:
    """The result of `op` before its rounding; `op.output` and `op.y_quant` are not set yet.

    `shape` is the result's for the model; it is a view of the shape that `op` gives.
    """

    op: Requantizing
    shape: tuple[int, ...]

    def clamped(self, low: float, high: float) -> "Pending":
        """The same result clamped after all earlier clamps."""
        return replace(self, op=replace(self.op, bounds=(*self.op.bounds, (low, high))))


@dataclass(frozen=True, kw_only=True, eq=False)
class Joined:
    """Reals one after the other along `axis`."""

    parts: tuple[Real, ...]
    axis: int
    shape: tuple[int, ...]

    def mapped(self, function: UnaryFunction) -> "Joined":
        """All parts seen through one more element-wise function."""
        return replace(self, parts=tuple(part.mapped(function) for part in self.parts))


Symbol = Const | ConstReal | Tensor | Real | Pending | Joined
