"""Conv, QLinearConv and ConvInteger in one and two dimensions."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.bias import bias_steps
from vitral.compiler.frontends.onnx.geometry import Geometry, output_size, read_geometry
from vitral.compiler.frontends.onnx.params import (
    integer_input,
    quantized_input,
    quantized_output,
    sums_of,
)
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Const, ConstReal, Pending, Real, Symbol, Tensor
from vitral.compiler.ir.ops import Conv2d

__all__ = ["OPERATORS", "check_weights", "float_conv", "product_scales"]


def _conv(scope: Scope) -> Symbol:
    x, w = scope.need(0), scope.need(1)
    if isinstance(x, Real) and x.quant is not None and isinstance(w, ConstReal):
        return _integer_conv(scope, x, w, weight_index=1, bias_index=2)
    if isinstance(w, Const | ConstReal):
        return _float_conv(scope)
    raise scope.fail(f"needs constant weights as {scope.named(1)}, got some computed at run time")


def _qlinear_conv(scope: Scope) -> Symbol:
    x, w = quantized_input(scope, 0), quantized_input(scope, 3, axis=0)
    if not isinstance(w, ConstReal):
        raise scope.fail(f"needs constant weights as {scope.named(3)}, got some computed")
    if not isinstance(x, Real):
        raise scope.fail(f"needs an input computed at run time as {scope.named(0)}, got constants")
    quant = quantized_output(scope, 6, x.tensor.type.dtype)
    pending = _integer_conv(scope, x, w, weight_index=3, bias_index=8)
    return scope.builder.quantized(pending, quant, scope.node.name, scope.output)


def _conv_integer(scope: Scope) -> Symbol:
    """The int32 sums of codes minus their zero points."""
    x, w = integer_input(scope, 0, 2), integer_input(scope, 1, 3, axis=0)
    if not isinstance(w, ConstReal):
        raise scope.fail(f"needs constant weights as {scope.named(1)}, got some computed")
    if not isinstance(x, Real):
        raise scope.fail(f"needs an input computed at run time as {scope.named(0)}, got constants")
    return sums_of(scope, _integer_conv(scope, x, w, weight_index=1))


def product_scales(
    x_scale: float, weight: ConstReal, channels: int, *, alpha: float = 1.0
) -> npt.NDArray[np.float32]:
    """fl32(fl32(alpha * xs) * ws[o]) as (channels,)."""
    with np.errstate(over="ignore", under="ignore"):
        scale = np.float32(alpha) * np.float32(x_scale) * weight.quant.scales
    return np.array(np.broadcast_to(scale, (channels,)), np.float32)


def _integer_conv(
    scope: Scope, x: Real, w: ConstReal, *, weight_index: int, bias_index: int | None = None
) -> Pending:
    assert x.quant is not None
    _check_channels(scope, x.shape, w.shape)
    if w.quant.axis not in (None, 0):
        raise scope.fail(
            f"needs weight scales per tensor or along axis 0 as {scope.named(weight_index)},"
            f" got axis {w.quant.axis}"
        )
    check_weights(scope, weight_index, w)
    geometry = read_geometry(scope, x.shape[2:], w.shape[2:])
    weight = _two_dimensional(w.codes)
    source = scope.reshape(x.tensor, _two_dimensional_shape(x.shape))
    outputs = weight.shape[0]
    scales = product_scales(x.quant.tensor_scale, w, outputs)
    op = Conv2d(
        name=scope.node.name,
        inputs=(source.name,),
        output="",
        y_quant=None,
        x_quant=x.quant,
        weight=weight,
        weight_zero=np.array(np.broadcast_to(w.quant.zeros, outputs), np.int64),
        product_scale=scales,
        bias=np.zeros(outputs, np.int64)
        if bias_index is None
        else bias_steps(scope, bias_index, scales),
        strides=geometry.strides,
        pads=geometry.pads,
        dilations=geometry.dilations,
        group=scope.integer("group", 1),
    )
    pending = scope.pending(op)
    if len(x.shape) == 4:
        return pending
    n, o, _, length = pending.shape
    return replace(pending, shape=(n, o, length))


def check_weights(scope: Scope, index: int, weight: ConstReal) -> None:
    """Refuse weights that differ from their zero point by more than two int8 planes hold.

    Codes of one byte cannot.
    """
    quant = weight.quant
    if weight.codes.dtype.itemsize == 1:
        return
    shape = [-1 if i == quant.axis else 1 for i in range(weight.codes.ndim)]
    zeros = quant.zeros.reshape(shape) if quant.axis is not None else quant.zeros
    centred = weight.codes.astype(np.int64) - zeros
    if centred.size and (centred.min() < -255 or centred.max() > 255):
        raise scope.fail(
            f"needs weights in the range of int8 or uint8 as {scope.named(index)},"
            f" got {centred.min()}..{centred.max()}"
        )


def _float_conv(scope: Scope) -> Tensor:
    x = scope.real(scope.need(0))
    weight, bias = scope.array(1), scope.array(2)
    assert weight is not None
    _check_channels(scope, x.shape, weight.shape)
    geometry = read_geometry(scope, x.shape[2:], weight.shape[2:])
    flat = len(x.shape) == 4
    output = scope.output if flat else scope.builder.unique(f"{scope.output}.wide")
    source = scope.reshape(x, _two_dimensional_shape(x.shape))
    result = float_conv(scope, source, _two_dimensional(weight), bias, geometry, output)
    return result if flat else scope.reshape(result, (*result.shape[:2], result.shape[3]))


def float_conv(
    scope: Scope,
    source: Tensor,
    weight: npt.NDArray,
    bias: npt.NDArray | None,
    geometry: Geometry,
    output: str,
) -> Tensor:
    """A two-dimensional float32 convolution, part of a float island."""
    outputs = weight.shape[0]
    offsets = np.zeros(outputs, np.float32) if bias is None else bias.reshape(-1)
    if offsets.size != outputs:
        raise scope.fail(f"needs a bias of shape [{outputs}], got {offsets.size} numbers")
    shape = (source.shape[0], outputs, *output_size(scope, source.shape[2:], geometry))
    constants = [
        scope.builder.constant(f"{scope.node.name}.{what}", array.astype(np.float32))
        for what, array in (("weight", weight), ("bias", offsets))
    ]
    return scope.float_op(
        "conv2d",
        (source, *constants),
        shape,
        output=output,
        macs=int(np.prod(shape)) * int(np.prod(weight.shape[1:])),
        attributes={
            "strides": geometry.strides,
            "pads": geometry.pads,
            "dilations": geometry.dilations,
            "group": scope.integer("group", 1),
        },
    )


def _check_channels(scope: Scope, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    group = scope.integer("group", 1)
    if len(x) != len(w) or len(x) not in (3, 4):
        raise scope.fail(f"needs rank 3 or 4 input and weights, got {list(x)} and {list(w)}")
    if group < 1 or x[1] != w[1] * group or w[0] % group:
        raise scope.fail(
            f"needs channels that fit group {group}, got input {list(x)} and weights {list(w)}"
        )


def _two_dimensional(weight: npt.NDArray) -> npt.NDArray:
    return weight if weight.ndim == 4 else weight[:, :, None, :]


def _two_dimensional_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) == 4 else (*shape[:2], 1, *shape[2:])


OPERATORS = {
    ("", "Conv"): _conv,
    ("", "QLinearConv"): _qlinear_conv,
    ("", "ConvInteger"): _conv_integer,
    ("com.microsoft", "QLinearConv"): _qlinear_conv,
}
