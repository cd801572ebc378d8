"""Random layers that work lane by lane: depthwise convolutions, poolings and additions."""

from dataclasses import replace

import numpy as np

from convs.layers import channel_params, conv_layer
from vitral.compiler.schedule.layer import AccelLayer, AddLayer, ConvLayer, PoolLayer
from vitral.isa import Rounding

__all__ = [
    "add_layer",
    "average",
    "network",
    "pool_layer",
    "random_add",
    "random_depthwise",
    "random_pool",
]

MULTIPLIERS = ((-128, 127), (-300, 300), (-32896, -32000), (32000, 32639), (-32896, 32639))
"""Ranges of an addition's multipliers: of one digit, and of two up to the ends."""

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]
Shape = tuple[int, int, int, int]


def random_depthwise(rng: np.random.Generator, *, largest: int = 20) -> ConvLayer:
    """A depthwise convolution of any kernel, stride, dilation and padding."""
    kernel, strides, dilations, pads, size = _window(rng, largest, (0, 0, 1, 1, 2, 3, 6, 17))
    channels = int(rng.integers(1, largest + 1))
    layer = conv_layer(
        rng,
        shape=(int(rng.integers(1, 4)), channels, *size),
        outs=channels,
        kernel=kernel,
        strides=strides,
        pads=pads,
        dilations=dilations,
        group=channels,
        pad_value=int(rng.integers(-128, 128)) if rng.random() < 0.7 else 0,
        wide=rng.random() < 0.3,
        rounding=Rounding(int(rng.integers(0, 4))),
    )
    if rng.random() < 0.3:
        layer.weight[:] = layer.weight[0]  # as an average has, which needs one block of them
    return layer


def random_pool(rng: np.random.Generator, *, largest: int = 20) -> PoolLayer:
    """A maximum of which every window has a real element."""
    kernel, strides, dilations, _, size = _window(rng, largest, (0,))
    # Less padding than dilated kernel: the outermost window then reaches the tensor.
    most = [min((k - 1) * d, s) for k, d, s in zip(kernel, dilations, size, strict=True)]
    dense = [most[n] if dilations[n] == 1 else 0 for n in (0, 1, 0, 1)]
    pads = [int(rng.integers(0, limit + 1)) for limit in dense]
    return pool_layer(
        shape=(int(rng.integers(1, 4)), int(rng.integers(1, largest + 1)), *size),
        kernel=kernel,
        strides=strides,
        pads=(pads[0], pads[1], pads[2], pads[3]),
        dilations=dilations,
    )


def random_add(rng: np.random.Generator, *, largest: int = 20) -> AddLayer:
    """The sum of two tensors, with multipliers of 8 bits or more."""
    n, c, h, w = (int(v) for v in rng.integers(1, [4, largest + 1, largest + 1, largest + 1]))
    low, high = MULTIPLIERS[int(rng.integers(0, len(MULTIPLIERS)))]
    ma, mb = (int(m) for m in rng.integers(low, high + 1, 2))
    return add_layer(rng, shape=(n, c, h, w), multipliers=(ma, mb))


def pool_layer(
    *,
    shape: Shape,
    kernel: Pair,
    strides: Pair = (1, 1),
    pads: Pads = (0, 0, 0, 0),
    dilations: Pair = (1, 1),
    name: str = "pool",
    source: str = "x",
    result: str = "y",
) -> PoolLayer:
    n, c, h, w = shape
    out_h = (h + pads[0] + pads[2] - (kernel[0] - 1) * dilations[0] - 1) // strides[0] + 1
    out_w = (w + pads[1] + pads[3] - (kernel[1] - 1) * dilations[1] - 1) // strides[1] + 1
    return PoolLayer(
        name=name,
        source=source,
        result=result,
        in_shape=shape,
        out_shape=(n, c, out_h, out_w),
        kernel=kernel,
        strides=strides,
        pads=pads,
        dilations=dilations,
    )


def add_layer(
    rng: np.random.Generator,
    *,
    shape: Shape,
    multipliers: Pair,
    name: str = "add",
    sources: tuple[str, str] = ("a", "b"),
    result: str = "y",
    rounding: Rounding | None = None,
) -> AddLayer:
    limit = max(1, *(abs(m) for m in multipliers))
    mode = Rounding(int(rng.integers(0, 4))) if rounding is None else rounding
    return AddLayer(
        name=name,
        sources=sources,
        result=result,
        shape=shape,
        multipliers=multipliers,
        params=channel_params(rng, shape[1], 2, limit, mode),
    )


def average(
    rng: np.random.Generator,
    *,
    shape: Shape,
    name: str = "average",
    source: str = "x",
    result: str = "y",
) -> ConvLayer:
    """A global average as the compiler writes it: a depthwise convolution with weights 1."""
    layer = conv_layer(
        rng,
        shape=shape,
        outs=shape[1],
        kernel=shape[2:],
        group=shape[1],
        name=name,
        source=source,
        result=result,
    )
    return replace(layer, weight=np.ones_like(layer.weight))


def network(rng: np.random.Generator, *, channels: int, size: int) -> list[AccelLayer]:
    """Pool, convolutions with a residual, depthwise pair and a global average: one of each."""
    shape = (1, channels, size, size)
    half = (1, channels, (size + 1) // 2, (size + 1) // 2)
    same: Pads = (1, 1, 1, 1)
    conv = {"shape": half, "outs": channels, "kernel": (3, 3), "pads": same, "pad_value": 3}
    return [
        conv_layer(rng, shape=shape, outs=channels, name="first", result="t0"),
        pool_layer(
            shape=shape, kernel=(3, 3), strides=(2, 2), pads=same, name="pool", source="t0",
            result="t1",
        ),
        conv_layer(rng, **conv, name="conv1", source="t1", result="t2"),
        conv_layer(rng, **conv, name="conv2", source="t2", result="t3"),
        add_layer(
            rng, shape=half, multipliers=(93, -41), name="add", sources=("t3", "t1"), result="t4"
        ),
        conv_layer(rng, **conv, group=channels, name="dw", source="t4", result="t5"),
        conv_layer(rng, shape=half, outs=channels, name="pw", source="t5", result="t6"),
        add_layer(
            rng, shape=half, multipliers=(11_003, 7_777), name="add2", sources=("t4", "t6"),
            result="t7",
        ),
        average(rng, shape=half, name="average", source="t7", result="t8"),
        conv_layer(rng, shape=(1, channels, 1, 1), outs=10, name="fc", source="t8", result="y"),
    ]  # fmt: skip


def _window(
    rng: np.random.Generator, largest: int, sides: tuple[int, ...]
) -> tuple[Pair, Pair, Pair, Pads, Pair]:
    """Kernel, strides, dilations, pads and input size of a window."""
    kernel = [int(k) for k in rng.choice([1, 2, 3, 3, 4, 5, 7, 9], 2)]
    dilations = [int(d) for d in rng.choice([1, 1, 1, 2, 3], 2)]
    strides = [int(s) for s in rng.choice([1, 1, 2, 3], 2)]
    pads = [int(p) for p in rng.choice(sides, 4)]
    least = [max(1, (kernel[n] - 1) * dilations[n] + 1 - pads[n] - pads[n + 2]) for n in (0, 1)]
    size = [int(rng.integers(low, low + largest)) for low in least]
    return (
        (kernel[0], kernel[1]),
        (strides[0], strides[1]),
        (dilations[0], dilations[1]),
        (pads[0], pads[1], pads[2], pads[3]),
        (size[0], size[1]),
    )
