"""Quantized operators of ONNX and of onnxruntime as what they mean: dequantize, compute, quantize.

The compiler gives both forms the same bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from vitral.compiler.frontends.relay import elements, views, windows
from vitral.compiler.frontends.relay.scope import Argument, NodeScope

__all__ = ["MICROSOFT", "OPERATORS"]


def _real(scope: NodeScope, index: int, axis: int = -1) -> str:
    """The reals that the codes of an argument mean; scale and zero point are the next two."""
    codes = scope.need(index)
    return scope.inner(
        "qnn.dequantize", codes, scope.single(index + 1), _zero(scope, index), axis=axis
    )


def _zero(scope: NodeScope, index: int) -> Argument:
    """The zero point of the codes at `index`."""
    if scope.optional(index + 2) is None:
        return np.zeros((), scope.type(index).dtype)
    return scope.single(index + 2)


def _quantized(scope: NodeScope, op: str, args: Sequence[str], index: int) -> str:
    """`op` of float arguments as an ONNX node, its result in codes of the map at `index`."""
    float_name = scope.builder.fresh(f"{scope.node.outputs[0]}_{op.lower()}")
    node = replace(scope.node, op=op, domain="", inputs=tuple(args), outputs=(float_name,))
    real = _FLOATS[op](replace(scope, node=node, args=tuple(args)))
    left_out = scope.optional(index + 1) is None
    zero = np.zeros((), np.uint8) if left_out else scope.single(index + 1)
    dtype = "uint8" if left_out else scope.type(index + 1).dtype
    return scope.call("qnn.quantize", real, scope.single(index), zero, out_dtype=dtype)


_FLOATS = {**windows.OPERATORS, **elements.OPERATORS, **views.OPERATORS}


def _bias(scope: NodeScope, index: int) -> list[str]:
    """The int32 bias, in units of both scales' product; nothing when it is left out."""
    bias = scope.optional(index)
    if bias is None:
        return []
    product = (scope.known(1) * scope.known(4)).astype(np.float32)
    scale = product.reshape(()) if product.size == 1 else product.reshape(-1)
    zero = np.zeros(scale.shape, np.int32)
    return [scope.inner("qnn.dequantize", bias, scale, zero)]


def _conv(scope: NodeScope) -> str:
    args = [_real(scope, 0), _real(scope, 3, axis=0), *_bias(scope, 8)]
    return _quantized(scope, "Conv", args, 6)


def _gemm(scope: NodeScope) -> str:
    transposed = bool(scope.integer("transB", 0))
    args = [_real(scope, 0), _real(scope, 3, axis=0 if transposed else -1), *_bias(scope, 6)]
    scope.unfit_unless(scope.optional(7) is not None)
    return _quantized(scope, "Gemm", args, 7)


def _two(op: str) -> Callable[[NodeScope], str]:
    return lambda scope: _quantized(scope, op, [_real(scope, 0), _real(scope, 3)], 6)


def _one(op: str) -> Callable[[NodeScope], str]:
    def one(scope: NodeScope) -> str:
        scope.unfit_unless(not scope.integer("channels_last", 0))
        return _quantized(scope, op, [_real(scope, 0)], 3)

    return one


def _concat(scope: NodeScope) -> str:
    args = [_real(scope, index) for index in range(2, len(scope.args), 3)]
    return _quantized(scope, "Concat", args, 0)


OPERATORS: dict[str, Callable[[NodeScope], str]] = {
    "QLinearConv": _conv,
    "QLinearMatMul": _two("MatMul"),
}
"""Of the standard domain."""

MICROSOFT: dict[str, Callable[[NodeScope], str]] = {
    **OPERATORS,
    "QuantizeLinear": elements.OPERATORS["QuantizeLinear"],
    "DequantizeLinear": elements.OPERATORS["DequantizeLinear"],
    "QGemm": _gemm,
    "QLinearAdd": _two("Add"),
    "QLinearMul": _two("Mul"),
    "QLinearSigmoid": _one("Sigmoid"),
    "QLinearLeakyRelu": _one("LeakyRelu"),
    "QLinearAveragePool": _one("AveragePool"),
    "QLinearGlobalAveragePool": _one("GlobalAveragePool"),
    "QLinearConcat": _concat,
}
"""Of the domain com.microsoft."""
