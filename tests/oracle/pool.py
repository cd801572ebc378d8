"""MaxPool, AveragePool, GlobalAveragePool, ReduceMean and their QLinear forms."""

from collections.abc import Sequence

import numpy as np

from oracle.graph import Node
from oracle.qdq import quantized_input, quantized_output
from oracle.values import Array, Averaged, Dequantized, Value, materialise, quantize
from oracle.windows import Geometry, geometry

__all__ = ["OPERATORS"]


def _max_pool(node: Node, args: Sequence[Value | None]) -> Value:
    """Largest element of each window; padding never wins. Works on integers, DQ and floats."""
    if len(node.outputs) > 1 and node.outputs[1]:
        raise node.fail("needs one output, got Indices as a second")
    x = _operand(node, args)
    if isinstance(x, Dequantized) and x.params.axis is None:
        return Dequantized(data=_window_max(node, x.data), params=x.params)
    return _window_max(node, materialise(x))


def _window_max(node: Node, x: Array) -> Array:
    window = _window(node, x)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(np.int64).min
    wide = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
    result = window.view(wide, lowest).max(axis=_kernel_axes(x))
    if (result == lowest).any():
        raise node.fail("needs an element in every window, got one that is all padding")
    return result.astype(x.dtype)


def _average_pool(node: Node, args: Sequence[Value | None]) -> Value:
    x = _operand(node, args)
    if isinstance(x, Dequantized):
        return _integer_average(node, x)
    values = materialise(x).astype(np.float64)
    total, count = _window_sums(node, values)
    return (total / count).astype(np.float32)


def _qlinear_average_pool(node: Node, args: Sequence[Value | None]) -> Value:
    _refuse_channels_last(node)
    x = quantized_input(node, args, 0)
    params = quantized_output(node, args, 3, x.data.dtype)
    return quantize(_integer_average(node, x), params, node.unrounded)


def _integer_average(node: Node, x: Dequantized) -> Averaged:
    total, count = _window_sums(node, x.centred())
    return Averaged(total=total, count=count, scale=x.tensor_scale(node.where))


def _window_sums(node: Node, x: Array) -> tuple[Array, Array]:
    """Sums (N, C, *out) and counts (1, 1, *out) of the windows; padding adds 0."""
    window, axes = _window(node, x), _kernel_axes(x)
    counted = 1 if node.get("count_include_pad", 0) else 0
    ones = np.ones((1, 1, *x.shape[2:]), dtype=np.int64)
    count = window.view(ones, counted, 0).sum(axis=axes)
    return window.view(x, 0).sum(axis=axes), count


def _global_average_pool(node: Node, args: Sequence[Value | None]) -> Value:
    x = _operand(node, args)
    return _mean(node, x, tuple(range(2, _rank(x))), keep=True)


def _qlinear_global_average_pool(node: Node, args: Sequence[Value | None]) -> Value:
    _refuse_channels_last(node)
    x = quantized_input(node, args, 0)
    params = quantized_output(node, args, 3, x.data.dtype)
    mean = _mean(node, x, tuple(range(2, x.data.ndim)), keep=True)
    return quantize(mean, params, node.unrounded)


def _reduce_mean(node: Node, args: Sequence[Value | None]) -> Value:
    x = _operand(node, args)
    given = args[1] if len(args) > 1 else None
    axes = node.get("axes", None) if given is None else materialise(given).tolist()
    if not axes:
        if node.get("noop_with_empty_axes", 0):
            return x
        axes = range(_rank(x))
    normal = tuple(sorted(a % _rank(x) for a in axes))
    return _mean(node, x, normal, keep=bool(node.get("keepdims", 1)))


def _arg_max(node: Node, args: Sequence[Value | None]) -> Value:
    return _extreme(node, materialise(_operand(node, args)))


def _arg_min(node: Node, args: Sequence[Value | None]) -> Value:
    return _extreme(node, -materialise(_operand(node, args)).astype(np.float64))


def _extreme(node: Node, x: Array) -> Array:
    """Index of the first (or last) largest element of each line."""
    axis, keep = node.get("axis", 0), bool(node.get("keepdims", 1))
    is_largest = x == x.max(axis=axis, keepdims=True)
    places = np.arange(x.shape[axis]).reshape(
        [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    )
    if node.get("select_last_index", 0):
        return np.where(is_largest, places, -1).max(axis=axis, keepdims=keep).astype(np.int64)
    return (
        np.where(is_largest, places, x.shape[axis]).min(axis=axis, keepdims=keep).astype(np.int64)
    )


def _mean(node: Node, x: Value, axes: tuple[int, ...], *, keep: bool) -> Value:
    if not isinstance(x, Dequantized):
        values = materialise(x).astype(np.float64)
        return values.mean(axis=axes, keepdims=keep).astype(np.float32)
    total = x.centred().sum(axis=axes, keepdims=keep)
    count = np.array(x.data.size // total.size, dtype=np.int64)
    return Averaged(total=total, count=count, scale=x.tensor_scale(node.where))


def _window(node: Node, x: Array) -> Geometry:
    kernel = tuple(node.get("kernel_shape", ()))
    return geometry(node, x.shape[2:], kernel, ceil_mode=bool(node.get("ceil_mode", 0)))


def _kernel_axes(x: Array) -> tuple[int, ...]:
    return tuple(range(x.ndim, 2 * x.ndim - 2))


def _operand(node: Node, args: Sequence[Value | None]) -> Value:
    if args[0] is None:
        raise node.fail("needs an input, got an empty name")
    return args[0]


def _rank(x: Value) -> int:
    return x.data.ndim if isinstance(x, Dequantized) else materialise(x).ndim


def _refuse_channels_last(node: Node) -> None:
    if node.get("channels_last", 0):
        raise node.fail("needs channels_last 0, got 1")


OPERATORS = {
    ("", "MaxPool"): _max_pool,
    ("", "AveragePool"): _average_pool,
    ("", "GlobalAveragePool"): _global_average_pool,
    ("", "ReduceMean"): _reduce_mean,
    ("", "ArgMax"): _arg_max,
    ("", "ArgMin"): _arg_min,
    ("com.microsoft", "QLinearAveragePool"): _qlinear_average_pool,
    ("com.microsoft", "QLinearGlobalAveragePool"): _qlinear_global_average_pool,
}
