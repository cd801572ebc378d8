"""Random small quantized networks, as QDQ groups and QOperator nodes mixed.

    model, feeds = random_graph(seed)

Every tensor is int8 or uint8 with a scale and zero point of its own; output scales are chosen so
that values spread over the type. Shapes stay small, so that a graph runs in milliseconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from cases import ModelBuilder

__all__ = ["random_graph"]

Array = npt.NDArray[Any]
_CONTRIB = "com.microsoft"


@dataclass(frozen=True)
class Tensor:
    """A quantized tensor of the model; `spread` is the standard deviation of its real values."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    scale: float
    zero: int
    spread: float


class Network:
    """Grows a model, one operator at a time."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 0xC0DE])
        self.builder = ModelBuilder(opset=int(self.rng.choice([13, 19, 21])), contrib=True)
        self.inputs: dict[str, tuple[Any, tuple[int | str, ...]]] = {}
        self.feeds: dict[str, Array] = {}
        self.tensors: list[Tensor] = []
        self._count = 0

    def fresh(self, stem: str) -> str:
        """A new tensor name."""
        self._count += 1
        return f"{stem}{self._count}"

    def pick(self, *values: Any) -> Any:
        """One of `values`."""
        return values[int(self.rng.integers(len(values)))]

    def result(self, name: str, shape: tuple[int, ...], spread: float) -> Tensor:
        """A tensor with random type and parameters that fit real values of `spread`."""
        dtype = self.pick(np.int8, np.uint8)
        scale = float(np.float32(spread / self.rng.uniform(25, 60)))
        middle = 128 if dtype is np.uint8 else 0
        tensor = Tensor(name, shape, dtype, scale, middle + int(self.rng.integers(-40, 41)), spread)
        self.tensors.append(tensor)
        return tensor

    def zero(self, tensor: Tensor) -> Array:
        """The zero point as an array of the tensor's type."""
        return np.array(tensor.zero, tensor.dtype)

    def triple(self, tensor: Tensor) -> list[str]:
        """Inputs (data, scale, zero point) of a QLinear operator."""
        stem = self.fresh(f"{tensor.name}_p")
        scale = self.builder.scale(f"{stem}_scale", tensor.scale)
        return [tensor.name, scale, self.builder.constant(f"{stem}_zero", self.zero(tensor))]

    def real(self, tensor: Tensor) -> str:
        """A DequantizeLinear of the tensor."""
        name = self.fresh(f"{tensor.name}_real")
        return self.builder.dequantize(tensor.name, name, tensor.scale, self.zero(tensor))

    def rounded(self, source: str, tensor: Tensor) -> Tensor:
        """A QuantizeLinear that makes the tensor."""
        self.builder.quantize(source, tensor.name, tensor.scale, self.zero(tensor))
        return tensor

    def activated(self, source: str, spread: float) -> str:
        """Nothing, a Relu, or a Clip."""
        kind = self.pick("", "", "Relu", "Clip")
        if not kind:
            return source
        name = self.fresh("act")
        if kind == "Relu":
            return self.builder.node("Relu", [source], name)
        low = self.builder.scale(f"{name}_low", -spread * float(self.rng.uniform(0, 1)))
        high = self.builder.scale(f"{name}_high", spread * float(self.rng.uniform(0.5, 2)))
        return self.builder.node("Clip", [source, *self.pick([low, high], [low], ["", high])], name)

    def image(self) -> Tensor:
        """A new graph input (N, C, H, W)."""
        shape = tuple(int(v) for v in self.rng.integers([1, 1, 5, 5], [3, 9, 11, 11]))
        name = self.fresh("x")
        tensor = self.result(name, shape, 1.0)
        limits = np.iinfo(tensor.dtype)
        self.inputs[name] = (tensor.dtype, shape)
        codes = self.rng.integers(limits.min, limits.max + 1, shape)
        self.feeds[name] = codes.astype(tensor.dtype)
        return tensor


def conv(net: Network, x: Tensor) -> Tensor:
    """QDQ or QLinearConv with random geometry, types, per-channel scales and bias."""
    rng, b = net.rng, net.builder
    n, channels, height, width = x.shape
    group = net.pick(1, 1, channels)
    outputs = group * int(rng.integers(1, 5))
    kernel = [int(min(k, s)) for k, s in zip(rng.integers(1, 4, 2), x.shape[2:], strict=True)]
    strides, pads = [int(v) for v in rng.integers(1, 3, 2)], [int(v) for v in rng.integers(0, 3, 4)]
    per_channel = bool(rng.integers(0, 2))
    w_dtype = net.pick(np.int8, np.uint8)
    limits = np.iinfo(w_dtype)
    w = rng.integers(limits.min, limits.max + 1, (outputs, channels // group, *kernel))
    size = outputs if per_channel else None
    w_scale = (0.01 * np.exp2(rng.uniform(-1, 1, size))).astype(np.float32)
    middle = 128 if w_dtype is np.uint8 else 0
    w_zero = np.full(w_scale.shape, middle + int(rng.integers(-9, 10)), w_dtype)
    terms = channels // group * kernel[0] * kernel[1]
    spread = x.spread * 0.7 * terms**0.5
    bias = rng.integers(-3000, 3001, outputs).astype(np.int32)
    name = net.fresh("conv")
    attributes = {"strides": strides, "pads": pads, "group": group}
    shape = (
        n,
        outputs,
        (height + pads[0] + pads[2] - kernel[0]) // strides[0] + 1,
        (width + pads[1] + pads[3] - kernel[1]) // strides[1] + 1,
    )
    y = net.result(name, shape, spread)
    constant = b.constant(f"{name}_w", w.astype(w_dtype))
    product = np.float32(x.scale) * w_scale
    if rng.integers(0, 2):
        names = [*net.triple(x), constant, b.scale(f"{name}_ws", w_scale)]
        names += [b.constant(f"{name}_wz", w_zero), *net.triple(y)[1:]]
        names += [b.constant(f"{name}_b", bias)] if rng.integers(0, 2) else []
        b.node("QLinearConv", names, name, **attributes)
        return y
    axis = 0 if per_channel else None
    names = [net.real(x), b.dequantize(constant, f"{name}_wr", w_scale, w_zero, axis)]
    kind = net.pick("none", "int32", "float", "other scale")
    if kind == "float":
        names.append(b.constant(f"{name}_b", bias.astype(np.float32) * product))
    elif kind != "none":
        scale = product * np.float32(1 if kind == "int32" else 0.37)
        names.append(b.dequantize(b.constant(f"{name}_b", bias), f"{name}_br", scale, None, axis))
    last = b.node("Conv", names, net.fresh("sum"), **attributes)
    return net.rounded(net.activated(last, spread), y)


def dense(net: Network, x: Tensor) -> Tensor:
    """Flatten and Gemm, or MatMul, with per-column or one scale."""
    rng, b = net.rng, net.builder
    batch, inner = x.shape[0], int(np.prod(x.shape[1:]))
    outputs = int(rng.integers(1, 12))
    w = rng.integers(-127, 128, (inner, outputs)).astype(np.int8)
    per_column = bool(rng.integers(0, 2))
    w_scale = (0.01 * np.exp2(rng.uniform(-1, 1, outputs if per_column else None))).astype("f4")
    spread = x.spread * 0.7 * inner**0.5
    name = net.fresh("dense")
    flat = net.real(x)
    if len(x.shape) > 2:
        flat = b.node("Flatten", [flat], net.fresh("flat"))
    transposed = bool(rng.integers(0, 2))
    gemm = bool(rng.integers(0, 2))
    matrix = w.T.copy() if gemm and transposed else w
    axis = (0 if gemm and transposed else 1) if per_column else None
    right = b.dequantize(b.constant(f"{name}_w", matrix), f"{name}_wr", w_scale, None, axis)
    if gemm:
        bias = b.constant(f"{name}_b", (rng.normal(size=outputs) * spread).astype(np.float32))
        last = b.node("Gemm", [flat, right, bias], net.fresh("sum"), transB=int(transposed))
    else:
        last = b.node("MatMul", [flat, right], net.fresh("sum"))
    y = net.result(name, (batch, outputs), spread)
    return net.rounded(net.activated(last, spread), y)


def add(net: Network, x: Tensor) -> Tensor:
    """Add, Sub or Mul with another tensor of a shape that broadcasts, or QLinearAdd."""
    b = net.builder
    others = [t for t in net.tensors if t.shape == x.shape]
    other = others[int(net.rng.integers(len(others)))]
    name, op = net.fresh("add"), net.pick("Add", "Add", "Sub", "Mul")
    spread = x.spread * other.spread if op == "Mul" else x.spread + other.spread
    y = net.result(name, x.shape, spread)
    if op == "Add" and net.rng.integers(0, 2):
        names = [*net.triple(x), *net.triple(other), *net.triple(y)[1:]]
        b.node("QLinearAdd", names, name, domain=_CONTRIB)
        return y
    last = b.node(op, [net.real(x), net.real(other)], net.fresh("sum"))
    return net.rounded(net.activated(last, spread), y)


def add_constant(net: Network, x: Tensor) -> Tensor:
    """A quantized constant, one number, or one number per channel of a rank 4 tensor."""
    b = net.builder
    name = net.fresh("shift")
    shape = net.pick((1,), (1, x.shape[1], *[1] * (len(x.shape) - 2)))
    codes = net.rng.integers(-128, 128, shape).astype(np.int8)
    constant = b.dequantize(
        b.constant(f"{name}_c", codes), f"{name}_cr", x.spread / 60, np.array(3, np.int8)
    )
    order = net.pick([0, 1], [1, 0])
    names = [net.real(x), constant]
    last = b.node(net.pick("Add", "Sub"), [names[i] for i in order], net.fresh("sum"))
    return net.rounded(last, net.result(name, x.shape, 2 * x.spread))


def pool(net: Network, x: Tensor) -> Tensor:
    """MaxPool, AveragePool or GlobalAveragePool with ceil mode, pads and count_include_pad."""
    b, rng = net.builder, net.rng
    op = net.pick("MaxPool", "AveragePool", "GlobalAveragePool")
    name = net.fresh("pool")
    if op == "GlobalAveragePool":
        shape = (*x.shape[:2], 1, 1)
        y = net.result(name, shape, x.spread / 2)
        if rng.integers(0, 2):
            names = [*net.triple(x), *net.triple(y)[1:]]
            b.node("QLinearGlobalAveragePool", names, name, domain=_CONTRIB)
            return y
        return net.rounded(b.node(op, [net.real(x)], net.fresh("mean")), y)
    kernel = [int(min(k, n)) for k, n in zip(rng.integers(1, 4, 2), x.shape[2:], strict=True)]
    strides = [int(v) for v in rng.integers(1, 3, 2)]
    pads = [int(rng.integers(0, (kernel[i % 2] + 1) // 2)) for i in range(4)]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    attributes["ceil_mode"] = int(rng.integers(0, 2))
    if op == "AveragePool":
        attributes["count_include_pad"] = int(rng.integers(0, 2))
    last = b.node(op, [net.real(x)], net.fresh("window"), **attributes)
    spatial = []
    for i in range(2):
        room = x.shape[2 + i] + pads[i] + pads[2 + i] - kernel[i]
        steps = -(-room // strides[i]) if attributes["ceil_mode"] else room // strides[i]
        if attributes["ceil_mode"] and steps * strides[i] >= x.shape[2 + i] + pads[i]:
            steps -= 1
        spatial.append(steps + 1)
    return net.rounded(last, net.result(name, (*x.shape[:2], *spatial), x.spread / 2))


def concat(net: Network, x: Tensor) -> Tensor:
    """Concat along channels, or QLinearConcat."""
    b = net.builder
    others = [t for t in net.tensors if t.shape[2:] == x.shape[2:] and t.shape[0] == x.shape[0]]
    others = [t for t in others if len(t.shape) == len(x.shape)]
    other = others[int(net.rng.integers(len(others)))]
    name = net.fresh("cat")
    shape = (x.shape[0], x.shape[1] + other.shape[1], *x.shape[2:])
    y = net.result(name, shape, max(x.spread, other.spread))
    if net.rng.integers(0, 2):
        names = [*net.triple(y)[1:], *net.triple(x), *net.triple(other)]
        b.node("QLinearConcat", names, name, domain=_CONTRIB, axis=1)
        return y
    last = b.node("Concat", [net.real(x), net.real(other)], net.fresh("joined"), axis=1)
    return net.rounded(last, y)


def unary(net: Network, x: Tensor) -> Tensor:
    """A standalone Relu, Clip or LeakyRelu, or a copy with other parameters."""
    b = net.builder
    name = net.fresh("unary")
    last = net.real(x)
    op = net.pick("copy", "Relu", "LeakyRelu")
    if op != "copy":
        last = b.node(op, [last], net.fresh("act"))
    if net.rng.integers(0, 2):
        return net.rounded(last, net.result(name, x.shape, x.spread))
    same = Tensor(name, x.shape, x.dtype, x.scale, x.zero, x.spread)
    net.tensors.append(same)
    return net.rounded(last, same)


def move(net: Network, x: Tensor) -> Tensor:
    """Transpose or Reshape, behind a DQ or on the codes themselves."""
    b = net.builder
    name = net.fresh("move")
    behind_dq = bool(net.rng.integers(0, 2))
    source = net.real(x) if behind_dq else x.name
    target = net.fresh("moved") if behind_dq else name
    if net.rng.integers(0, 2):
        perm = [0, *(int(v) + 1 for v in net.rng.permutation(len(x.shape) - 1))]
        shape = tuple(x.shape[i] for i in perm)
        b.node("Transpose", [source], target, perm=perm)
    else:
        shape = (x.shape[0], x.shape[1], -1) if len(x.shape) == 4 else (0, -1, 1)
        b.node("Reshape", [source, b.constant(f"{name}_s", np.array(shape))], target)
        rest = int(np.prod(x.shape[2:])) if len(x.shape) == 4 else 1
        shape = (x.shape[0], int(np.prod(x.shape[1:])) // rest, rest)
    moved = Tensor(name, shape, x.dtype, x.scale, x.zero, x.spread)
    net.tensors.append(moved)
    return net.rounded(target, moved) if behind_dq else moved


_ON_IMAGES: tuple[Callable[[Network, Tensor], Tensor], ...] = (conv, conv, conv, pool)
_ON_ANYTHING: tuple[Callable[[Network, Tensor], Tensor], ...] = (
    add,
    add_constant,
    concat,
    unary,
    dense,
    move,
)


def random_graph(seed: int, *, operators: int = 6) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model with some `operators` groups, and its inputs; tensors nobody reads are outputs."""
    net = Network(seed)
    net.image()
    used: set[str] = set()
    for _ in range(operators):
        x = net.tensors[-1 - int(net.rng.integers(min(3, len(net.tensors))))]
        choices = _ON_ANYTHING + (_ON_IMAGES * 2 if len(x.shape) == 4 else ())
        choices[int(net.rng.integers(len(choices)))](net, x)
        used.add(x.name)
    outputs = [t for t in net.tensors if t.name not in used and t.name not in net.inputs]
    outs: dict[str, tuple[Any, tuple[int | str, ...]]] = {
        t.name: (t.dtype, t.shape) for t in outputs
    }
    return net.builder.model(net.inputs, outs), net.feeds
