"""Random layers with results that spread over int8, and small cores to run them on."""

from dataclasses import replace

import numpy as np

from vitral.compiler.schedule.layer import ChannelParams, ConvLayer
from vitral.config import CoreConfig
from vitral.isa import Rounding

__all__ = ["chain", "channel_params", "conv_layer", "random_layer", "small_configs"]

Pads = tuple[int, int, int, int]
_MULT_BITS = 24


def small_configs() -> dict[str, CoreConfig]:
    """Cores whose buffers force every kind of tiling, besides the default one."""
    return {
        "default": CoreConfig(),
        "block4": CoreConfig(
            block=4,
            uop_buffer=128,
            inp_buffer=256,
            wgt_buffer=512,
            acc_buffer=1024,
            param_depth=4,
        ),
        "block8-batch2": CoreConfig(
            batch=2,
            block=8,
            uop_buffer=1024,
            inp_buffer=2048,
            wgt_buffer=2048,
            acc_buffer=4096,
            param_depth=8,
            queue_depth=4,
            token_capacity=2,
        ),
        "block16-one-token": CoreConfig(
            uop_buffer=256,
            inp_buffer=4096,
            wgt_buffer=16384,
            acc_buffer=8192,
            param_depth=4,
            queue_depth=2,
            token_capacity=1,
        ),
    }


def conv_layer(
    rng: np.random.Generator,
    *,
    shape: tuple[int, int, int, int],
    outs: int,
    kernel: tuple[int, int] = (1, 1),
    strides: tuple[int, int] = (1, 1),
    pads: Pads = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
    group: int = 1,
    pad_value: int = 0,
    wide: bool = False,
    rounding: Rounding = Rounding.FLOAT32,
    name: str = "conv",
    source: str = "x",
    result: str = "y",
) -> ConvLayer:
    """A layer with random weights (`wide`: -255..255) and parameters fitting its sums."""
    n, c, h, w = shape
    limit = 255 if wide else 127
    weight = rng.integers(-limit - (not wide), limit + 1, (outs, c // group, *kernel))
    out_h = (h + pads[0] + pads[2] - (kernel[0] - 1) * dilations[0] - 1) // strides[0] + 1
    out_w = (w + pads[1] + pads[3] - (kernel[1] - 1) * dilations[1] - 1) // strides[1] + 1
    return ConvLayer(
        name=name,
        source=source,
        result=result,
        in_shape=shape,
        out_shape=(n, outs, out_h, out_w),
        weight=weight.astype(np.int16),
        group=group,
        strides=strides,
        pads=pads,
        dilations=dilations,
        pad_value=pad_value,
        params=channel_params(rng, outs, int(np.prod(weight.shape[1:])), limit, rounding),
    )


def channel_params(
    rng: np.random.Generator, outs: int, taps: int, limit: int, rounding: Rounding
) -> ChannelParams:
    """Parameters for sums of `taps` products with weights up to `limit`."""
    spread = 74 * limit / 1.7 * np.sqrt(taps)  # standard deviation of the sums
    scale = 50 / spread * rng.uniform(0.5, 1.5, outs)
    exponent = np.floor(np.log2(scale)).astype(int) + 1
    return ChannelParams(
        bias=rng.integers(-int(spread), int(spread) + 1, outs).astype(np.int32),
        mult=np.ldexp(scale, _MULT_BITS - exponent).astype(np.uint32),
        shift=(_MULT_BITS - exponent).astype(np.uint8),
        zero_point=rng.integers(-20, 21, outs).astype(np.int16),
        low=rng.choice([-128, -20], outs).astype(np.int16),
        high=rng.choice([127, 100], outs).astype(np.int16),
        rounding=rounding,
    )


def random_layer(rng: np.random.Generator, *, largest: int = 20) -> ConvLayer:
    """A layer of any form with up to `largest` channels and rows."""
    kernel = tuple(int(k) for k in rng.integers(1, 5, 2))
    dilations = tuple(int(d) for d in rng.choice([1, 1, 1, 2, 3], 2))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = tuple(int(p) for p in rng.choice([0, 0, 1, 1, 2, 3, 6, 17], 4))
    least = [max(1, extent[n] - pads[n] - pads[n + 2]) for n in (0, 1)]
    size = [int(rng.integers(low, low + largest)) for low in least]
    group = int(rng.choice([1, 1, 1, 2, 3, 4]))
    ins, outs = (int(n) for n in rng.integers(1, largest // group + 2, 2))
    return conv_layer(
        rng,
        shape=(int(rng.integers(1, 4)), ins * group, size[0], size[1]),
        outs=outs * group,
        kernel=(kernel[0], kernel[1]),
        strides=tuple(int(s) for s in rng.choice([1, 1, 2, 3], 2)),  # pyright: ignore[reportArgumentType]  # two of them
        pads=(pads[0], pads[1], pads[2], pads[3]),
        dilations=(dilations[0], dilations[1]),
        group=group,
        pad_value=int(rng.integers(-128, 128)) if rng.random() < 0.7 else 0,
        wide=rng.random() < 0.3,
        rounding=Rounding(int(rng.integers(0, 4))),
    )


def chain(rng: np.random.Generator, first: ConvLayer, count: int) -> list[ConvLayer]:
    """`first` and layers after it, each reading the result of the one before."""
    layers = [first]
    for number in range(1, count):
        before = layers[-1]
        kernel = int(rng.choice([1, 3]))
        layers.append(
            conv_layer(
                rng,
                shape=before.out_shape,
                outs=int(rng.integers(1, 40)),
                kernel=(kernel, kernel),
                pads=(kernel // 2, kernel // 2, kernel // 2, kernel // 2),
                pad_value=int(rng.integers(-9, 9)),
                name=f"conv{number}",
                source=before.result,
                result=f"y{number}",
            )
        )
    return [replace(layer, name=f"conv{n}") for n, layer in enumerate(layers)]
