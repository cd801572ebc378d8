"""Sigmoid, Tanh and their kin of quantized values, from correctly rounded tables.

The argument (q - zero point) * scale is an exact decimal and the function is evaluated with 120
significant digits (about 400 bits), so the one rounding to the output is that of the real value.
x * Sigmoid(x) of one quantized tensor is such a function as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import partial

import numpy as np
import numpy.typing as npt

from oracle.errors import OracleError
from oracle.graph import Node
from oracle.qdq import quantized_input, quantized_output
from oracle.rounding import saturate
from oracle.values import (
    Array,
    Dequantized,
    Params,
    Pending,
    Unrounded,
    Value,
    materialise,
    quantize,
)

__all__ = ["OPERATORS", "Tabulated", "times_argument"]

_CONTEXT = Context(prec=120, rounding=ROUND_HALF_EVEN)
_LARGEST = Decimal(10**4)
_HUGE = Decimal(float(np.finfo(np.float32).max))
_HALF = Decimal(1) / 2


@dataclass(frozen=True, kw_only=True)
class Tabulated(Pending):
    """function(total * scale); `total` holds integers of few distinct values.

    `source` is the quantized tensor that `total` was read from.
    """

    scale: np.float32
    function: Callable[[Decimal], Decimal]
    source: Dequantized

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
    return _CONTEXT.divide(Decimal(1), _CONTEXT.add(1, _CONTEXT.exp(_CONTEXT.minus(limited))))


def tanh(x: Decimal) -> Decimal:
    """2 sigmoid(2 x) - 1, with enough digits left after the cancellation near 0."""
    if not x:
        return Decimal(0)
    limited = max(min(x, _LARGEST), -_LARGEST)
    power = _CONTEXT.exp(_CONTEXT.multiply(2, limited))
    return _CONTEXT.divide(_CONTEXT.subtract(power, 1), _CONTEXT.add(power, 1))


def times_argument(value: Value | None, x: Value | None) -> Tabulated | None:
    """The product of function(x) and its own argument x as one function, None for anything else."""
    if not isinstance(value, Tabulated) or not isinstance(x, Dequantized):
        return None
    if value.source.data is not x.data or x.params.axis is not None:
        return None
    if value.source.params != x.params:
        return None
    inner, bounds = value.function, value.bounds

    def product(real: Decimal) -> Decimal:
        result = inner(real)
        for low, high in bounds:
            result = min(max(result, Decimal(float(low))), Decimal(float(high)))
        return _CONTEXT.multiply(real, result)

    return replace(value, function=product, bounds=())


def _exp(x: Decimal) -> Decimal:
    return _CONTEXT.exp(max(min(x, _LARGEST), -_LARGEST))


def _softplus(x: Decimal) -> Decimal:
    return (
        _CONTEXT.ln(_CONTEXT.add(1, _exp(x)))
        if x < 200
        else _CONTEXT.add(x, _exp(_CONTEXT.minus(x)))
    )


def _mish(x: Decimal) -> Decimal:
    return _CONTEXT.multiply(x, tanh(_softplus(x)))


def _erf(x: Decimal) -> Decimal:
    """The alternating power series, with digits to spare for its largest term, exp(x * x)."""
    if abs(x) > 12:
        return Decimal(1).copy_sign(x)
    wide = Context(prec=160)
    square = wide.multiply(x, x)
    power = total = x
    n = 0
    while power and abs(power) > Decimal(10) ** -90:
        n += 1
        power = wide.divide(wide.multiply(wide.minus(power), square), n)
        total = wide.add(total, wide.divide(power, 2 * n + 1))
    return _CONTEXT.divide(_CONTEXT.multiply(2, total), _CONTEXT.sqrt(_pi()))


def _pi() -> Decimal:
    """The arithmetic-geometric mean of Gauss and Legendre."""
    wide = Context(prec=150)
    a, b, t, p = Decimal(1), wide.sqrt(_HALF), Decimal(1) / 4, Decimal(1)
    for _ in range(8):
        following = wide.multiply(wide.add(a, b), _HALF)
        b = wide.sqrt(wide.multiply(a, b))
        change = wide.subtract(a, following)
        t = wide.subtract(t, wide.multiply(p, wide.multiply(change, change)))
        a, p = following, wide.multiply(2, p)
    total = wide.add(a, b)
    return wide.divide(wide.multiply(total, total), wide.multiply(4, t))


def _gelu(x: Decimal) -> Decimal:
    inner = _erf(_CONTEXT.divide(x, _CONTEXT.sqrt(Decimal(2))))
    return _CONTEXT.multiply(_CONTEXT.multiply(x, _HALF), _CONTEXT.add(1, inner))


def _gelu_tanh(x: Decimal) -> Decimal:
    root = _CONTEXT.sqrt(_CONTEXT.divide(2, _pi()))
    cube = _CONTEXT.multiply(Decimal("0.044715"), _CONTEXT.power(x, 3))
    inner = tanh(_CONTEXT.multiply(root, _CONTEXT.add(x, cube)))
    return _CONTEXT.multiply(_CONTEXT.multiply(x, _HALF), _CONTEXT.add(1, inner))


def _elu(x: Decimal, alpha: Decimal, gamma: Decimal = Decimal(1)) -> Decimal:
    inner = x if x > 0 else _CONTEXT.multiply(alpha, _CONTEXT.subtract(_exp(x), 1))
    return _CONTEXT.multiply(gamma, inner)


def _celu(x: Decimal, alpha: Decimal) -> Decimal:
    return x if x > 0 else _elu(_CONTEXT.divide(x, alpha), alpha)


def _swish(x: Decimal, alpha: Decimal) -> Decimal:
    return _CONTEXT.multiply(x, sigmoid(_CONTEXT.multiply(alpha, x)))


def _unary(
    function: Callable[..., Decimal], **defaults: float
) -> Callable[[Node, Sequence[Value | None]], Value]:
    def operator(node: Node, args: Sequence[Value | None]) -> Value:
        x = args[0]
        if x is None:
            raise node.fail("needs an input, got an empty name")
        numbers = {k: Decimal(float(np.float32(node.get(k, v)))) for k, v in defaults.items()}
        chosen = partial(_chosen_gelu(node) if function is _gelu else function, **numbers)
        if not isinstance(x, Dequantized):
            return _island(materialise(x), chosen)
        scale = x.tensor_scale(node.where)
        return Tabulated(total=x.centred(), scale=scale, function=chosen, source=x)

    return operator


def _chosen_gelu(node: Node) -> Callable[[Decimal], Decimal]:
    return _gelu_tanh if node.get("approximate", "none") == "tanh" else _gelu


def _island(x: Array, function: Callable[[Decimal], Decimal]) -> Array:
    """A float island: the float32 nearest to the real value."""
    values, inverse = np.unique(x, return_inverse=True)
    results = [float(min(max(function(Decimal(float(v))), -_HUGE), _HUGE)) for v in values]
    return np.array(results).astype(np.float32)[inverse].reshape(x.shape)


def _qlinear_sigmoid(node: Node, args: Sequence[Value | None]) -> Value:
    x = quantized_input(node, args, 0)
    params = quantized_output(node, args, 3, x.data.dtype)
    value = Tabulated(
        total=x.centred(), scale=x.tensor_scale(node.where), function=sigmoid, source=x
    )
    return quantize(value, params, node.unrounded)


_SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}
OPERATORS = {
    ("", "Sigmoid"): _unary(sigmoid),
    ("", "Tanh"): _unary(tanh),
    ("", "Exp"): _unary(_exp),
    ("", "Erf"): _unary(_erf),
    ("", "Softplus"): _unary(_softplus),
    ("", "Mish"): _unary(_mish),
    ("", "Swish"): _unary(_swish, alpha=1.0),
    ("", "Elu"): _unary(_elu, alpha=1.0),
    ("", "Celu"): _unary(_celu, alpha=1.0),
    ("", "Selu"): _unary(_elu, **_SELU),
    ("", "Gelu"): _unary(_gelu),
    ("com.microsoft", "Gelu"): _unary(_gelu),
    ("com.microsoft", "QuickGelu"): _unary(_swish, alpha=1.702),
    ("com.microsoft", "QLinearSigmoid"): _qlinear_sigmoid,
}
