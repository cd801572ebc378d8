"""A convolution with seeded data, compiled, and its exact result."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import fl32_parameters, requantize
from vitral.bench.layers import ConvShape
from vitral.compiler.codegen.arena import Arena
from vitral.compiler.schedule.layer import ChannelParams, ConvLayer
from vitral.compiler.schedule.segment import schedule_segment
from vitral.config import CoreConfig
from vitral.isa import Rounding
from vitral.runtime.module import Module, TensorInfo

__all__ = ["Workload", "make_layer", "make_workload", "reference_result"]

Int8 = npt.NDArray[np.int8]
SPREAD = 48.0
"""Standard deviation of the results before clamping: most of int8's range is used."""


@dataclass(frozen=True)
class Workload:
    """A compiled layer, an input for it, and the output that is right for this input."""

    module: Module
    source: Int8
    expected: Int8


def make_workload(name: str, shape: ConvShape, config: CoreConfig, seed: int = 0) -> Workload:
    """`shape` with bias, requantisation per channel, and ReLU."""
    rng = np.random.default_rng([seed, *name.encode()])
    layer = make_layer(name, shape, rng)
    source = rng.integers(-128, 128, layer.in_shape).astype(np.int8)
    return Workload(compile_layer(layer, config), source, reference_result(layer, source))


def make_layer(name: str, shape: ConvShape, rng: np.random.Generator) -> ConvLayer:
    """Random weights, bias and scales; the results spread over int8's range."""
    weight = rng.integers(-127, 128, (shape.outputs, shape.channels, *(2 * (shape.kernel,))))
    taps = shape.channels * shape.kernel**2
    deviation = 74 * 73 * np.sqrt(taps)  # of the sum: inputs and weights are uniform
    scale = SPREAD / deviation * rng.uniform(0.7, 1.4, shape.outputs)
    mult, shift = fl32_parameters(scale)
    channels = (shape.outputs,)
    params = ChannelParams(
        bias=rng.normal(0, deviation / 4, channels).astype(np.int32),
        mult=mult,
        shift=shift.astype(np.uint8),
        zero_point=np.zeros(channels, np.int16),
        low=np.zeros(channels, np.int16),
        high=np.full(channels, 127, np.int16),
        rounding=Rounding.FLOAT32,
    )
    return ConvLayer(
        name=name,
        source="x",
        result="y",
        in_shape=(1, shape.channels, shape.size, shape.size),
        out_shape=(1, shape.outputs, shape.out_size, shape.out_size),
        weight=weight.astype(np.int16),
        group=1,
        strides=(shape.stride, shape.stride),
        pads=(shape.pad, shape.pad, shape.pad, shape.pad),
        dilations=(1, 1),
        pad_value=0,
        params=params,
    )


def compile_layer(layer: ConvLayer, config: CoreConfig) -> Module:
    """A module of one program with one layer."""
    arena = Arena()
    segment = schedule_segment(
        [layer], config, name=layer.name, inputs=("x",), outputs=("y",), arena=arena
    )
    return Module(
        config=config,
        inputs=(TensorInfo(name="x", shape=layer.in_shape, dtype="int8"),),
        outputs=(TensorInfo(name="y", shape=layer.out_shape, dtype="int8"),),
        steps=(segment,),
        arrays={},
        arena_bytes=arena.size,
        image=arena.image,
        macs=layer.macs,
    )


def reference_result(layer: ConvLayer, source: Int8) -> Int8:
    """The layer's output from numpy; sums are float64, below 2**53 and so exact."""
    columns = _columns(layer, source)
    weight = layer.weight.reshape(layer.weight.shape[0], -1).astype(np.float64)
    sums = (weight @ columns).astype(np.int64)
    params = layer.params
    values = requantize(
        sums,
        bias=params.bias[:, None],
        mult=params.mult[:, None],
        shift=params.shift[:, None],
        zero_point=params.zero_point[:, None],
        low=params.low[:, None],
        high=params.high[:, None],
        rounding=params.rounding,
    )
    return values.astype(np.int8).reshape(layer.out_shape)


def _columns(layer: ConvLayer, source: Int8) -> npt.NDArray[np.float64]:
    """float64 (channels * KH * KW, height * width of the output)."""
    top, left, bottom, right = layer.pads
    padded = np.pad(source[0], ((0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, layer.weight.shape[2:], (1, 2))
    windows = windows[:, :: layer.strides[0], :: layer.strides[1]]
    return windows.transpose(0, 3, 4, 1, 2).reshape(-1, windows[0, :, :, 0, 0].size).astype(float)
