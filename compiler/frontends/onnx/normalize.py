"""BatchNormalization in inference: a line for each channel.

s = fl32(scale / fl32(sqrt(fl32(variance + epsilon)))), t = fl32(bias - fl32(mean · s)), and the
result is fl32(fl32(x · s) + t). Behind a convolution that has not been rounded, s goes into its
scales and t into its bias, in units of the accumulator as any float bias.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.elementwise import combined
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Const, Pending, Symbol
from vitral.compiler.ir.ops import Conv2d

__all__ = ["OPERATORS"]

Float32 = npt.NDArray[np.float32]
_STEPS_LIMIT = 1 << 62


def _batch_normalization(scope: Scope) -> Symbol:
    if scope.integer("training_mode", 0):
        raise scope.fail("needs training_mode 0, got 1; export the network for inference")
    x = scope.need(0)
    if len(x.shape) < 2:
        raise scope.fail(f"needs an input of rank 2 or more, got shape {list(x.shape)}")
    gain, offset = _line(scope, x.shape[1])
    if isinstance(x, Pending) and isinstance(x.op, Conv2d) and _by_channel(scope, x):
        return _folded(scope, x, x.op, gain, offset)
    shape = (-1, *[1] * (len(x.shape) - 2))
    name = scope.builder.unique(f"{scope.output}.scaled")
    scaled = combined(scope, "mul", x, Const(array=gain.reshape(shape)), name)
    return combined(scope, "add", scaled, Const(array=offset.reshape(shape)), scope.output)


def _by_channel(scope: Scope, x: Pending) -> bool:
    """Whether axis 1 of the result is that of the weights, and nothing else was done to it."""
    plain = x.finish is None and not x.op.bounds
    return plain and scope.builder.type_of(x.op).shape[:2] == x.shape[:2]


def _line(scope: Scope, channels: int) -> tuple[Float32, Float32]:
    """Gain and offset of each channel, float32."""
    values: list[Float32] = []
    for index in range(1, 5):
        array = scope.array(index)
        if array is None or array.shape != (channels,) or array.dtype != np.float32:
            got = "none" if array is None else f"{array.dtype} of shape {list(array.shape)}"
            raise scope.fail(f"needs {channels} float32 numbers as {scope.named(index)}, got {got}")
        values.append(array)
    scale, bias, mean, variance = values
    epsilon = np.float32(scope.number("epsilon", 1e-5))
    with np.errstate(all="ignore"):
        gain = scale / np.sqrt(variance + epsilon)
        offset = bias - mean * gain
    if not (np.isfinite(gain).all() and np.isfinite(offset).all()):
        raise scope.fail("needs variances > 0 and finite parameters, got some that give no number")
    return gain.astype(np.float32), offset.astype(np.float32)


def _folded(scope: Scope, x: Pending, op: Conv2d, gain: Float32, offset: Float32) -> Pending:
    """Negative gains turn the weights and the bias around; where the gain is 0, both are 0."""
    sign = np.sign(gain).astype(np.int16)
    centred = op.weight.astype(np.int16) - op.weight_zero.astype(np.int16).reshape(-1, 1, 1, 1)
    unit = np.where(sign == 0, np.float32(1), np.abs(gain)) * op.product_scale
    scope.builder.notice(f"{scope.node.where}: folded into the convolution before it")
    folded = replace(
        op,
        weight=centred * sign.reshape(-1, 1, 1, 1),
        weight_zero=np.zeros(len(gain), np.int64),
        product_scale=unit,
        bias=op.bias * sign + _steps(scope, offset, unit),
    )
    return replace(x, op=folded)


def _steps(scope: Scope, offset: Float32, unit: Float32) -> npt.NDArray[np.int64]:
    """rne(offset / unit) in exact rationals."""
    if not (np.isfinite(unit).all() and (unit > 0).all()):
        raise scope.fail("needs scales that stay in float32 when folded, got some that do not")
    steps = [
        round(Fraction(o) / Fraction(u))
        for o, u in zip(offset.tolist(), unit.tolist(), strict=True)
    ]
    worst = int(np.argmax([abs(step) for step in steps]))
    if abs(steps[worst]) >= _STEPS_LIMIT:
        raise scope.fail(
            f"needs an offset that int32 holds in units of {unit[worst]:g}, got {steps[worst]}"
            f" in channel {worst}"
        )
    return np.array(steps, np.int64)


OPERATORS = {("", "BatchNormalization"): _batch_normalization}
