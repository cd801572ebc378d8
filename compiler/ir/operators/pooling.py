"""`nn.max_pool2d`, `nn.avg_pool2d`, the global pools and `nn.upsampling`.

Averages of floats are summed in float64 and rounded once; those of integers drop the fraction.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.operators.operator import Arrays, Attribute, Attrs, Operator, Types, need
from vitral.compiler.ir.operators.shapes import four_pads, need_rank4, two, windows
from vitral.compiler.ir.types import TensorType

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]

_WINDOW = {
    "pool_size": Attribute("ints"),
    "strides": Attribute("ints", (1, 1)),
    "padding": Attribute("ints", (0, 0)),
    "dilation": Attribute("ints", (1, 1)),
    "ceil_mode": Attribute("bool", False),
}


def _spatial(attrs: Attrs, size: tuple[int, ...]) -> tuple[int, int]:
    return windows(
        size[2:],
        two(attrs["pool_size"], "pool_size"),
        two(attrs["strides"], "strides"),
        four_pads(attrs["padding"]),
        two(attrs["dilation"], "dilation"),
        attrs["ceil_mode"],
    )


def _pool_type(attrs: Attrs, args: Types) -> TensorType:
    need_rank4(args[0])
    return replace(args[0], shape=(*args[0].shape[:2], *_spatial(attrs, args[0].shape)))


def _taps(attrs: Attrs, x: Array, fill: Any) -> list[Array]:
    """For each place in the window an array (N, C, rows, cols) of what lies there."""
    size, strides = two(attrs["pool_size"], ""), two(attrs["strides"], "")
    dilation, (top, left, *_) = two(attrs["dilation"], ""), four_pads(attrs["padding"])
    rows, cols = _spatial(attrs, x.shape)
    reach = [
        (n - 1) * strides[i] + (size[i] - 1) * dilation[i] + 1 for i, n in enumerate((rows, cols))
    ]
    padded = np.full((*x.shape[:2], *(max(r, 1) for r in reach)), fill, x.dtype)
    high, wide = min(reach[0] - top, x.shape[2]), min(reach[1] - left, x.shape[3])
    padded[:, :, top : top + high, left : left + wide] = x[:, :, :high, :wide]
    return [
        padded[:, :, i * dilation[0] :: strides[0], j * dilation[1] :: strides[1]][
            :, :, :rows, :cols
        ]
        for i in range(size[0])
        for j in range(size[1])
    ]


def _max_pool(attrs: Attrs, args: Arrays) -> Array:
    x = args[0]
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return np.maximum.reduce(_taps(attrs, x, lowest))


def _avg_pool(attrs: Attrs, args: Arrays) -> Array:
    x = args[0]
    sums = sum(tap.astype(_wide(x)) for tap in _taps(attrs, x, 0))
    top, left, bottom, right = four_pads(attrs["padding"])
    ones = np.ones((1, 1, *x.shape[2:]), np.int64)
    if attrs["count_include_pad"]:
        border = ((0, 0), (0, 0), (top, bottom), (left, right))
        ones, attrs = np.pad(ones, border, constant_values=1), {**attrs, "padding": (0, 0)}
    counts = sum(_taps(attrs, ones, 0))
    return _mean(np.asarray(sums), np.asarray(counts), x.dtype)


def _wide(x: Array) -> type:
    return np.float64 if x.dtype.kind == "f" else np.int64


def _mean(sums: Array, counts: Array, dtype: Any) -> Array:
    if sums.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return (sums / counts).astype(dtype)
    return (np.sign(sums) * (np.abs(sums) // counts)).astype(dtype)


def _global_type(attrs: Attrs, args: Types) -> TensorType:
    need_rank4(args[0])
    return replace(args[0], shape=(*args[0].shape[:2], 1, 1))


def _global_avg(attrs: Attrs, args: Arrays) -> Array:
    x = args[0]
    sums = x.sum(axis=(2, 3), keepdims=True, dtype=_wide(x))
    return _mean(sums, np.array(x.shape[2] * x.shape[3]), x.dtype)


def _scales(attrs: Attrs) -> tuple[int, int]:
    """Rows and columns that an element becomes; `scale` is both."""
    both = attrs["scale"]
    return attrs["scale_h"] * both, attrs["scale_w"] * both


def _upsample(attrs: Attrs, args: Arrays) -> Array:
    high, wide = _scales(attrs)
    return args[0].repeat(high, axis=2).repeat(wide, axis=3)


def _upsampled(attrs: Attrs, args: Types) -> TensorType:
    need_rank4(args[0])
    high, wide = _scales(attrs)
    need(min(high, wide) >= 1, f"needs scales from 1, got {high} and {wide}")
    need(attrs["method"] == "nearest", f"needs method 'nearest', got {attrs['method']!r}")
    n, channels, rows, cols = args[0].shape
    return replace(args[0], shape=(n, channels, rows * high, cols * wide))


OPERATORS = (
    Operator(
        name="nn.max_pool2d",
        arity=range(1, 2),
        attributes=_WINDOW,
        relation=_pool_type,
        compute=_max_pool,
    ),
    Operator(
        name="nn.avg_pool2d",
        arity=range(1, 2),
        attributes={**_WINDOW, "count_include_pad": Attribute("bool", False)},
        relation=_pool_type,
        compute=_avg_pool,
    ),
    Operator(
        name="nn.global_max_pool2d",
        arity=range(1, 2),
        relation=_global_type,
        compute=lambda attrs, args: args[0].max(axis=(2, 3), keepdims=True),
    ),
    Operator(
        name="nn.global_avg_pool2d",
        arity=range(1, 2),
        relation=_global_type,
        compute=_global_avg,
    ),
    Operator(
        name="nn.upsampling",
        arity=range(1, 2),
        attributes={
            "scale": Attribute("int", 1),
            "scale_h": Attribute("int", 1),
            "scale_w": Attribute("int", 1),
            "method": Attribute("string", "nearest"),
        },
        relation=_upsampled,
        compute=_upsample,
    ),
)
