"""What a tensor name of the model stands for while it is imported.

A float tensor between DequantizeLinear and QuantizeLinear is not computed. It is carried in the
exact form it came from until a QuantizeLinear (or a float operator) asks for it, so that a group
DQ -> op -> [Relu | Clip] -> Q needs no pattern matching: the symbols compose.

    Const        an array known at compile time
    ConstReal    constant integers behind a DequantizeLinear
    Tensor       a value of the graph
    Real         a quantized value of the graph seen through a function of its 256 codes
    Channeled    the same with a function for each channel
    Pending      a result that has not been rounded
    Joined       Reals one after the other along an axis
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Quant, TensorType
from vitral.compiler.ir.ops import Requantizing

__all__ = ["Channeled", "Const", "ConstReal", "Joined", "Pending", "Real", "Symbol", "Tensor"]

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

    `exact`, where known, holds the real results of a function that float32 can only approximate;
    `table` has the float32 nearest to each. A quantizer rounds the real numbers, once.
    """

    tensor: Tensor
    table: npt.NDArray[np.float32]
    quant: Quant | None
    exact: tuple[Fraction, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    def mapped(self, function: UnaryFunction) -> "Real":
        """The same tensor seen through one more element-wise function."""
        table = np.asarray(function(self.table), np.float32)
        return replace(self, table=table, quant=None, exact=None)

    def fractions(self) -> tuple[Fraction, ...] | None:
        """All 256 real numbers; of the codes themselves where that is known, None if not finite."""
        if self.exact is not None:
            return self.exact
        if self.quant is not None:
            scale, zero = Fraction(self.quant.tensor_scale), self.quant.tensor_zero
            return tuple((code - zero) * scale for code in self.quant.codes().tolist())
        if not np.isfinite(self.table).all():
            return None
        return tuple(Fraction(value) for value in self.table.tolist())

    def clamped(self, low: float, high: float) -> "Real":
        """The same function clamped; infinite where open."""
        clipped = replace(self, table=np.clip(self.table, np.float32(low), np.float32(high)))
        if self.exact is None:
            return replace(clipped, quant=None)
        least, most = (None if np.isinf(edge) else Fraction(edge) for edge in (low, high))
        exact = tuple(
            x if most is None else min(x, most)
            for x in (x if least is None else max(x, least) for x in self.exact)
        )
        return replace(clipped, exact=exact)

    @property
    def monotone(self) -> bool:
        """Whether larger codes mean larger or equal reals."""
        return bool((np.diff(self.table) >= 0).all())


@dataclass(frozen=True, kw_only=True, eq=False)
class Channeled:
    """tables[c][code] of a quantized `tensor`, c the index along `axis`: a function per channel.

    `tables` is float32 (C, 256), codes in ascending order.
    """

    tensor: Tensor
    tables: npt.NDArray[np.float32]
    axis: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    def mapped(self, function: UnaryFunction) -> "Channeled":
        """The same tensor seen through one more element-wise function."""
        return replace(self, tables=np.asarray(function(self.tables), np.float32))


@dataclass(frozen=True, kw_only=True, eq=False)
class Pending:
    """The result of `op` before its rounding; `op.output` and `op.y_quant` are not set yet.

    `shape` is the result's for the model: a view of the shape that `op` gives, or what `finish`
    makes of the rounded value, to be named by its second argument.
    """

    op: Requantizing
    shape: tuple[int, ...]
    finish: Callable[[Tensor, str], Tensor] | None = None

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


Symbol = Const | ConstReal | Tensor | Real | Channeled | Pending | Joined
