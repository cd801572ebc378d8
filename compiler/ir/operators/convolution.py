"""`nn.conv2d`, `nn.conv2d_transpose`, `nn.dense`, `matmul`, `nn.bias_add`.

Sums of products of integers are exact and wrap around in the result's width. Those of floats are
summed in float64 and rounded once to the result's type, so that no order of summation shows.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.operators.operator import (
    FLOATS,
    INTEGERS,
    Arrays,
    Attribute,
    Attrs,
    Operator,
    Types,
    need,
)
from vitral.compiler.ir.operators.shapes import axis_of, four_pads, need_rank4, two, windows
from vitral.compiler.ir.types import TensorType

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]

_COMMON = {
    "strides": Attribute("ints", (1, 1)),
    "padding": Attribute("ints", (0, 0)),
    "dilation": Attribute("ints", (1, 1)),
    "groups": Attribute("int", 1),
    "channels": Attribute("int", None),
    "kernel_size": Attribute("ints", None),
    "out_dtype": Attribute("dtype", ""),
}


def _sum_type(attrs: Attrs, x: TensorType, weight: TensorType) -> str:
    """Element type of sums of products."""
    integers = x.dtype in INTEGERS and weight.dtype in INTEGERS
    floats = x.dtype == weight.dtype and x.dtype in FLOATS
    shown = f"{x.dtype} and {weight.dtype}"
    need(integers or floats, f"needs integers or floats of one type, got {shown}")
    result = attrs["out_dtype"] or x.dtype
    fits = result in (INTEGERS if integers else FLOATS)
    need(fits, f"needs an out_dtype for {shown}, got {result}")
    return result


def _operands(x: Array, weight: Array) -> tuple[Array, Array]:
    """Both in a type whose sums of products are exact, or nearly so for floats."""
    narrow = x.dtype.itemsize + weight.dtype.itemsize <= 4  # products below 2**32: 2**21 fit
    wide = np.float64 if x.dtype.kind == "f" or narrow else np.int64
    return x.astype(wide), weight.astype(wide)


def _finished(sums: Array, dtype: str) -> Array:
    if np.dtype(dtype).kind in "iu" and sums.dtype.kind == "f":
        sums = sums.astype(np.int64)
    with np.errstate(over="ignore"):
        return sums.astype(dtype)


def _conv_type(attrs: Attrs, args: Types) -> TensorType:
    x, weight = args
    need_rank4(x)
    need_rank4(weight)
    outputs, inputs, *kernel = weight.shape
    groups = attrs["groups"]
    fits = groups > 0 and x.shape[1] == inputs * groups and outputs % groups == 0
    need(fits, f"needs channels that fit groups={groups}, got {x} and weights {weight}")
    _agree(attrs, outputs, kernel)
    spatial = windows(
        x.shape[2:],
        (kernel[0], kernel[1]),
        two(attrs["strides"], "strides"),
        four_pads(attrs["padding"]),
        two(attrs["dilation"], "dilation"),
    )
    return TensorType((x.shape[0], outputs, *spatial), _sum_type(attrs, x, weight))


def _agree(attrs: Attrs, channels: int, kernel: list[int]) -> None:
    good = attrs["channels"] in (None, channels)
    need(good, f"needs channels={channels} as the weights have, got {attrs['channels']}")
    size = attrs["kernel_size"]
    fits = size is None or list(size) == kernel
    need(fits, f"needs kernel_size={kernel} as the weights have, got {size}")


def _conv(attrs: Attrs, args: Arrays) -> Array:
    x, weight = _operands(*args)
    groups = attrs["groups"]
    strides, dilation = two(attrs["strides"], ""), two(attrs["dilation"], "")
    top, left, bottom, right = pads = four_pads(attrs["padding"])
    outputs, inputs, *kernel = weight.shape
    rows, cols = windows(x.shape[2:], (kernel[0], kernel[1]), strides, pads, dilation)
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    taps = weight.reshape(groups, outputs // groups, inputs, *kernel)
    sums = np.zeros((len(x), groups, outputs // groups, rows * cols), x.dtype)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            first = i * dilation[0], j * dilation[1]
            picked = padded[
                :,
                :,
                first[0] : first[0] + (rows - 1) * strides[0] + 1 : strides[0],
                first[1] : first[1] + (cols - 1) * strides[1] + 1 : strides[1],
            ].reshape(len(x), groups, inputs, rows * cols)
            _add_tap(sums, taps[..., i, j], picked)
    return _finished(sums.reshape(len(x), outputs, rows, cols), _out(attrs, args))


def _add_tap(sums: Array, tap: Array, picked: Array) -> None:
    """sums (N, G, O/G, L) += tap (G, O/G, C/G) times picked (N, G, C/G, L)."""
    sums += tap * picked if tap.shape[-1] == 1 else tap @ picked


def _out(attrs: Attrs, args: Arrays) -> str:
    return attrs["out_dtype"] or str(args[0].dtype)


def _transposed_type(attrs: Attrs, args: Types) -> TensorType:
    x, weight = args
    need_rank4(x)
    need_rank4(weight)
    inputs, outputs, *kernel = weight.shape
    groups = attrs["groups"]
    fits = groups > 0 and x.shape[1] == inputs and inputs % groups == 0
    need(fits, f"needs channels that fit groups={groups}, got {x} and weights {weight}")
    _agree(attrs, outputs * groups, kernel)
    spatial = _spread(attrs, x.shape[2:], kernel)
    shape = (x.shape[0], outputs * groups, *spatial)
    need(min(spatial) > 0, f"needs a result of at least 1 by 1, got {list(spatial)}")
    return TensorType(shape, _sum_type(attrs, x, weight))


def _spread(attrs: Attrs, size: tuple[int, ...], kernel: list[int]) -> list[int]:
    strides, dilation = two(attrs["strides"], "strides"), two(attrs["dilation"], "dilation")
    pads, more = four_pads(attrs["padding"]), two(attrs["output_padding"], "output_padding", 0)
    return [
        (size[i] - 1) * strides[i]
        + (kernel[i] - 1) * dilation[i]
        + 1
        + more[i]
        - pads[i]
        - pads[2 + i]
        for i in range(2)
    ]


def _transposed(attrs: Attrs, args: Arrays) -> Array:
    x, weight = _operands(*args)
    groups = attrs["groups"]
    strides, dilation = two(attrs["strides"], ""), two(attrs["dilation"], "")
    pads = four_pads(attrs["padding"])
    inputs, outputs, *kernel = weight.shape
    n, _, rows, cols = x.shape
    high, wide = _spread(attrs, x.shape[2:], kernel)
    sums = np.zeros(
        (n, groups * outputs, high + pads[0] + pads[2], wide + pads[1] + pads[3]), x.dtype
    )
    taps = weight.reshape(groups, inputs // groups, outputs, *kernel)
    flat = x.reshape(n, groups, inputs // groups, rows * cols)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            part = np.swapaxes(taps[..., i, j], 1, 2) @ flat
            sums[
                :,
                :,
                i * dilation[0] : i * dilation[0] + (rows - 1) * strides[0] + 1 : strides[0],
                j * dilation[1] : j * dilation[1] + (cols - 1) * strides[1] + 1 : strides[1],
            ] += part.reshape(n, groups * outputs, rows, cols)
    cut = sums[:, :, pads[0] : pads[0] + high, pads[1] : pads[1] + wide]
    return _finished(cut, _out(attrs, args))


def _dense_type(attrs: Attrs, args: Types) -> TensorType:
    x, weight = args
    fits = len(x.shape) >= 1 and len(weight.shape) == 2 and x.shape[-1] == weight.shape[1]
    need(fits, f"needs weights (units, {x.shape[-1:]}), got {x} and weights {weight}")
    units = weight.shape[0]
    need(attrs["units"] in (None, units), f"needs units={units}, got {attrs['units']}")
    return TensorType((*x.shape[:-1], units), _sum_type(attrs, x, weight))


def _dense(attrs: Attrs, args: Arrays) -> Array:
    x, weight = _operands(*args)
    return _finished(x @ weight.T, _out(attrs, args))


def _matmul_type(attrs: Attrs, args: Types) -> TensorType:
    a, b = args
    fits = min(len(a.shape), len(b.shape)) >= 2 and a.shape[-1] == b.shape[-2]
    need(fits, f"needs matrices of equal inner size, got {a} and {b}")
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        batch = None
    need(batch is not None, f"needs stacks that broadcast, got {a} and {b}")
    return TensorType((*(batch or ()), a.shape[-2], b.shape[-1]), _sum_type(attrs, a, b))


def _matmul(attrs: Attrs, args: Arrays) -> Array:
    a, b = _operands(*args)
    return _finished(a @ b, _out(attrs, args))


def _bias_type(attrs: Attrs, args: Types) -> TensorType:
    x, bias = args
    axis = axis_of(attrs["axis"], len(x.shape))
    fits = bias.shape == (x.shape[axis],) and bias.dtype == x.dtype
    need(fits, f"needs a bias {x.dtype} for each index of axis {axis}, got {x} and {bias}")
    return x


def _bias_add(attrs: Attrs, args: Arrays) -> Array:
    x, bias = args
    shape = [1] * x.ndim
    shape[attrs["axis"]] = -1
    return x + bias.reshape(shape)


OPERATORS = (
    Operator(
        name="nn.conv2d",
        arity=range(2, 3),
        attributes=_COMMON,
        relation=_conv_type,
        compute=_conv,
    ),
    Operator(
        name="nn.conv2d_transpose",
        arity=range(2, 3),
        attributes={**_COMMON, "output_padding": Attribute("ints", (0, 0))},
        relation=_transposed_type,
        compute=_transposed,
    ),
    Operator(
        name="nn.dense",
        arity=range(2, 3),
        attributes={"units": Attribute("int", None), "out_dtype": Attribute("dtype", "")},
        relation=_dense_type,
        compute=_dense,
    ),
    Operator(
        name="matmul",
        arity=range(2, 3),
        attributes={"out_dtype": Attribute("dtype", "")},
        relation=_matmul_type,
        compute=_matmul,
    ),
    Operator(
        name="nn.bias_add",
        arity=range(2, 3),
        attributes={"axis": Attribute("int", 1)},
        relation=_bias_type,
        compute=_bias_add,
    ),
)
