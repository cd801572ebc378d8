"""Sigmoid and Tanh of quantized values, from correctly rounded tables.

The argument (q - zero point) * scale is an exact rational and the function is evaluated with 60
significant digits (about 200 bits), so the one rounding to the output is that of the real value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np
import numpy.typing as npt

from oracle.errors import OracleError
from oracle.graph import Node
from oracle.rounding import saturate
from oracle.values import Array, Dequantized, Params, Pending, Unrounded, Value, materialise

__all__ = ["OPERATORS", "Tabulated"]

_CONTEXT = Context(prec=60, rounding=ROUND_HALF_EVEN)
_LARGEST = Decimal(10**4)


@dataclass(frozen=True, kw_only=True)
class Tabulated(Pending):
    """function(total * scale); `total` holds integers of few distinct values."""

    scale: np.float32
    function: Callable[[Decimal], Decimal]

    def exact_real(self) -> npt.NDArray[np.float32]:
        return self._mapped(lambda real: float(real), np.dtype(np.float64)).astype(np.float32)

    def rounded(self, params: Params, unrounded: Unrounded | None) -> Array:
        """y = sat(rne(f(total * xs) / ys) + yz) of real numbers."""
        if params.axis is not None:
            raise OracleError(f"table: needs one output scale, got {params.scale.size}")
        out_scale = Decimal(float(params.scale))

        def steps(real: Decimal) -> Decimal:
            return max(min(_CONTEXT.divide(real, out_scale), _LARGEST), -_LARGEST)

        if unrounded is not None:
            unrounded(self._mapped(lambda real: float(steps(real)), np.dtype(np.float64)))
        result = self._mapped(
            lambda real: int(steps(real).to_integral_value(ROUND_HALF_EVEN)), np.dtype(np.int64)
        )
        return saturate(result, params.zero_point, params.dtype)

    def _mapped(
        self, finish: Callable[[Decimal], int | float], dtype: np.dtype[np.generic]
    ) -> Array:
        totals, inverse = np.unique(self.total, return_inverse=True)
        scale = Decimal(float(self.scale))
        entries = [finish(self.function(_CONTEXT.multiply(Decimal(int(t)), scale))) for t in totals]
        return np.array(entries, dtype=dtype)[inverse].reshape(self.total.shape)


def sigmoid(x: Decimal) -> Decimal:
    """1 / (1 + exp(-x)); arguments beyond 10^4 count as 10^4."""
    limited = max(min(x, _LARGEST), -_LARGEST)
    return _CONTEXT.divide(Decimal(1), _CONTEXT.add(1, _CONTEXT.exp(-limited)))


def tanh(x: Decimal) -> Decimal:
    """2 sigmoid(2 x) - 1, with enough digits left after the cancellation near 0."""
    if not x:
        return Decimal(0)
    limited = max(min(x, _LARGEST), -_LARGEST)
    power = _CONTEXT.exp(_CONTEXT.multiply(2, limited))
    return _CONTEXT.divide(_CONTEXT.subtract(power, 1), _CONTEXT.add(power, 1))


def _unary(
    function: Callable[[Decimal], Decimal], real: Callable[[Array], Array]
) -> Callable[[Node, Sequence[Value | None]], Value]:
    def operator(node: Node, args: Sequence[Value | None]) -> Value:
        x = args[0]
        if x is None:
            raise node.fail("needs an input, got an empty name")
        if not isinstance(x, Dequantized):
            return real(materialise(x).astype(np.float64)).astype(np.float32)
        scale = x.tensor_scale(node.where)
        return Tabulated(total=x.centred(), scale=scale, function=function)

    return operator


def _real_sigmoid(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * x))


OPERATORS = {
    ("", "Sigmoid"): _unary(sigmoid, _real_sigmoid),
    ("", "Tanh"): _unary(tanh, np.tanh),
}
