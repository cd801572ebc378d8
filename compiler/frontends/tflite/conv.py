"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED."""

from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.tflite.builder import Value
from vitral.compiler.frontends.tflite.fixed_point import (
    activation_bounds,
    quantize_multiplier,
)
from vitral.compiler.frontends.tflite.scope import Scope, hint
from vitral.compiler.frontends.tflite.windows import Windows, read_windows
from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import Bounds, Conv2d, Reshape
from vitral.compiler.ir.rounding import FixedPoint
from vitral.isa import Rounding

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]

_PLAIN = Windows(strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0))


def _conv_2d(scope: Scope) -> Value:
    """Weights (O, KH, KW, C / group)."""
    x = scope.image(0)
    weight = _weight(scope, axis=0, rank=4).transpose(0, 3, 1, 2)
    channels = x.shape[3]
    if channels % weight.shape[1] or weight.shape[0] % (channels // weight.shape[1]):
        raise scope.fail(
            f"needs weights whose channels divide those of the input, got {channels} and"
            f" {list(weight.shape)} (O, C, H, W)"
        )
    windows = read_windows(scope, x.shape[1:3], weight.shape[2:])
    op = _op(scope, x.name, scope.image_name(), weight, windows, group=channels // weight.shape[1])
    return scope.emit_image(op)


def _depthwise_conv_2d(scope: Scope) -> Value:
    """Weights (1, KH, KW, C · multiplier)."""
    x = scope.image(0)
    given = _weight(scope, axis=3, rank=4)
    channels = x.shape[3]
    if given.shape[0] != 1 or given.shape[3] % channels:
        raise scope.fail(
            f"needs weights (1, H, W, a multiple of {channels}), got {list(given.shape)}"
        )
    weight = given.transpose(3, 0, 1, 2)
    windows = read_windows(scope, x.shape[1:3], weight.shape[2:])
    op = _op(scope, x.name, scope.image_name(), weight, windows, group=channels)
    return scope.emit_image(op)


def _fully_connected(scope: Scope) -> Value:
    """Weights (O, K); the input is flattened to rows of K.

    A flattened image is read as it lies, with the weights' columns in its order.
    """
    if scope.integer("WeightsFormat"):
        raise scope.fail("needs weights in the default format, got shuffled ones")
    weight = _weight(scope, axis=0, rank=2)
    outputs, inner = weight.shape
    x = scope.value(0)
    count = int(np.prod(x.shape, dtype=np.int64))
    if count % inner or not count:
        raise scope.fail(f"needs rows of {inner} inputs, got shape {list(x.shape)}")
    image = x if x.image else x.flattens
    if image is not None and int(np.prod(image.shape[1:])) == inner:
        _, height, width, channels = image.shape
        weight = weight.reshape(outputs, height, width, channels).transpose(0, 3, 1, 2)
        source = image.name
    else:
        source = scope.plain(0).name
    rows = count // inner
    view = scope.builder.unique(f"{scope.name}.rows")
    source = scope.builder.reshape(source, (rows, inner, 1, 1), scope.name, view)
    result = scope.builder.unique(f"{scope.name}.columns")
    scope.builder.emit(_op(scope, source, result, weight.reshape(outputs, inner, 1, 1), _PLAIN))
    shape = (*x.shape[:-1], outputs) if scope.integer("KeepNumDims") else (rows, outputs)
    return scope.emit_plain(
        Reshape(name=scope.name, inputs=(result,), output=scope.name, shape=shape)
    )


def _weight(scope: Scope, *, axis: int, rank: int) -> Array:
    scope.quant(0)
    tensor = scope.tensor(1)
    weight, quant = scope.array(1), tensor.quant
    if tensor.dtype != "int8" or quant is None or weight.ndim != rank:
        raise scope.fail(
            f"needs int8 weights of rank {rank} with scales as tensor {tensor.name!r},"
            f" got {tensor.dtype} {list(tensor.shape)}{hint(tensor)}"
        )
    if any(quant.zero_point):
        raise scope.fail(f"needs weights {tensor.name!r} with zero point 0, got another")
    outputs = weight.shape[axis]
    if quant.axis is not None and (quant.axis != axis or len(quant.scale) != outputs):
        raise scope.fail(
            f"needs one scale, or {outputs} along axis {axis}, for weights {tensor.name!r},"
            f" got {len(quant.scale)} along axis {quant.axis}"
        )
    return weight


def _op(
    scope: Scope, source: str, output: str, weight: Array, windows: Windows, group: int = 1
) -> Conv2d:
    weight = np.ascontiguousarray(weight)
    outputs = weight.shape[0]
    fixed, bounds = _rounding(scope, outputs)
    x, w = scope.quant(0), scope.tensor(1).quant
    assert w is not None
    with np.errstate(over="ignore", under="ignore"):
        product_scale = np.broadcast_to(x.scales * w.scales, outputs).astype(np.float32)
    return Conv2d(
        name=scope.name,
        inputs=(source,),
        output=output,
        y_quant=scope.y_quant,
        bounds=bounds,
        x_quant=x,
        weight=weight,
        weight_zero=np.zeros(outputs, np.int64),
        product_scale=product_scale,
        bias=_bias(scope, outputs),
        strides=windows.strides,
        pads=windows.pads,
        dilations=windows.dilations,
        group=group,
        fixed=fixed,
    )


def _bias(scope: Scope, outputs: int) -> npt.NDArray[np.int64]:
    """In units of the accumulator, whatever scales the file gives it; zeros without one."""
    if not scope.has(2):
        return np.zeros(outputs, np.int64)
    tensor, values = scope.tensor(2), scope.array(2)
    if tensor.dtype != "int32" or values.size != outputs:
        raise scope.fail(
            f"needs {outputs} int32 biases in tensor {tensor.name!r}, got {tensor.dtype}"
            f" {list(tensor.shape)}"
        )
    return values.reshape(-1).astype(np.int64)


def _rounding(scope: Scope, outputs: int) -> tuple[FixedPoint | None, Bounds]:
    """Fixed point, or for XNNPACK's float32 the bounds of the fused activation.

    The reference kernel of dense layers rounds once, as measured with LiteRT 2.3.
    """
    low, high = scope.clamp()
    if scope.rounding == "xnnpack":
        return None, activation_bounds(scope.integer("FusedActivationFunction"))
    try:
        mult, shift = quantize_multiplier(
            np.broadcast_to(_multipliers(scope, scope.y_quant), outputs)
        )
    except ValueError as error:
        raise scope.fail(f"needs {error}") from None
    once = scope.rounding == "reference" and scope.node.op == "FULLY_CONNECTED"
    mode = Rounding.HALF_UP if once else scope.mode
    return FixedPoint(mult=mult, shift=shift, rounding=mode, low=low, high=high), ()


def _multipliers(scope: Scope, y: Quant) -> npt.NDArray[np.float64]:
    """xs · ws / ys in float64."""
    x, w = scope.quant(0), scope.tensor(1).quant
    assert w is not None
    return x.scales.astype(np.float64) * w.scales.astype(np.float64) / np.float64(y.tensor_scale)


OPERATORS = {
    "CONV_2D": _conv_2d,
    "DEPTHWISE_CONV_2D": _depthwise_conv_2d,
    "FULLY_CONNECTED": _fully_connected,
}
