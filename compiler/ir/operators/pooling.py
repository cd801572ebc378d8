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
Pair = tuple[int, int]

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


def _laid(
    attrs: Attrs, x: Array, place: tuple[int, int], spatial: tuple[int, int], fill: Any
) -> Array:
    """As much of `x` as windows reach, its first element at `place`, around it `fill`."""
    size, strides = two(attrs["pool_size"], ""), two(attrs["strides"], "")
    dilation = two(attrs["dilation"], "")
    reach = [(n - 1) * strides[i] + (size[i] - 1) * dilation[i] + 1 for i, n in enumerate(spatial)]
    result = np.full((*x.shape[:2], *reach), fill, x.dtype)
    high, wide = (max(min(reach[i] - place[i], x.shape[2 + i]), 0) for i in range(2))
    result[:, :, place[0] : place[0] + high, place[1] : place[1] + wide] = x[:, :, :high, :wide]
    return result


def _taps(attrs: Attrs, laid: Array, spatial: Pair) -> list[Array]:
    """For each place in the window an array (N, C, rows, cols) of what lies there."""
    (high, wide), strides = two(attrs["pool_size"], ""), two(attrs["strides"], "")
    dilation, (rows, cols) = two(attrs["dilation"], ""), spatial
    starts = [(i * dilation[0], j * dilation[1]) for i in range(high) for j in range(wide)]
    return [laid[:, :, i :: strides[0], j :: strides[1]][:, :, :rows, :cols] for i, j in starts]


def _max_pool(attrs: Attrs, args: Arrays) -> Array:
    x = args[0]
    spatial, (top, left, *_) = _spatial(attrs, x.shape), four_pads(attrs["padding"])
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return np.maximum.reduce(_taps(attrs, _laid(attrs, x, (top, left), spatial, lowest), spatial))


def _avg_pool(attrs: Attrs, args: Arrays) -> Array:
    """Padding counts as elements if told so; what ceil mode adds behind it never does."""
    x = args[0]
    spatial, (top, left, bottom, right) = _spatial(attrs, x.shape), four_pads(attrs["padding"])
    laid = _laid(attrs, x.astype(_wide(x)), (top, left), spatial, 0)
    if attrs["count_include_pad"]:
        ones = np.ones((1, 1, top + x.shape[2] + bottom, left + x.shape[3] + right), np.int64)
        counted = _laid(attrs, ones, (0, 0), spatial, 0)
    else:
        ones = np.ones((1, 1, *x.shape[2:]), np.int64)
        counted = _laid(attrs, ones, (top, left), spatial, 0)
    sums, counts = (np.asarray(sum(_taps(attrs, a, spatial))) for a in (laid, counted))
    return _mean(sums, counts, x.dtype)


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
