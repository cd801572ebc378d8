"""Layers in exact integers, from the definition."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import requantize
from vitral.compiler.schedule.layer import (
    AccelLayer,
    AddLayer,
    ChannelParams,
    ConvLayer,
    PoolLayer,
)

__all__ = ["add", "convolve", "pool", "result_of", "run_exact"]

Int8 = npt.NDArray[np.int8]


def convolve(layer: ConvLayer, x: Int8) -> Int8:
    """The int8 (N, O, P, Q) result for an int8 (N, C, H, W) input."""
    top, left, bottom, right = layer.pads
    padded = np.pad(
        x.astype(np.int64),
        ((0, 0), (0, 0), (top, bottom), (left, right)),
        constant_values=layer.pad_value,
    )
    n, outs, rows, cols = layer.out_shape
    acc = np.zeros((n, outs, rows, cols), np.int64)
    group_out, group_in = outs // layer.group, layer.weight.shape[1]
    for group in range(layer.group):
        o = slice(group * group_out, (group + 1) * group_out)
        i = slice(group * group_in, (group + 1) * group_in)
        for ky, kx in np.ndindex(*layer.weight.shape[2:]):
            y0, x0 = ky * layer.dilations[0], kx * layer.dilations[1]
            window = padded[
                :,
                i,
                y0 : y0 + (rows - 1) * layer.strides[0] + 1 : layer.strides[0],
                x0 : x0 + (cols - 1) * layer.strides[1] + 1 : layer.strides[1],
            ]
            weight = layer.weight[o, :, ky, kx].astype(np.int64)
            acc[:, o] += np.einsum("nihw,oi->nohw", window, weight)
    return _requantized(acc, layer.params)


def pool(layer: PoolLayer, x: Int8) -> Int8:
    """The int8 maximum over each window; padding is below every value."""
    top, left, bottom, right = layer.pads
    padded = np.pad(
        x.astype(np.int64),
        ((0, 0), (0, 0), (top, bottom), (left, right)),
        constant_values=-1000,
    )
    rows, cols = layer.out_shape[2:]
    result = np.full(layer.out_shape, -1000)
    for ky, kx in np.ndindex(*layer.kernel):
        y0, x0 = ky * layer.dilations[0], kx * layer.dilations[1]
        window = padded[
            :,
            :,
            y0 : y0 + (rows - 1) * layer.strides[0] + 1 : layer.strides[0],
            x0 : x0 + (cols - 1) * layer.strides[1] + 1 : layer.strides[1],
        ]
        result = np.maximum(result, window)
    assert result.min() >= -128, "a window of padding alone"
    return result.astype(np.int8)


def add(layer: AddLayer, a: Int8, b: Int8) -> Int8:
    """The requantised weighted sum of two tensors."""
    factors = layer.multipliers
    wide = factors[0] * a.astype(np.int64) + factors[1] * b.astype(np.int64)
    return _requantized(wide, layer.params)


def _requantized(acc: npt.NDArray[np.int64], p: ChannelParams) -> Int8:
    assert np.abs(acc).max() < 1 << 31
    column = (1, -1, 1, 1)
    return requantize(
        acc,
        bias=p.bias.reshape(column),
        mult=p.mult.reshape(column),
        shift=p.shift.reshape(column),
        zero_point=p.zero_point.reshape(column),
        low=p.low.reshape(column),
        high=p.high.reshape(column),
        rounding=p.rounding,
    ).astype(np.int8)


def result_of(layer: AccelLayer, *sources: Int8) -> Int8:
    """The result of any layer."""
    match layer:
        case ConvLayer():
            return convolve(layer, *sources)
        case PoolLayer():
            return pool(layer, *sources)
        case AddLayer():
            return add(layer, *sources)


def run_exact(layers: Sequence[AccelLayer], inputs: Mapping[str, Int8]) -> dict[str, Int8]:
    """Every value of a segment by name, inputs included."""
    values = dict(inputs)
    for layer in layers:
        values[layer.result] = result_of(layer, *(values[name] for name in layer.sources))
    return values
