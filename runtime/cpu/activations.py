"""Element-wise float32 operators of one argument.

Those of IEEE steps are op by op in float32 and define the results on quantized tensors too. The
others are taken in float64 and rounded to float32 once.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.floating]


def _clip(x: Array, *, low: float | None = None, high: float | None = None) -> Float32:
    """min(max(x, low), high); None is open."""
    if low is not None:
        x = np.maximum(x, np.float32(low))
    return x if high is None else np.minimum(x, np.float32(high))


def _leaky_relu(x: Array, *, alpha: float) -> Float32:
    return np.where(x >= 0, x, x * np.float32(alpha))


def _thresholded_relu(x: Array, *, alpha: float) -> Float32:
    return np.where(x > np.float32(alpha), x, np.float32(0))


def _hard_sigmoid(x: Array, *, alpha: float, beta: float) -> Float32:
    """max(0, min(1, alpha x + beta))."""
    line = x * np.float32(alpha) + np.float32(beta)
    return np.maximum(np.float32(0), np.minimum(np.float32(1), line))


def _hard_swish(x: Array) -> Float32:
    return x * _hard_sigmoid(x, alpha=1 / 6, beta=0.5)


def _softsign(x: Array) -> Array:
    return x / (np.float32(1) + np.abs(x))


def _reciprocal(x: Array) -> Array:
    return np.float32(1) / x


def _wide(function: Callable[..., Float64]) -> Callable[..., Float32]:
    """The function in float64, rounded to float32; what overflows is infinite."""

    def operator(x: Array, **attributes: float) -> Float32:
        with np.errstate(over="ignore", under="ignore"):
            return function(x.astype(np.float64), **attributes).astype(np.float32)

    return operator


def _sigmoid(x: Float64) -> Float64:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _softplus(x: Float64) -> Float64:
    return np.logaddexp(0.0, x)


def _elu(x: Float64, *, alpha: float) -> Float64:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _selu(x: Float64, *, alpha: float, gamma: float) -> Float64:
    return gamma * _elu(x, alpha=alpha)


def _celu(x: Float64, *, alpha: float) -> Float64:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


def _swish(x: Float64, *, alpha: float) -> Float64:
    return x * _sigmoid(alpha * x)


def _mish(x: Float64) -> Float64:
    return x * np.tanh(_softplus(x))


def _erf(x: Float64) -> Float64:
    flat = np.fromiter((math.erf(v) for v in x.reshape(-1)), np.float64, x.size)
    return flat.reshape(x.shape)


def _gelu(x: Float64) -> Float64:
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def _gelu_tanh(x: Float64) -> Float64:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


OPERATORS = {
    "float.clip": _clip,
    "float.leaky_relu": _leaky_relu,
    "float.thresholded_relu": _thresholded_relu,
    "float.hard_sigmoid": _hard_sigmoid,
    "float.hard_swish": _hard_swish,
    "float.softsign": _softsign,
    "float.abs": np.abs,
    "float.neg": np.negative,
    "float.sqrt": np.sqrt,
    "float.reciprocal": _reciprocal,
    "float.floor": np.floor,
    "float.ceil": np.ceil,
    "float.round": np.rint,
    "float.sign": np.sign,
    "float.sigmoid": _wide(_sigmoid),
    "float.tanh": _wide(np.tanh),
    "float.exp": _wide(np.exp),
    "float.erf": _wide(_erf),
    "float.softplus": _wide(_softplus),
    "float.mish": _wide(_mish),
    "float.swish": _wide(_swish),
    "float.elu": _wide(_elu),
    "float.celu": _wide(_celu),
    "float.selu": _wide(_selu),
    "float.gelu": _wide(_gelu),
    "float.gelu_tanh": _wide(_gelu_tanh),
}
"""float.<function>(x), each with its numbers by keyword."""
