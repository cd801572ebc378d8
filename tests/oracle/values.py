"""What flows along an edge of the graph while it is evaluated.

A float tensor between DequantizeLinear and QuantizeLinear is not computed: it is carried in the
exact form it came from until the Q (or a float operator) asks for it. So a group DQ -> op ->
[Relu|Clip] -> Q needs no pattern matching; the values compose:

    ndarray       a tensor that exists in memory: int8, uint8, int32, float32, int64 ...
    Dequantized   integers with their scale and zero point: the output of a DQ
    Accumulated   exact integer sums of a Conv, Gemm or MatMul with their real scale per channel
    Averaged      exact integer sums with their element counts

The last two are `Pending`: they know how to round themselves once, for given output parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.errors import OracleError
from oracle.rounding import rne_ratio, saturate

__all__ = [
    "Accumulated",
    "Array",
    "Averaged",
    "Dequantized",
    "Params",
    "Pending",
    "Unrounded",
    "Value",
    "materialise",
    "quantize",
    "quantize_float",
]

Array = npt.NDArray[Any]
Unrounded = Callable[[Array], None]
Bound = tuple[np.float32, np.float32]


@dataclass(frozen=True, kw_only=True)
class Params:
    """Quantization parameters: scale float32 and zero point int64, both of shape () or (C,).

    `axis` is the non-negative axis that C belongs to, None for one scale per tensor.
    """

    scale: npt.NDArray[np.float32]
    zero_point: npt.NDArray[np.int64]
    dtype: np.dtype[Any]
    axis: int | None = None

    def along(self, ndim: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Scale and zero point shaped to broadcast with a tensor of `ndim` dimensions."""
        if self.axis is None:
            return self.scale, self.zero_point
        shape = [1] * ndim
        shape[self.axis] = -1
        return self.scale.reshape(shape), self.zero_point.reshape(shape)


@dataclass(frozen=True, kw_only=True)
class Dequantized:
    """Integers `data` that mean (data - zero point) * scale."""

    data: Array
    params: Params

    def centred(self) -> npt.NDArray[np.int64]:
        """data - zero point as int64."""
        return self.data.astype(np.int64) - self.params.along(self.data.ndim)[1]

    def real(self) -> npt.NDArray[np.float32]:
        """DequantizeLinear in IEEE float32."""
        scale, _ = self.params.along(self.data.ndim)
        return self.centred().astype(np.float32) * scale

    def tensor_scale(self, where: str) -> np.float32:
        """The one scale of the tensor; OracleError naming `where` when there are several."""
        if self.params.axis is not None:
            raise OracleError(f"{where}: needs one scale per tensor, got {self.params.scale.size}")
        return np.float32(self.params.scale)


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A real-valued result that has not been rounded; Relu and Clip only add to `bounds`."""

    total: npt.NDArray[np.int64]
    bounds: tuple[Bound, ...] = field(default=())

    def clamped(self, low: np.float32, high: np.float32) -> "Pending":
        """The same result clamped to [low, high] after all earlier clamps."""
        return replace(self, bounds=(*self.bounds, (low, high)))

    def real(self) -> npt.NDArray[np.float32]:
        """The result as float32, for a float operator or a float graph output."""
        value = self.exact_real()
        for low, high in self.bounds:
            value = np.minimum(np.maximum(value, low), high)
        return value

    def requantize(self, params: Params, unrounded: Unrounded | None) -> Array:
        """Round once, add the zero point, saturate, then clamp at the images of the bounds.

        QuantizeLinear is monotone, so clamping at the image of a bound equals quantizing the
        clamped real value.
        """
        result = self.rounded(params, unrounded)
        for low, high in self.bounds:
            lowest, highest = (quantize_float(np.array(b), params) for b in (low, high))
            result = np.minimum(np.maximum(result, lowest), highest)
        return result

    def exact_real(self) -> npt.NDArray[np.float32]:
        """Before the bounds, as float32."""
        raise NotImplementedError

    def rounded(self, params: Params, unrounded: Unrounded | None) -> Array:
        """Before the bounds, in `params`; passes the value before rounding to `unrounded`."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Accumulated(Pending):
    """total * scale; `scale` float32 = fl32(xs * ws[o]), broadcasts with `total`."""

    scale: npt.NDArray[np.float32]

    def exact_real(self) -> npt.NDArray[np.float32]:
        return self.total.astype(np.float32) * self.scale

    def rounded(self, params: Params, unrounded: Unrounded | None) -> Array:
        """y = sat(rne(fl32(fl32(A) * fl32(scale / ys))) + yz)."""
        out_scale, zero_point = params.along(self.total.ndim)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            multiplier = self.scale / out_scale
            scaled = self.total.astype(np.float32) * multiplier
        if not np.isfinite(scaled).all():
            raise OracleError(f"requantization: needs a finite multiplier, got {multiplier.max()}")
        if unrounded is not None:
            unrounded(scaled.astype(np.float64))
        return saturate(np.rint(scaled), zero_point, params.dtype)


@dataclass(frozen=True, kw_only=True)
class Averaged(Pending):
    """total / count * scale; `count` int64 >= 1 broadcasts with `total`, `scale` is one float32."""

    count: npt.NDArray[np.int64]
    scale: np.float32

    def exact_real(self) -> npt.NDArray[np.float32]:
        mean = self.total.astype(np.float64) / self.count
        return (mean * np.float64(self.scale)).astype(np.float32)

    def rounded(self, params: Params, unrounded: Unrounded | None) -> Array:
        """y = sat(rne(the exact rational total * xs / (count * ys)) + yz)."""
        if params.axis is not None:
            raise OracleError(f"average: needs one output scale, got {params.scale.size}")
        counts = np.broadcast_to(self.count, self.total.shape)
        in_num, in_den = float(self.scale).as_integer_ratio()
        out_num, out_den = float(params.scale).as_integer_ratio()
        result = np.zeros(self.total.shape, dtype=np.int64)
        exact = np.zeros(self.total.shape, dtype=np.float64)
        for count in np.unique(counts):
            denominator = int(count) * in_den * out_num
            here = counts == count
            totals, inverse = np.unique(self.total[here], return_inverse=True)
            numerators = [int(t) * in_num * out_den for t in totals]
            result[here] = np.array([rne_ratio(n, denominator) for n in numerators])[inverse]
            exact[here] = np.array([n / denominator for n in numerators])[inverse]
        if unrounded is not None:
            unrounded(exact)
        return saturate(result, params.zero_point, params.dtype)


Value = Array | Dequantized | Pending


def materialise(value: Value) -> Array:
    """The tensor itself: float32 for the symbolic kinds, unchanged for an array."""
    return value if isinstance(value, np.ndarray) else value.real()


def quantize(value: Value, params: Params, unrounded: Unrounded | None = None) -> Array:
    """QuantizeLinear of any value: one rounding for `Pending`, op by op in float32 otherwise."""
    if isinstance(value, Pending):
        return value.requantize(params, unrounded)
    return quantize_float(materialise(value), params, unrounded)


def quantize_float(value: Array, params: Params, unrounded: Unrounded | None = None) -> Array:
    """sat(rne(fl32(v / ys)) + yz); infinities saturate, OracleError on NaN."""
    scale, zero_point = params.along(value.ndim)
    if value.dtype != np.float32:
        raise OracleError(f"QuantizeLinear: needs float32, got {value.dtype}")
    with np.errstate(over="ignore", under="ignore"):
        scaled = value / scale
    if np.isnan(scaled).any():
        raise OracleError("QuantizeLinear: needs numbers, got NaN")
    if unrounded is not None:
        unrounded(scaled.astype(np.float64))
    return saturate(np.rint(scaled), zero_point, params.dtype)
