"""Runs a lowered network in numpy, without scheduling: every layer in exact integers.

The layers here are written independently of the product (int64 im2col over explicit padding);
only the requantiser is the product's definition, which has tests of its own.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import requantize
from vitral.compiler.assemble import Plan, plan
from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.pipeline import Io, lower
from vitral.compiler.place import Group
from vitral.compiler.schedule.layer import AccelLayer, AddLayer, ChannelParams, ConvLayer, PoolLayer
from vitral.runtime.cpu import OPERATORS
from vitral.runtime.module import CpuStep

__all__ = ["run_layer", "run_model", "run_plan"]

Array = npt.NDArray[Any]


def run_model(
    model: Any, feeds: Mapping[str, Array], *, io: Io = "float", shapes: Any = None
) -> dict[str, Array]:
    """Every value that the plan of an ONNX model computes, by name."""
    return run_plan(plan(lower(import_onnx(model, shapes), io=io)), feeds)


def run_plan(planned: Plan, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Every value by name; types and shapes are checked against the graph's."""
    values = dict(feeds)
    for step in planned.steps:
        if isinstance(step, Group):
            for layer in step.layers:
                arguments = (_value(name, step, values) for name in layer.sources)
                values[layer.result] = run_layer(layer, *arguments)
            for name in step.outputs:
                _value(name, step, values)
        else:
            _run_step(planned, step, values)
    for name, type_ in planned.graph.types.items():
        if name in values:
            assert (values[name].shape, str(values[name].dtype)) == (type_.shape, type_.dtype), name
    return values


def _value(name: str, group: Group, values: dict[str, Array]) -> Array:
    """A value, joined from its parts where it is a concatenation by address."""
    if name not in values:
        (join,) = (join for join in group.joins if join.result == name)
        parts = [_value(part, group, values) for part, _ in join.parts]
        assert [part.shape[1] for part in parts] == [channels for _, channels in join.parts]
        values[name] = np.concatenate(parts, axis=1)
    return values[name]


def _run_step(planned: Plan, step: CpuStep, values: dict[str, Array]) -> None:
    arrays = [values[name] for name in step.inputs]
    arrays += [planned.arrays[name] for name in step.constants]
    results = OPERATORS[step.op](*arrays, **step.attributes)
    results = results if isinstance(results, tuple) else (results,)
    values.update(zip(step.outputs, results, strict=True))


def run_layer(layer: AccelLayer, *arguments: Array) -> npt.NDArray[np.int8]:
    """int8 result of one layer."""
    for x in arguments:
        assert x.shape == layer.in_shape
        assert x.dtype == np.int8
    if isinstance(layer, ConvLayer):
        return _conv(layer, *arguments)
    if isinstance(layer, PoolLayer):
        return _pool(layer, *arguments)
    return _add(layer, *arguments)


def _pool(layer: PoolLayer, x: Array) -> npt.NDArray[np.int8]:
    top, left, bottom, right = layer.pads
    widths = ((0, 0), (0, 0), (top, bottom), (left, right))
    padded = np.pad(x, widths, constant_values=-128)
    extent = [(k - 1) * d + 1 for k, d in zip(layer.kernel, layer.dilations, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(padded, extent, axis=(2, 3))
    (down, right), (rows, columns) = layer.strides, layer.dilations
    result = view[:, :, ::down, ::right, ::rows, ::columns].max(axis=(4, 5))
    assert result.shape == layer.out_shape
    return result


def _add(layer: AddLayer, a: Array, b: Array) -> npt.NDArray[np.int8]:
    ma, mb = layer.multipliers
    assert max(abs(ma), abs(mb)) <= 127 * 256 + 127, "more than two digits of int8"
    return _requantized(ma * a.astype(np.int64) + mb * b.astype(np.int64), layer.params)


def _conv(layer: ConvLayer, x: Array) -> npt.NDArray[np.int8]:
    top, left, bottom, right = layer.pads
    padded = np.pad(
        x.astype(np.int64),
        ((0, 0), (0, 0), (top, bottom), (left, right)),
        constant_values=layer.pad_value,
    )
    weight = layer.weight.astype(np.int64)
    outputs, depth, kernel_rows, kernel_columns = weight.shape
    _, _, rows, columns = layer.out_shape
    total = np.zeros(layer.out_shape, np.int64)
    per_group = outputs // layer.group
    for i in range(kernel_rows):
        for j in range(kernel_columns):
            y0, x0 = i * layer.dilations[0], j * layer.dilations[1]
            window = padded[
                :,
                :,
                y0 : y0 + (rows - 1) * layer.strides[0] + 1 : layer.strides[0],
                x0 : x0 + (columns - 1) * layer.strides[1] + 1 : layer.strides[1],
            ]
            for group in range(layer.group):
                outs = slice(group * per_group, (group + 1) * per_group)
                ins = slice(group * depth, (group + 1) * depth)
                # Exact: products stay below 2**16 and depths below 2**21.
                product = np.einsum(
                    "oc,nchw->nohw",
                    weight[outs, :, i, j].astype(np.float64),
                    window[:, ins].astype(np.float64),
                    optimize=True,
                )
                total[:, outs] += product.astype(np.int64)
    return _requantized(total, layer.params)


def _requantized(total: Array, params: ChannelParams) -> npt.NDArray[np.int8]:
    """Requantised sums (N, C, H, W), which must fit int32."""
    assert np.abs(total).max(initial=0) < 1 << 31
    along = (slice(None), None, None)
    return requantize(
        total,
        bias=params.bias[along],
        mult=params.mult[along],
        shift=params.shift[along],
        zero_point=params.zero_point[along],
        low=params.low[along],
        high=params.high[along],
        rounding=params.rounding,
    ).astype(np.int8)
