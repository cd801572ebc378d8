"""Draws a graph from a seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

from fuzz import elementwise, moves, products
from fuzz.network import Array, Network, Tensor, has_law

__all__ = ["Sample", "random_sample"]

Group = Callable[[Network, Tensor], Tensor | None]

_OPERATORS = 6
_ON_IMAGES: tuple[tuple[Group, str], ...] = (
    (products.conv, "Conv"),
    (products.conv, "Conv"),
    (products.conv, "Conv"),
    (products.conv_transpose, "ConvTranspose"),
    (products.conv_integer, "ConvInteger"),
    (moves.pool, "MaxPool"),
    (moves.pool, "MaxPool"),
    (moves.global_average, "GlobalAveragePool"),
    (elementwise.excite, "HardSigmoid"),
    (elementwise.normalized, "BatchNormalization"),
)
_ON_2D: tuple[tuple[Group, str], ...] = (
    (moves.mean, "ReduceMean"),
    (moves.linear_resize, "Resize"),
)
_ON_ANYTHING: tuple[tuple[Group, str], ...] = (
    (products.dense, "Gemm"),
    (products.product, "MatMul"),
    (elementwise.binary, "Add"),
    (elementwise.binary, "Add"),
    (elementwise.shifted, "Mul"),
    (elementwise.unary, "Relu"),
    (elementwise.unary, "Relu"),
    (moves.concat, "Concat"),
    (moves.split, "Split"),
    (moves.move, "Transpose"),
    (moves.move, "Transpose"),
    (moves.argmax, "ArgMax"),
)
"""Groups for tensors of rank 3 and 4, of rank 4, and of any, with an operator they need."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """A model and its inputs; `slack` is that of `Network`."""

    seed: int
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    slack: Mapping[str, float] = field(default_factory=dict)


def random_sample(seed: int, *, qdq_only: bool = False, operators: int = _OPERATORS) -> Sample:
    """A graph of some `operators` groups; tensors that nobody reads are its outputs."""
    net = Network(seed, qdq_only=qdq_only)
    net.image(_input_shape(net))
    used: set[str] = set()
    for _ in range(operators):
        x = net.tensors[-1 - net.number(0, min(3, len(net.tensors)) - 1)]
        before = len(net.tensors)
        net.pick(*_groups(x))(net, x)
        used |= {x.name} if len(net.tensors) > before else set()
    outputs: dict[str, tuple[Any, tuple[int | str, ...]]] = {
        t.name: (t.dtype, t.shape)
        for t in net.tensors
        if t.name not in used and t.name not in net.inputs
    }
    model = net.builder.model(net.inputs, {**outputs, **net.others})
    return Sample(seed=seed, model=model, feeds=net.feeds, slack=net.slack)


def _input_shape(net: Network) -> tuple[int, ...]:
    batch, channels = net.pick(1, 1, 1, 2, 3), net.pick(net.number(1, 8), net.number(1, 40))
    kind = net.pick("image", "image", "image", "line", "vector")
    if kind == "vector":
        return batch, net.pick(channels, 8 * channels)
    spatial = [net.number(3, 11) for _ in range(2 if kind == "image" else 1)]
    return batch, channels, *spatial


def _groups(x: Tensor) -> list[Group]:
    """What can follow a tensor, as far as there is a law for it."""
    rank = len(x.shape)
    choices = [*_ON_ANYTHING]
    if rank in (3, 4):
        choices += _ON_IMAGES * 2
    if rank == 4:
        choices += _ON_2D * 2
    return [group for group, operator in choices if has_law(operator)]
