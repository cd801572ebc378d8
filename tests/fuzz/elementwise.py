"""Groups that work element by element, and squeeze-and-excite, which is made of them."""

from typing import Any

import numpy as np

from fuzz.network import Network, Operand, Tensor

__all__ = ["binary", "excite", "normalized", "shifted", "unary"]

_UNARY = (
    *("copy", "copy", "Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "HardSigmoid"),
    *("HardSwish", "SiLU", "PRelu", "Elu", "Celu", "Softplus", "Softsign", "Mish", "Gelu"),
    *("Neg", "Abs"),
)
_SINCE = {"HardSwish": 14, "Mish": 18, "Gelu": 20}
_BOUNDED = {"Sigmoid": 0.3, "Tanh": 0.6, "HardSigmoid": 0.3}
"""Spread of results that do not grow with their input."""


def binary(net: Network, x: Tensor) -> Tensor:
    """Add, Sub or Mul of tensors whose shapes are the same or broadcast; QLinearAdd, QLinearMul."""
    fitting = [t for t in net.tensors if _result_shape(t, x) is not None]
    other = net.pick(*fitting)
    shape = _result_shape(other, x)
    assert shape is not None
    op = net.pick("Add", "Add", "Sub", "Mul", "Max", "Min")
    spread = x.spread * other.spread if op == "Mul" else x.spread + other.spread
    y = net.result(net.fresh("both"), shape, spread)
    a, b = net.pick((x, other), (other, x))
    if op in ("Add", "Mul") and net.chance():
        return net.fused(f"QLinear{op}", [Operand(net.triple(t)) for t in (a, b)], y)
    last = net.node(op, [net.real(a), net.real(b)])
    return net.rounded(net.activated(last, spread), y)


def shifted(net: Network, x: Tensor) -> Tensor:
    """With a quantized constant: one number, or one per channel."""
    shape = net.pick((), (1,), (1, x.shape[1], *[1] * (len(x.shape) - 2)))
    scale = net.builder.scale(net.helper("scale"), net.scale(x.spread / 60))
    names = [net.constant("c", net.codes(shape, np.int8)), scale]
    names.append(net.constant("zero", np.array(3, np.int8)))
    constant = net.node("DequantizeLinear", names)
    order = net.pick([0, 1], [1, 0])
    op = net.pick("Add", "Sub", "Mul")
    both = [net.real(x), constant]
    last = net.node(op, [both[i] for i in order])
    spread = x.spread**2 * 1.3 if op == "Mul" else 2 * x.spread
    return net.rounded(last, net.result(net.fresh("shifted"), x.shape, spread))


def unary(net: Network, x: Tensor) -> Tensor:
    """One function of one tensor, into scales of its own or its input's."""
    op = net.pick(*(op for op in _UNARY if net.builder.opset >= _SINCE.get(op, 0)))
    name = net.fresh("unary")
    if op in ("LeakyRelu", "Sigmoid") and net.chance(0.3):
        y = net.result(name, x.shape, _BOUNDED.get(op, x.spread))
        attributes: dict[str, Any] = {"alpha": 0.1} if op == "LeakyRelu" else {}
        return net.fused(f"QLinear{op}", [Operand(net.triple(x))], y, **attributes)
    last = _function(net, op, x, net.real(x))
    if op == "copy" or net.chance(0.8):
        return net.rounded(last, net.result(name, x.shape, _BOUNDED.get(op, x.spread)))
    return net.rounded(last, net.like(x, name, x.shape))


def normalized(net: Network, x: Tensor) -> Tensor:
    """BatchNormalization, on its own or behind a 1x1 convolution without bias."""
    last, channels = net.real(x), x.shape[1]
    spread, unit = x.spread, 0.0
    if net.chance():
        codes = net.codes((channels, channels, *[1] * (len(x.shape) - 2)), np.int8)
        w_scale = net.scale(0.01)
        names = [net.constant("w", codes), net.builder.scale(net.helper("ws"), w_scale)]
        last = net.node("Conv", [last, net.node("DequantizeLinear", names)])
        spread *= 0.7 * channels**0.5
        unit = float(x.scale * w_scale)
    gain, bias, mean = (net.rng.normal(size=channels) for _ in range(3))
    variance = net.rng.uniform(0.3, 2, channels)
    parts = (0.6 + np.abs(gain), bias * spread / 2, mean * spread / 2, variance)
    names = [net.constant("bn", part, np.float32) for part in parts]
    last = net.node("BatchNormalization", [last, *names])
    y = net.result(net.fresh("normal"), x.shape, spread * 1.5)
    # folded into the convolution's bias, which is a whole number of units
    net.slack[y.name] = 0.5 * unit * float((parts[0] / variance**0.5).max() / y.scale)
    return net.rounded(net.activated(last, y.spread), y)


def excite(net: Network, x: Tensor) -> Tensor:
    """A channel's mean through two layers and a gate, times the channel."""
    mean = net.result(net.fresh("mean"), (*x.shape[:2], *[1] * (len(x.shape) - 2)), x.spread / 2)
    net.rounded(net.node("GlobalAveragePool", [net.real(x)]), mean)
    hidden = _pointwise(net, mean, net.number(1, 4), "Relu")
    gate = _pointwise(net, hidden, x.shape[1], net.pick("HardSigmoid", "Sigmoid"))
    y = net.result(net.fresh("excited"), x.shape, x.spread / 2)
    return net.rounded(net.node("Mul", [net.real(x), net.real(gate)]), y)


def _pointwise(net: Network, x: Tensor, outputs: int, function: str) -> Tensor:
    codes = net.codes((outputs, *x.shape[1:]), np.int8)
    names = [net.constant("w", codes), net.builder.scale(net.helper("ws"), net.scale(0.01))]
    last = net.node("Conv", [net.real(x), net.node("DequantizeLinear", names)])
    spread = x.spread * 0.7 * x.shape[1] ** 0.5
    shape = (x.shape[0], outputs, *x.shape[2:])
    if function == "Relu":
        last = net.node("Relu", [last])
        return net.rounded(last, net.result(net.fresh("hidden"), shape, spread))
    plain = net.rounded(last, net.result(net.fresh("plain"), shape, spread))
    gate = net.node(function, [net.real(plain)])
    return net.rounded(gate, net.result(net.fresh("gate"), shape, 0.3))


def _function(net: Network, op: str, x: Tensor, source: str) -> str:
    if op == "copy":
        return source
    if op == "Clip":
        bounds = [net.constant("bound", v * x.spread, np.float32) for v in (-0.7, 0.9)]
        return net.node("Clip", [source, *bounds])
    if op == "SiLU":
        return net.node("Mul", [source, net.node("Sigmoid", [source])])
    if op == "PRelu":
        slopes = net.rng.uniform(-0.5, 0.9, (x.shape[1], *[1] * (len(x.shape) - 2)))
        one = net.chance()
        slope = net.constant("slope", slopes.reshape(-1)[:1] if one else slopes, np.float32)
        return net.node("PRelu", [source, slope])
    alphas = {"LeakyRelu": 0.1, "HardSigmoid": 1 / 6, "Elu": 0.7, "Celu": 1.3}
    attributes = {"alpha": alphas[op]} if op in alphas and net.chance() else {}
    return net.node(op, [source], **attributes)


def _result_shape(a: Tensor, b: Tensor) -> tuple[int, ...] | None:
    """Of two tensors of one rank that broadcast without growing much."""
    if len(a.shape) != len(b.shape):
        return None
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return None
    return shape if shape in (a.shape, b.shape) else None
