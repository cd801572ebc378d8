"""A bias in units of the accumulator."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Const, ConstReal

__all__ = ["bias_steps"]

Int64 = npt.NDArray[np.int64]
_STEPS_LIMIT = 1 << 62


def bias_steps(
    scope: Scope,
    index: int,
    product_scale: npt.NDArray[np.float32],
    *,
    gain: float = 1.0,
) -> Int64:
    """Input `index` as int64 (O,) for scales (O,); zeros when it is left out.

    Raw int32 is in units of product_scale already, as is int32 behind a DequantizeLinear of that
    very scale. Another scale, a gain or a float bias is rne(gain * bias / product_scale) of exact
    rationals, with a notice.
    """
    symbol = scope.given(index)
    count = product_scale.size
    if symbol is None:
        return np.zeros(count, np.int64)
    if isinstance(symbol, Const) and symbol.array.dtype == np.int32:
        return _per_channel(scope, index, symbol.array, count).astype(np.int64)
    if isinstance(symbol, ConstReal):
        codes = _per_channel(scope, index, symbol.codes, count).astype(np.int64)
        steps = codes - np.broadcast_to(symbol.quant.zeros, count)
        scales = np.broadcast_to(symbol.quant.scales, count)
        if gain == 1.0 and np.array_equal(scales, product_scale):
            return steps
        scope.builder.notice(f"{scope.node.where}: bias rescaled to the units of input and weights")
        return _rescaled(scope, steps, scales, product_scale, gain)
    values = scope.array(index)
    if values is None or values.dtype != np.float32:
        kind = "nothing" if values is None else values.dtype
        raise scope.fail(f"needs an int32 or float32 bias as {scope.named(index)}, got {kind}")
    scope.builder.notice(f"{scope.node.where}: float bias quantized at import")
    reals = _per_channel(scope, index, values, count)
    return _rescaled(scope, reals, np.ones(count, np.float32), product_scale, gain)


def _per_channel(scope: Scope, index: int, values: npt.NDArray, count: int) -> npt.NDArray:
    """Shape (), (1,), (O,), (1, O) or (1, 1) as (O,)."""
    leading = values.shape[:-1]
    if values.size not in (1, count) or any(n != 1 for n in leading):
        raise scope.fail(
            f"needs a bias of shape [{count}] or [1, {count}] as {scope.named(index)},"
            f" got {list(values.shape)}"
        )
    return np.broadcast_to(values.reshape(-1), (count,))


def _rescaled(
    scope: Scope,
    values: npt.NDArray,
    scales: npt.NDArray,
    product_scale: npt.NDArray[np.float32],
    gain: float,
) -> Int64:
    result: list[int] = []
    for channel, (value, scale, unit) in enumerate(
        zip(values.tolist(), scales.tolist(), product_scale.tolist(), strict=True)
    ):
        if not unit > 0:
            raise scope.fail(
                f"needs input and weight scales whose product is a float32 > 0 to take a bias,"
                f" got {unit:g} in channel {channel}"
            )
        if not np.isfinite(value):
            raise scope.fail(f"needs a finite bias, got {value} in channel {channel}")
        # Fraction rounds half to even.
        steps = round(Fraction(value) * Fraction(scale) * Fraction(gain) / Fraction(unit))
        if abs(steps) >= _STEPS_LIMIT:
            raise scope.fail(
                f"needs a bias that int32 holds in units of {unit:g}, got {steps}"
                f" in channel {channel}"
            )
        result.append(steps)
    return np.array(result, np.int64)
