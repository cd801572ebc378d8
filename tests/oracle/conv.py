"""Conv, QLinearConv, ConvInteger and ConvTranspose, in any number of dimensions."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from oracle.accumulate import accumulated, bias_steps, exact_type
from oracle.graph import Node
from oracle.qdq import quantized_input, quantized_output
from oracle.values import Array, Dequantized, Value, materialise, quantize
from oracle.windows import Geometry, geometry

__all__ = ["OPERATORS"]


def _conv(node: Node, args: Sequence[Value | None]) -> Value:
    x, w = args[0], args[1]
    bias = args[2] if len(args) > 2 else None
    if isinstance(x, Dequantized) and isinstance(w, Dequantized):
        return _integer_conv(node, x, w, bias)
    return _float_conv(node, _array(node, x), _array(node, w), bias)


def _qlinear_conv(node: Node, args: Sequence[Value | None]) -> Value:
    x = quantized_input(node, args, 0)
    w = quantized_input(node, args, 3, axis=0)
    params = quantized_output(node, args, 6, x.data.dtype)
    bias = args[8] if len(args) > 8 else None
    return quantize(_integer_conv(node, x, w, bias), params, node.unrounded)


def _integer_conv(node: Node, x: Dequantized, w: Dequantized, bias: Value | None) -> Value:
    scale = _product_scale(node, x, w, axis=0)
    data, weights = x.centred(), w.centred()
    dtype = exact_type(data, weights, weights[0].size)
    total = _convolve(node, data.astype(dtype), weights.astype(dtype)).astype(np.int64)
    if bias is not None:
        total = total + _channels(bias_steps(node, bias, scale), total.ndim)
    return accumulated(node, total, _channels(scale, total.ndim))


def _float_conv(node: Node, x: Array, w: Array, bias: Value | None) -> Value:
    """A float island: float64 sums rounded to float32 once; not part of the byte promise."""
    total = _convolve(node, x.astype(np.float64), w.astype(np.float64))
    if bias is not None:
        total = total + _channels(materialise(bias).astype(np.float64), total.ndim)
    return total.astype(np.float32)


def _convolve(node: Node, x: Array, w: Array) -> Array:
    """Sums (N, O, *out) of x (N, C, *in) and w (O, C / groups, *kernel)."""
    groups = node.get("group", 1)
    outputs, per_group = w.shape[0], w.shape[1]
    if x.ndim != w.ndim or x.shape[1] != per_group * groups or outputs % groups:
        raise node.fail(f"needs channels that fit group {groups}, got x {x.shape} and w {w.shape}")
    window = geometry(node, x.shape[2:], w.shape[2:])
    parts = [
        _group_sums(window, xg, wg)
        for xg, wg in zip(np.split(x, groups, axis=1), np.split(w, groups, axis=0), strict=True)
    ]
    return np.concatenate(parts, axis=1)


def _group_sums(window: Geometry, x: Array, w: Array) -> Array:
    """One group, one image at a time (im2col of a whole batch would be large)."""
    rank = len(window.kernel)
    matrix = w.reshape(w.shape[0], -1)
    images: list[Array] = []
    for image in x:
        view = window.view(image[None], 0)[0]
        out = view.shape[1 : 1 + rank]
        order = (0, *range(1 + rank, 1 + 2 * rank), *range(1, 1 + rank))
        columns = view.transpose(order).reshape(matrix.shape[1], -1)
        images.append((matrix @ columns).reshape(w.shape[0], *out))
    return np.stack(images)


def _conv_transpose(node: Node, args: Sequence[Value | None]) -> Value:
    x, w = args[0], args[1]
    bias = args[2] if len(args) > 2 else None
    if not (isinstance(x, Dequantized) and isinstance(w, Dequantized)):
        wide = (v.astype(np.float64) for v in (_array(node, x), _array(node, w)))
        total = _convolve_transposed(node, *wide)
        if bias is not None:
            total = total + _channels(materialise(bias).astype(np.float64), total.ndim)
        return total.astype(np.float32)
    scale = _product_scale(node, x, w, axis=1)
    if scale.ndim:
        scale = np.tile(scale, node.get("group", 1))
    total = _convolve_transposed(node, x.centred(), w.centred())
    if bias is not None:
        total = total + _channels(bias_steps(node, bias, scale), total.ndim)
    return accumulated(node, total, _channels(scale, total.ndim))


def _convolve_transposed(node: Node, x: Array, w: Array) -> Array:
    """Scatter form: every input element adds its scaled kernel; w is (C, O / groups, *kernel)."""
    rank, groups = w.ndim - 2, node.get("group", 1)
    if x.ndim != w.ndim or x.shape[1] != w.shape[0] or w.shape[0] % groups:
        raise node.fail(f"needs channels that fit group {groups}, got x {x.shape} and w {w.shape}")
    strides = node.get("strides", [1] * rank)
    dilations = node.get("dilations", [1] * rank)
    more = node.get("output_padding", [0] * rank)
    kernel = w.shape[2:]
    full = [
        (n - 1) * s + (k - 1) * d + 1 + extra
        for n, s, k, d, extra in zip(x.shape[2:], strides, kernel, dilations, more, strict=True)
    ]
    head, sizes = _transposed_edges(node, x.shape[2:], strides, full)
    room = [max(f, h + n) for f, h, n in zip(full, head, sizes, strict=True)]
    total = np.zeros((x.shape[0], w.shape[1] * groups, *room), dtype=x.dtype)
    for tap in np.ndindex(*kernel):
        slices = [
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, dilations, x.shape[2:], strides, strict=True)
        ]
        total[(slice(None), slice(None), *slices)] += _mixed(x, w[(..., *tap)], groups)
    crop = [slice(h, h + n) for h, n in zip(head, sizes, strict=True)]
    return total[(slice(None), slice(None), *crop)]


def _transposed_edges(
    node: Node, in_shape: tuple[int, ...], strides: Sequence[int], full: list[int]
) -> tuple[list[int], list[int]]:
    """Where the result begins in the whole scatter, and its sizes (pads, auto_pad, output_shape).

    A result beyond the scatter has zeros at its end.
    """
    rank, mode = len(in_shape), node.get("auto_pad", "NOTSET")
    sizes = node.get("output_shape", None)
    if sizes is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        sizes = [n * s for n, s in zip(in_shape, strides, strict=True)]
    if sizes is not None:
        total = [max(f - n, 0) for f, n in zip(full, sizes, strict=True)]
        return [t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in total], list(sizes)
    pads = [0] * 2 * rank if mode == "VALID" else node.get("pads", [0] * 2 * rank)
    return list(pads[:rank]), [f - pads[i] - pads[rank + i] for i, f in enumerate(full)]


def _conv_integer(node: Node, args: Sequence[Value | None]) -> Value:
    """int32 sums of codes minus their zero points."""
    x, w = _codes(node, args, 0, 2), _codes(node, args, 1, 3)
    return accumulated(node, _convolve(node, x, w), np.ones((), np.float32)).total.astype(np.int32)


def _codes(node: Node, args: Sequence[Value | None], index: int, zero: int) -> Array:
    data = _array(node, args[index])
    given = args[zero] if len(args) > zero else None
    zeros = np.zeros((), np.int64) if given is None else materialise(given).astype(np.int64)
    shape = [-1] + [1] * (data.ndim - 1) if zeros.size > 1 else []
    return data.astype(np.int64) - zeros.reshape(shape)


def _mixed(x: Array, w: Array, groups: int) -> Array:
    """Channel mix of x (N, C, *in) by w (C, O / groups): (N, O, *in)."""
    parts = [
        np.einsum("nc...,co->no...", xg, wg)
        for xg, wg in zip(np.split(x, groups, axis=1), np.split(w, groups, axis=0), strict=True)
    ]
    return np.concatenate(parts, axis=1)


def _product_scale(
    node: Node, x: Dequantized, w: Dequantized, *, axis: int
) -> npt.NDArray[np.float32]:
    """fl32(xs * ws[o]), shape () or (O,)."""
    if w.params.axis not in (None, axis):
        raise node.fail(f"needs weight scales along axis {axis}, got axis {w.params.axis}")
    return np.asarray(x.tensor_scale(node.where) * w.params.scale, dtype=np.float32)


def _channels(values: Array, ndim: int) -> Array:
    """Shape () or (O,) made to broadcast along axis 1 of `ndim` dimensions."""
    return values if values.size == 1 else values.reshape(1, -1, *[1] * (ndim - 2))


def _array(node: Node, value: Value | None) -> Array:
    if value is None:
        raise node.fail("needs an input and weights, got an empty name")
    return materialise(value)


OPERATORS = {
    ("", "Conv"): _conv,
    ("", "QLinearConv"): _qlinear_conv,
    ("com.microsoft", "QLinearConv"): _qlinear_conv,
    ("", "ConvInteger"): _conv_integer,
    ("", "ConvTranspose"): _conv_transpose,
}
