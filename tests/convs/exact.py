"""Convolutions in exact integers, from the definition."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import requantize
from vitral.compiler.schedule.layer import ConvLayer

__all__ = ["convolve", "run_exact"]

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
    assert np.abs(acc).max() < 1 << 31
    p = layer.params
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


def run_exact(layers: Sequence[ConvLayer], inputs: Mapping[str, Int8]) -> dict[str, Int8]:
    """Every value of a segment by name, inputs included."""
    values = dict(inputs)
    for layer in layers:
        values[layer.result] = convolve(layer, values[layer.source])
    return values
