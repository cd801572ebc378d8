"""Conv and QLinearConv in one and two dimensions."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.bias import bias_steps
from vitral.compiler.frontends.onnx.geometry import output_size, read_geometry
from vitral.compiler.frontends.onnx.params import quantized_input, quantized_output
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Const, ConstReal, Pending, Real, Symbol, Tensor
from vitral.compiler.ir.ops import Conv2d

__all__ = ["OPERATORS", "check_weights", "product_scales"]


def _conv(scope: Scope) -> Symbol:
    x, w = scope.need(0), scope.need(1)
    if isinstance(x, Real) and x.quant is not None and isinstance(w, ConstReal):
        return _integer_conv(scope, x, w, bias_index=2)
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
    pending = _integer_conv(scope, x, w, bias_index=8)
    return scope.builder.quantized(pending, quant, scope.node.name, scope.output)


def product_scales(
    x_scale: float, weight: ConstReal, channels: int, *, alpha: float = 1.0
) -> npt.NDArray[np.float32]:
    """fl32(fl32(alpha * xs) * ws[o]) as (channels,)."""
    with np.errstate(over="ignore", under="ignore"):
        scale = np.float32(alpha) * np.float32(x_scale) * weight.quant.scales
    return np.array(np.broadcast_to(scale, (channels,)), np.float32)


def _integer_conv(scope: Scope, x: Real, w: ConstReal, *, bias_index: int) -> Pending:
    assert x.quant is not None
    _check_channels(scope, x.shape, w.shape)
    if w.quant.axis not in (None, 0):
        raise scope.fail(
            f"needs weight scales per tensor or along axis 0 as {scope.named(1)},"
            f" got axis {w.quant.axis}"
        )
    check_weights(scope, 1 if bias_index == 2 else 3, w)
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
        bias=bias_steps(scope, bias_index, scales),
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
    wide = _two_dimensional(weight).astype(np.float32)
    offsets = np.zeros(weight.shape[0], np.float32) if bias is None else bias
    source = scope.reshape(x, _two_dimensional_shape(x.shape))
    shape = (x.shape[0], weight.shape[0], *output_size(scope, source.shape[2:], geometry))
    constants = [
        scope.builder.constant(f"{scope.node.name}.{what}", array)
        for what, array in (("weight", wide), ("bias", offsets.astype(np.float32)))
    ]
    result = scope.float_op(
        "conv2d",
        (source, *constants),
        shape,
        output=scope.output if len(x.shape) == 4 else scope.builder.unique(f"{scope.output}.wide"),
        macs=int(np.prod(shape)) * int(np.prod(wide.shape[1:])),
        attributes={
            "strides": geometry.strides,
            "pads": geometry.pads,
            "dilations": geometry.dilations,
            "group": scope.integer("group", 1),
        },
    )
    return result if len(x.shape) == 4 else scope.reshape(result, (*shape[:2], shape[3]))


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
    ("com.microsoft", "QLinearConv"): _qlinear_conv,
}
