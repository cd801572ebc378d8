"""Rewrites quantized convolutions in the accelerator's arithmetic."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import fl32_parameters
from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import AccelConv2d, Conv2d, Op
from vitral.compiler.passes.law import (
    centred_weight,
    code_bounds,
    law_multiplier,
    product_range,
    raw_bias,
)
from vitral.compiler.schedule.layer import ChannelParams
from vitral.errors import CompileError
from vitral.isa import Rounding

__all__ = ["lower_convs"]

_INT32 = np.iinfo(np.int32)


def lower_convs(graph: Graph) -> Graph:
    """Convolutions with int8 input and output become `AccelConv2d`.

    Weight zero points are subtracted (int16 weights), the input's zero point and the bias become
    one int32 bias, Relu and Clip become low and high, scales become mult and shift of the float32
    mode, or what the operator's fixed point says. Convolutions with a float32 result stay; their
    sums are checked too.

    Raises CompileError naming the node and channel when a reachable sum does not fit int32.
    """
    return replace(graph, ops=tuple(_lowered(op) for op in graph.ops))


def _lowered(op: Op) -> Op:
    if not isinstance(op, Conv2d):
        return op
    weight = centred_weight(op)
    bias = raw_bias(op, weight)
    _check_sums(op, weight, bias)
    if op.y_quant is None or op.device == "cpu":
        return op
    return _accelerated(op, weight, _params(op, bias))


def _params(op: Conv2d, bias: npt.NDArray[np.int64]) -> ChannelParams:
    assert op.y_quant is not None
    zero = op.y_quant.tensor_zero
    if op.fixed is not None:
        fixed = op.fixed
        scaling = (fixed.mult, fixed.shift, fixed.rounding)
        return _channel_params(bias, scaling, zero, (fixed.low, fixed.high))
    multiplier = law_multiplier(op)
    if not np.isfinite(multiplier).all():
        channel = int(np.argmin(np.isfinite(multiplier)))
        raise CompileError(
            f"node {op.name!r}: needs scales whose quotient is a float32,"
            f" got xs·ws / ys = {multiplier[channel]} in channel {channel}"
        )
    mult, shift = fl32_parameters(multiplier)
    scaling = (mult, shift.astype(np.uint8), Rounding.FLOAT32)
    return _channel_params(bias, scaling, zero, code_bounds(op.y_quant, op.bounds))


def _channel_params(
    bias: npt.NDArray[np.int64],
    scaling: tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8], Rounding],
    zero_point: int,
    clamp: tuple[int, int],
) -> ChannelParams:
    mult, shift, rounding = scaling
    count = len(bias)
    return ChannelParams(
        bias=bias.astype(np.int32),
        mult=mult,
        shift=shift,
        zero_point=np.full(count, zero_point, np.int16),
        low=np.full(count, clamp[0], np.int16),
        high=np.full(count, clamp[1], np.int16),
        rounding=rounding,
    )


def _accelerated(op: Conv2d, weight: npt.NDArray[np.int16], params: ChannelParams) -> AccelConv2d:
    return AccelConv2d(
        name=op.name,
        inputs=op.inputs,
        output=op.output,
        device=op.device,
        weight=weight,
        params=params,
        pad_value=op.x_quant.tensor_zero,
        strides=op.strides,
        pads=op.pads,
        dilations=op.dilations,
        group=op.group,
        origin=op,
    )


def _check_sums(op: Conv2d, weight: npt.NDArray[np.int16], bias: npt.NDArray[np.int64]) -> None:
    """Products alone, the bias alone and both together must fit int32 for every input."""
    lowest, highest = product_range(weight)
    for what, values in (
        ("products", lowest),
        ("products", highest),
        ("bias", bias),
        ("sum", lowest + bias),
        ("sum", highest + bias),
    ):
        outside = (values < _INT32.min) | (values > _INT32.max)
        if outside.any():
            channel = int(np.argmax(outside))
            raise CompileError(
                f"node {op.name!r}: {what} of channel {channel} can reach {values[channel]}, past"
                f" int32, with {weight[0].size} products; split the layer or use a smaller bias"
            )
