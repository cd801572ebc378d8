"""Draws a graph from a seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

from fuzz import elementwise, moves, products
from fuzz.network import Array, Network, Tensor

__all__ = ["Sample", "random_sample"]

Group = Callable[[Network, Tensor], Tensor | None]

_OPERATORS = 6
_ON_IMAGES: tuple[Group, ...] = (
    *(3 * (products.conv,)),
    products.conv_transpose,
    products.conv_integer,
    *(2 * (moves.pool,)),
    moves.global_average,
    elementwise.excite,
    elementwise.normalized,
)
_ON_2D: tuple[Group, ...] = (moves.mean, moves.linear_resize)
_ON_ANYTHING: tuple[Group, ...] = (
    products.dense,
    products.product,
    *(2 * (elementwise.binary,)),
    elementwise.shifted,
    *(2 * (elementwise.unary,)),
    moves.concat,
    moves.split,
    *(2 * (moves.move,)),
    moves.argmax,
)
"""Groups for tensors of rank 3 and 4, of rank 4, and of any."""


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
    """What can follow a tensor."""
    rank = len(x.shape)
    choices = [*_ON_ANYTHING]
    if rank in (3, 4):
        choices += _ON_IMAGES * 2
    if rank == 4:
        choices += _ON_2D * 2
    return choices
