"""Convolutions, matrix products and pools of ONNX as calls."""

from collections.abc import Callable, Sequence
from typing import Any

from vitral.compiler.frontends.relay.scope import NodeScope, pair
from vitral.compiler.ir import TensorType

__all__ = ["OPERATORS"]


def _four(scope: NodeScope) -> TensorType:
    """The type of the first argument, an image."""
    x = scope.type(0)
    scope.unfit_unless(len(x.shape) == 4)
    return x


def _given(scope: NodeScope, name: str, default: Sequence[int]) -> tuple[int, ...]:
    value = scope.node.attributes.get(name, default)
    good = isinstance(value, Sequence) and all(isinstance(item, int) for item in value)
    if not good or len(value) != len(default):
        raise scope.node.fail(f"needs {len(default)} integers as attribute {name}, got {value!r}")
    return tuple(value)


def _window(scope: NodeScope, size: Sequence[int], kernel: Sequence[int]) -> dict[str, Any]:
    """Strides, padding and dilation, without those at their default."""
    strides = _given(scope, "strides", (1, 1))
    dilation = _given(scope, "dilations", (1, 1))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    return {
        "strides": strides,
        "padding": pair(_pads(scope, size, extent, strides)),
        "dilation": dilation,
    }


def _pads(
    scope: NodeScope, size: Sequence[int], extent: Sequence[int], strides: Sequence[int]
) -> tuple[int, ...]:
    """(top, left, bottom, right); those of `auto_pad` keep ceil(size / stride) windows."""
    auto = scope.text("auto_pad", "NOTSET")
    if auto in ("NOTSET", "VALID"):
        pads = _given(scope, "pads", (0, 0, 0, 0)) if auto == "NOTSET" else (0, 0, 0, 0)
        scope.unfit_unless(min(pads) >= 0)
        return pads
    scope.unfit_unless(auto in ("SAME_UPPER", "SAME_LOWER"))
    totals = [
        max((-(-n // s) - 1) * s + e - n, 0) for n, e, s in zip(size, extent, strides, strict=True)
    ]
    less, more = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return (*less, *more) if auto == "SAME_UPPER" else (*more, *less)


def _finish(scope: NodeScope, op: str, channels: int, axis: int = 1, **attrs: Any) -> str:
    """A sum of products and, where the node has one, its bias."""
    bias = scope.optional(2)
    data, weight = scope.need(0), scope.need(1)
    if bias is None:
        return scope.call(op, data, weight, **attrs)
    scope.unfit_unless(scope.type(2).shape == (channels,))
    sums = scope.inner(op, data, weight, **attrs)
    return scope.call("nn.bias_add", sums, bias, axis=axis)


def _conv(scope: NodeScope) -> str:
    x = _four(scope)
    weight = scope.type(1).shape
    scope.unfit_unless(len(weight) == 4)
    return _finish(
        scope,
        "nn.conv2d",
        weight[0],
        groups=scope.integer("group", 1),
        **_window(scope, x.shape[2:], weight[2:]),
    )


def _conv_transpose(scope: NodeScope) -> str:
    _four(scope)
    weight = scope.type(1).shape
    scope.unfit_unless(len(weight) == 4 and "output_shape" not in scope.node.attributes)
    scope.unfit_unless(scope.text("auto_pad", "NOTSET") in ("NOTSET", "VALID"))
    return _finish(
        scope,
        "nn.conv2d_transpose",
        weight[1] * scope.integer("group", 1),
        groups=scope.integer("group", 1),
        output_padding=_given(scope, "output_padding", (0, 0)),
        **_window(scope, (0, 0), weight[2:]),
    )


def _gemm(scope: NodeScope) -> str:
    plain = scope.real("alpha", 1) == scope.real("beta", 1) == 1 and not scope.integer("transA", 0)
    scope.unfit_unless(plain)
    weight = scope.type(1).shape
    scope.unfit_unless(len(weight) == len(scope.type(0).shape) == 2)
    if scope.integer("transB", 0):
        return _finish(scope, "nn.dense", weight[0], axis=-1)
    return _finish(scope, "matmul", weight[1], axis=-1)


def _matmul(scope: NodeScope) -> str:
    scope.unfit_unless(min(len(scope.type(i).shape) for i in (0, 1)) >= 2)
    return scope.call("matmul", scope.need(0), scope.need(1))


def _pool(op: str) -> Callable[[NodeScope], str]:
    def pool(scope: NodeScope) -> str:
        x = _four(scope)
        scope.unfit_unless(len(scope.node.outputs) == 1 and not scope.integer("storage_order", 0))
        kernel = _given(scope, "kernel_shape", (0, 0))
        more: dict[str, Any] = {"ceil_mode": bool(scope.integer("ceil_mode", 0))}
        if op == "nn.avg_pool2d":
            more["count_include_pad"] = bool(scope.integer("count_include_pad", 0))
        window = _window(scope, x.shape[2:], kernel)
        return scope.call(op, scope.need(0), pool_size=kernel, **window, **more)

    return pool


def _global(op: str) -> Callable[[NodeScope], str]:
    def pool(scope: NodeScope) -> str:
        _four(scope)
        return scope.call(op, scope.need(0))

    return pool


def _batch_norm(scope: NodeScope) -> str:
    scope.unfit_unless(len(scope.node.outputs) == 1 and len(scope.args) == 5)
    scope.unfit_unless(not scope.integer("training_mode", 0))
    args = [scope.need(i) for i in range(5)]
    return scope.call("nn.batch_norm", *args, epsilon=scope.real("epsilon", 1e-5))


OPERATORS: dict[str, Callable[[NodeScope], str]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "MaxPool": _pool("nn.max_pool2d"),
    "AveragePool": _pool("nn.avg_pool2d"),
    "GlobalMaxPool": _global("nn.global_max_pool2d"),
    "GlobalAveragePool": _global("nn.global_avg_pool2d"),
    "BatchNormalization": _batch_norm,
}
"""ONNX operator to its import function, which gives the result's name or raises Unfit."""
