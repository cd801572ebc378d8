"""Groups that multiply: convolutions, dense layers, products of two activations."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx

from fuzz.network import Array, Network, Operand, Tensor

__all__ = ["conv", "conv_integer", "conv_transpose", "dense", "product"]


@dataclass(frozen=True)
class _Weights:
    """Codes with the scales and zero points of their output channels, or one of each."""

    codes: Array
    scale: Array
    zero: Array


@dataclass(frozen=True)
class _Window:
    """Kernel and result's sizes, and the attributes that say how one leads to the other."""

    kernel: list[int]
    sizes: list[int]
    attributes: dict[str, Any]


def conv(net: Network, x: Tensor) -> Tensor:
    """Conv or QLinearConv of 1-D or 2-D images: any group, stride, dilation, padding, bias."""
    group, outputs = _channels(net, x.shape[1])
    window = _window(net, x.shape[2:])
    shape = (outputs, x.shape[1] // group, *window.kernel)
    weights = _weights(net, shape, outputs)
    spread = x.spread * 0.7 * prod(shape[1:]) ** 0.5
    y = net.result(net.fresh("conv"), (x.shape[0], outputs, *window.sizes), spread)
    attributes = {**window.attributes, "group": group}
    bias = net.rng.integers(-3000, 3001, outputs).astype(np.int32)
    if net.chance():
        operands = [Operand(net.triple(x)), _operand(net, weights, 0)]
        exact = _exact_bias(net, x, weights, bias) if net.chance() else None
        return net.fused("QLinearConv", operands, y, bias=exact, **attributes)
    names = [net.real(x), net.dequantized(_operand(net, weights, 0))]
    last = net.node("Conv", names + _bias(net, x, weights, bias, y), **attributes)
    return net.rounded(net.activated(last, y.spread), y)


def _window(net: Network, spatial: tuple[int, ...]) -> _Window:
    """Explicit pads, or auto_pad; where a stride skips over pixels that SAME would crop, pads.

    onnxruntime takes no dilations with SAME, and crops where padding comes out negative.
    """
    padding = net.pick("pads", "pads", "pads", "VALID", "SAME_UPPER", "SAME_LOWER")
    same = padding.startswith("SAME")
    dilations = [1 if same else net.pick(1, 1, 2) for _ in spatial]
    kernel = [
        max(1, min(net.number(1, 4), (n - 1) // d + 1))
        for n, d in zip(spatial, dilations, strict=True)
    ]
    strides = [min(net.pick(1, 1, 2, 3), k if same else 3) for k in kernel]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [net.number(0, 2) if padding == "pads" else 0 for _ in 2 * kernel]
    both = [a + b for a, b in zip(pads[: len(kernel)], pads[len(kernel) :], strict=True)]
    attributes: dict[str, Any] = {"dilations": dilations, "strides": strides}
    attributes |= {"pads": pads} if padding == "pads" else {"auto_pad": padding}
    attributes |= {} if net.chance(0.2) else {"kernel_shape": kernel}
    sizes = [
        -(-n // s) if same else (n + p - e) // s + 1
        for n, p, e, s in zip(spatial, both, extents, strides, strict=True)
    ]
    return _Window(kernel, sizes, attributes)


def conv_transpose(net: Network, x: Tensor) -> Tensor:
    """ConvTranspose: scales per output channel lie along axis 1 of its weights."""
    group = net.pick(1, 1, x.shape[1])
    outputs = net.number(1, 4)
    kernel, strides = [net.number(1, 3) for _ in x.shape[2:]], [net.pick(1, 2) for _ in x.shape[2:]]
    pads = [net.number(0, k // 2) for k in (*kernel, *kernel)]
    extra = [net.number(0, s - 1) for s in strides]
    sizes = [
        (n - 1) * s + k + e - pads[i] - pads[i + len(kernel)]
        for i, (n, s, k, e) in enumerate(zip(x.shape[2:], strides, kernel, extra, strict=True))
    ]
    if min(sizes) < 1:
        return x
    weights = _weights(net, (x.shape[1], outputs, *kernel), outputs, symmetric=True)
    spread = x.spread * 0.7 * (x.shape[1] // group * prod(kernel)) ** 0.5
    y = net.result(net.fresh("up"), (x.shape[0], outputs * group, *sizes), spread)
    if group > 1 and weights.scale.ndim:
        weights = _Weights(weights.codes, weights.scale[0], weights.zero[0])
    attributes = {"strides": strides, "pads": pads, "output_padding": extra, "group": group}
    names = [net.real(x), net.dequantized(_operand(net, weights, 1))]
    last = net.node("ConvTranspose", names, **attributes)
    return net.rounded(net.activated(last, spread), y)


_EXACT = 1 << 24
"""Integers below are exact in float32."""


def conv_integer(net: Network, x: Tensor) -> None:
    """ConvInteger; its int32 result is an output of the graph.

    onnxruntime's kernel saturates pairs of products on x86 without VNNI, hence the other form.
    """
    outputs = net.number(1, 5)
    kernel = [min(n, net.number(1, 3)) for n in x.shape[2:]]
    w_type = net.pick(np.int8, np.uint8)
    w = net.codes((outputs, x.shape[1], *kernel), w_type)
    w_zero = net.codes((), w_type)
    codes, zero = net.constant("w", w), net.constant("wz", w_zero)
    name = net.fresh("sums")
    sizes = tuple(n + 2 - k + 1 for n, k in zip(x.shape[2:], kernel, strict=True))
    pads = [1] * 2 * len(kernel)
    taps = np.abs(w.astype(np.int64) - int(w_zero)).reshape(outputs, -1)
    if net.qdq_only and 255 * taps.sum(1).max() >= _EXACT:
        return  # onnxruntime cannot judge it
    if net.qdq_only:  # every partial sum is exact in float32
        one = net.constant("one", 1, np.float32)
        both = [[x.name, one, net.parameters(x)[1]], [codes, one, zero]]
        last = net.node("Conv", [net.dequantized(Operand(o)) for o in both], pads=pads)
        net.builder.node("Cast", [last], name, to=onnx.TensorProto.INT32)
    else:
        names = [x.name, codes, net.parameters(x)[1], zero]
        net.builder.node("ConvInteger", names, name, pads=pads)
    net.others[name] = (np.int32, (x.shape[0], outputs, *sizes))


def dense(net: Network, x: Tensor) -> Tensor:
    """Gemm, MatMul, QLinearMatMul or QGemm with constant weights, behind a Flatten if needed."""
    inner, outputs = prod(x.shape[1:]), net.number(1, 12)
    weights = _weights(net, (inner, outputs), outputs)
    y = net.result(net.fresh("dense"), (x.shape[0], outputs), x.spread * 0.7 * inner**0.5)
    bias = net.rng.integers(-3000, 3001, outputs).astype(np.int32)
    kind = net.pick("Gemm", "MatMul", "QGemm")
    if len(x.shape) > 2:
        name = net.fresh("flat")
        net.builder.node("Flatten", [x.name], name)
        x = net.like(x, name, (x.shape[0], inner))
    if net.chance():
        operands = [Operand(net.triple(x)), _operand(net, weights, 1)]
        if kind == "MatMul":
            return net.fused("QLinearMatMul", operands, y)
        return net.fused("QGemm", operands, y, bias=_exact_bias(net, x, weights, bias))
    if kind == "MatMul":
        last = net.node("MatMul", [net.real(x), net.dequantized(_operand(net, weights, 1))])
        return net.rounded(net.activated(last, y.spread), y)
    turned = net.chance()
    if turned:
        weights = _Weights(weights.codes.T.copy(), weights.scale, weights.zero)
    names = [net.real(x), net.dequantized(_operand(net, weights, 0 if turned else 1))]
    last = net.node("Gemm", names + _bias(net, x, weights, bias, y), transB=int(turned))
    return net.rounded(net.activated(last, y.spread), y)


def product(net: Network, x: Tensor) -> Tensor:
    """MatMul of two activations: a tensor with itself transposed."""
    rank = len(x.shape)
    name = net.fresh("turned")
    net.builder.node("Transpose", [x.name], name, perm=[*range(rank - 2), rank - 1, rank - 2])
    turned = net.like(x, name, (*x.shape[:-2], x.shape[-1], x.shape[-2]))
    shape = (*x.shape[:-1], x.shape[-2])
    y = net.result(net.fresh("product"), shape, x.spread**2 * x.shape[-1] ** 0.5)
    if net.chance():
        return net.fused("QLinearMatMul", [Operand(net.triple(t)) for t in (x, turned)], y)
    return net.rounded(net.node("MatMul", [net.real(x), net.real(turned)]), y)


def _channels(net: Network, channels: int) -> tuple[int, int]:
    """Groups, and output channels: plain, depthwise with a multiplier, or in between."""
    divisors = [g for g in range(1, channels + 1) if channels % g == 0]
    group = net.pick(1, 1, channels, net.pick(*divisors))
    return group, group * net.number(1, 4)


def _weights(
    net: Network, shape: tuple[int, ...], outputs: int, *, symmetric: bool = False
) -> _Weights:
    dtype = np.int8 if symmetric else net.pick(np.int8, np.int8, np.uint8)
    size = outputs if net.chance() else None
    scale = np.array(net.scale(0.01)) * np.exp2(net.rng.integers(-1, 2, size)).astype(np.float32)
    middle = 128 if dtype is np.uint8 else 0
    zero = 0 if symmetric else middle + net.pick(0, net.number(-9, 9))
    zeros = np.full(scale.shape, zero, dtype)
    return _Weights(net.codes(shape, dtype), scale.astype(np.float32), zeros)


def _operand(net: Network, weights: _Weights, axis: int) -> Operand:
    scale = net.builder.scale(net.helper("ws"), weights.scale)
    names = (net.constant("w", weights.codes), scale, net.constant("wz", weights.zero))
    return Operand(names, axis if weights.scale.ndim else None)


def _exact_bias(net: Network, x: Tensor, weights: _Weights, bias: Array) -> Operand:
    """int32 in units of the accumulator."""
    scale = (x.scale * weights.scale).astype(np.float32)
    names = (net.constant("b", bias), net.builder.scale(net.helper("bs"), scale))
    return Operand(names, 0 if scale.ndim else None)


def _bias(net: Network, x: Tensor, weights: _Weights, bias: Array, y: Tensor) -> list[str]:
    """None; int32 in units of the accumulator or others; float."""
    kind = net.pick("none", "int32", "int32", "float", "other units")
    unit = (x.scale * weights.scale).astype(np.float32)
    if kind == "none":
        return []
    if kind in ("float", "other units"):
        net.slack[y.name] = 0.5 * float(unit.max() / y.scale)
    if kind == "float":
        return [net.constant("b", (bias + np.float32(0.3)) * unit, np.float32)]
    scale = unit * np.float32(0.37 if kind == "other units" else 1)
    names = [net.constant("b", bias), net.builder.scale(net.helper("bs"), scale)]
    return [net.node("DequantizeLinear", names, **({"axis": 0} if scale.ndim else {}))]
