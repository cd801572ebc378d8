"""Darknet's layers as calls of the registry: one function each."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.darknet.heads import head_of
from vitral.compiler.frontends.darknet.sections import Section
from vitral.compiler.frontends.darknet.weights import WeightReader
from vitral.compiler.ir.build import GraphBuilder
from vitral.errors import CompileError
from vitral.runtime.detection import Head

__all__ = ["LAYERS", "Network"]

_LEAK = 0.1
_VARIANCE_FLOOR = 1e-6
"""Darknet divides by sqrt(variance) + this."""


@dataclass
class Network:
    """What has been read so far.

    `results` are value names by layer number; `heads` what stands for detections.
    """

    input: str
    graph: GraphBuilder
    weights: WeightReader
    results: list[str] = field(default_factory=list)
    heads: list[Head] = field(default_factory=list)

    @property
    def last(self) -> str:
        """The newest result, in the beginning the input."""
        return self.results[-1] if self.results else self.input

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the newest result."""
        return self.graph.types[self.last].shape


def _convolutional(net: Network, section: Section) -> str:
    section.refuse("xnor", "binary")
    if section.whole("dilation", 1) != 1:
        raise section.misfit("dilation", "1", section.options["dilation"])
    channels, size = net.shape[1], section.whole("size", 1)
    filters, groups = section.whole("filters", 1), section.whole("groups", 1)
    stride = section.whole("stride", 1)
    padding = size // 2 if section.flag("pad") else section.whole("padding", 0)
    if min(size, filters, groups, stride) < 1 or padding < 0 or channels % groups:
        raise CompileError(
            f"{section.where}: needs size, filters, stride of at least 1 and groups that divide"
            f" {channels} channels, got size={size}, filters={filters}, stride={stride},"
            f" groups={groups}"
        )
    first = _offsets(net, section, filters)
    weight = net.weights.take((filters, channels // groups, size, size), section.where)
    name = f"conv{section.number}"
    made = net.graph.call(
        "nn.conv2d",
        net.last,
        net.graph.constant(weight, f"{name}.weight"),
        name=name,
        channels=filters,
        kernel_size=(size, size),
        strides=(stride, stride),
        padding=(padding, padding),
        groups=groups,
    )
    return _activated(net, section, first(made, name), name)


def _connected(net: Network, section: Section) -> str:
    outputs, inputs = section.whole("output", 1), int(np.prod(net.shape[1:]))
    name = f"dense{section.number}"
    # Biases, weights, and then batch normalization: another order than that of convolutions.
    bias = net.weights.take((outputs,), section.where)
    weight = net.weights.take((outputs, inputs), section.where)
    x = net.last
    if len(net.shape) != 2:
        x = net.graph.call("nn.batch_flatten", x, name=f"{name}.flat")
    made = net.graph.call("nn.dense", x, weight, name=name, units=outputs)
    if section.flag("batch_normalize"):
        made = _batch_norm(net, made, bias, _norms(net, section, outputs), name)
    else:
        made = net.graph.call("nn.bias_add", made, bias, name=f"{name}.bias", axis=1)
    return _activated(net, section, made, name)


def _offsets(net: Network, section: Section, filters: int) -> Callable[[str, str], str]:
    """Takes what stands in front of the weights; returns what appends it behind the sums."""
    bias = net.weights.take((filters,), section.where)
    if not section.flag("batch_normalize"):
        return lambda made, name: net.graph.call("nn.bias_add", made, bias, name=f"{name}.bias")
    norms = _norms(net, section, filters)
    return lambda made, name: _batch_norm(net, made, bias, norms, name)


def _norms(net: Network, section: Section, channels: int) -> list[npt.NDArray[np.float32]]:
    """Gamma, mean and variance."""
    return [net.weights.take((channels,), section.where) for _ in range(3)]


def _batch_norm(
    net: Network,
    made: str,
    beta: npt.NDArray[np.float32],
    norms: list[npt.NDArray[np.float32]],
    name: str,
) -> str:
    gamma, mean, variance = norms
    spread = np.sqrt(variance.astype(np.float64)) + _VARIANCE_FLOOR
    squared = (spread * spread).astype(np.float32)
    return net.graph.call(
        "nn.batch_norm", made, gamma, beta, mean, squared, name=f"{name}.norm", epsilon=0.0
    )


def _activated(net: Network, section: Section, x: str, name: str) -> str:
    kind = section.options.get("activation", "logistic")
    if kind == "linear":
        return x
    if kind == "leaky":
        return net.graph.call("nn.leaky_relu", x, name=f"{name}.leaky", alpha=_LEAK)
    calls = {"relu": "nn.relu", "logistic": "sigmoid", "tanh": "tanh"}
    if kind == "mish":
        return _mish(net, x, name)
    if kind == "swish":
        gate = net.graph.call("sigmoid", x, name=f"{name}.gate")
        return net.graph.call("multiply", x, gate, name=f"{name}.swish")
    if kind not in calls:
        known = ", ".join(["linear", "leaky", "mish", "swish", *calls])
        raise section.misfit("activation", f"one of {known}", kind)
    return net.graph.call(calls[kind], x, name=f"{name}.{kind}")


def _mish(net: Network, x: str, name: str) -> str:
    """x tanh(log(1 + e^x)) as x (1 - 2 / ((1 + e^x)^2 + 1)), which no e^x can make nan."""
    one, two = np.float32(1), np.float32(2)
    grown = net.graph.call("add", net.graph.call("exp", x, name=f"{name}.exp"), one)
    squared = net.graph.call("multiply", grown, grown)
    part = net.graph.call("divide", two, net.graph.call("add", squared, one))
    return net.graph.call("multiply", x, net.graph.call("subtract", one, part), name=f"{name}.mish")


def _maxpool(net: Network, section: Section) -> str:
    stride = section.whole("stride", 1)
    size = section.whole("size", stride)
    padding = section.whole("padding", size - 1)
    if min(size, stride) < 1 or padding < 0:
        raise CompileError(f"{section.where}: needs size and stride of at least 1, got {size}")
    before = padding // 2
    pads = (before, before, padding - before, padding - before)
    return net.graph.call(
        "nn.max_pool2d",
        net.last,
        name=f"pool{section.number}",
        pool_size=(size, size),
        strides=(stride, stride),
        padding=pads,
    )


def _avgpool(net: Network, section: Section) -> str:
    return net.graph.call("nn.global_avg_pool2d", net.last, name=f"pool{section.number}")


def _upsample(net: Network, section: Section) -> str:
    if section.real("scale", 1.0) != 1.0:
        raise CompileError(f"{section.where}: scale is not supported; remove it")
    stride = section.whole("stride", 2)
    if stride < 1:
        raise section.misfit("stride", "at least 1", str(stride))
    return net.graph.call("nn.upsampling", net.last, name=f"upsample{section.number}", scale=stride)


def _route(net: Network, section: Section) -> str:
    names = [_layer(net, section, number) for number in section.wholes("layers")]
    if not names:
        raise CompileError(f"{section.where}: needs layers=, got none")
    groups, part = section.whole("groups", 1), section.whole("group_id", 0)
    name = f"route{section.number}"
    if groups > 1:
        names = [_part(net, section, item, groups, part) for item in names]
    if len(names) == 1:
        return names[0]
    return net.graph.call("concatenate", *names, name=name, axis=1)


def _part(net: Network, section: Section, name: str, groups: int, part: int) -> str:
    shape = net.graph.types[name].shape
    if shape[1] % groups or not 0 <= part < groups:
        raise CompileError(
            f"{section.where}: needs groups that divide {shape[1]} channels and group_id below"
            f" it, got groups={groups}, group_id={part}"
        )
    step = shape[1] // groups
    begin = (0, part * step, *(0 for _ in shape[2:]))
    end = (shape[0], (part + 1) * step, *shape[2:])
    return net.graph.call("strided_slice", name, name=f"part{section.number}", begin=begin, end=end)


def _shortcut(net: Network, section: Section) -> str:
    (number,) = section.wholes("from") or (None,)
    if number is None:
        raise CompileError(f"{section.where}: needs from=, got none")
    other = _layer(net, section, number)
    x, y = net.graph.types[net.last], net.graph.types[other]
    if x != y:
        raise CompileError(f"{section.where}: needs layers of one shape, got {x} and {y}")
    name = f"add{section.number}"
    made = net.graph.call("add", net.last, other, name=name)
    return _activated(net, section, made, name)


def _layer(net: Network, section: Section, number: int) -> str:
    """Result of a layer, counted from here where negative."""
    wanted = number if number >= 0 else section.number + number
    if not 0 <= wanted < len(net.results):
        raise CompileError(
            f"{section.where}: needs a layer before this one (0 to {len(net.results) - 1}), got"
            f" {number}"
        )
    return net.results[wanted]


def _softmax(net: Network, section: Section) -> str:
    if section.whole("groups", 1) != 1:
        raise section.misfit("groups", "1", section.options["groups"])
    x = net.last
    if len(net.shape) != 2:
        x = net.graph.call("nn.batch_flatten", x, name=f"flat{section.number}")
    return net.graph.call("nn.softmax", x, name=f"softmax{section.number}", axis=-1)


def _dropout(net: Network, section: Section) -> str:
    return net.last


def _detections(net: Network, section: Section) -> str:
    """The network ends here: what a head makes of its input is left to the host."""
    image = net.graph.types[net.input].shape[2:]
    net.heads.append(head_of(section, net.last, net.shape, (image[0], image[1])))
    return net.last


LAYERS: dict[str, Callable[[Network, Section], str]] = {
    "convolutional": _convolutional,
    "conv": _convolutional,
    "connected": _connected,
    "maxpool": _maxpool,
    "max": _maxpool,
    "avgpool": _avgpool,
    "avg": _avgpool,
    "upsample": _upsample,
    "route": _route,
    "shortcut": _shortcut,
    "softmax": _softmax,
    "dropout": _dropout,
    "region": _detections,
    "yolo": _detections,
}
"""Section name to what translates it."""
