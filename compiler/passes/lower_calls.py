"""Lowers an integer graph of calls to layers of the plain VTA profile."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from vitral.compiler.ir import Call, Graph, TensorType
from vitral.compiler.ir.operators import attributes_of
from vitral.compiler.ir.ops import Concat, Op, Reshape
from vitral.compiler.ir.vta import VtaOp
from vitral.compiler.passes.eliminate_dead import eliminate_dead
from vitral.compiler.passes.simplify_views import simplify_views
from vitral.compiler.passes.vta_chains import Chain, Chains, image_shape
from vitral.compiler.passes.vta_pools import pool_layer
from vitral.compiler.passes.vta_posts import vta_posts
from vitral.compiler.schedule.vta_layer import AddTensor, Post, VtaConv, VtaLayer

__all__ = ["is_integer", "lower_calls"]

_PRODUCTS = ("nn.conv2d", "nn.dense")
_SHIFTS = ("right_shift", "left_shift")
_VIEWS = ("nn.batch_flatten", "reshape", "squeeze", "expand_dims")


def is_integer(graph: Graph) -> bool:
    """Whether a graph of calls has products of int8 values, or shifts, as `quantize` gives."""
    return any(isinstance(op, Call) and _on_integers(graph, op) for op in graph.ops)


def _on_integers(graph: Graph, op: Call) -> bool:
    kinds = {graph.types[name].dtype for name in op.inputs}
    return op.op in _SHIFTS or (op.op in _PRODUCTS and kinds == {"int8"})


def lower_calls(graph: Graph, refused: Mapping[str, str] | None = None) -> Graph:
    """Chains of int32 operators that end in a cast to int8 become `VtaOp`s, as do pools of int8.

    A chain starts with a convolution or dense layer of int8 values and constant int8 weights, or
    with one int8 value, and goes on with sums, shifts, ReLU and clip. Everything else stays as it
    is, for the CPU, and so do the operators that give the values `refused`, each with the reason
    as a notice. Concatenations and views of int8 values get the form that costs nothing.
    """
    lowering = _Lowering(graph, refused or {})
    graph = lowering.run()
    return eliminate_dead(simplify_views(eliminate_dead(graph)))


class _Lowering:
    def __init__(self, graph: Graph, refused: Mapping[str, str]) -> None:
        self._graph = graph
        self._refused = refused
        self._chains = Chains(graph)
        self._ops: list[Op] = []
        self._types = dict(graph.types)
        self._shaped: dict[tuple[str, tuple[int, ...]], str] = {}

    def run(self) -> Graph:
        for op in self._graph.ops:
            if not isinstance(op, Call) or not self._lowered(op):
                self._ops.append(op)
        notices = (f"runs on the CPU: {reason}" for reason in self._refused.values())
        graph = replace(self._graph, ops=tuple(self._ops), types=self._types)
        return graph.noted(*notices)

    def _lowered(self, op: Call) -> bool:
        """Whether the operator was replaced."""
        if self._types[op.output].dtype != "int8" or op.output in self._refused:
            return False
        if op.op == "cast":
            return self._chain(op)
        if op.op == "nn.max_pool2d":
            self._add_layer(pool_layer(self._graph, op), (op.op,))
            return True
        return self._moved(op)

    def _add_layer(self, layer: VtaLayer, computes: tuple[str, ...]) -> None:
        op = VtaOp(
            name=layer.name,
            inputs=layer.sources,
            output=layer.result,
            layer=layer,
            computes=computes,
        )
        self._ops.append(op)

    def _moved(self, op: Call) -> bool:
        if op.op == "concatenate":
            rank = len(self._types[op.output].shape)
            axis = attributes_of(op.op, op.attrs)["axis"] % rank
            self._ops.append(Concat(name=op.name, inputs=op.inputs, output=op.output, axis=axis))
        elif op.op in _VIEWS:
            self._ops.append(
                Reshape(
                    name=op.name,
                    inputs=op.inputs[:1],
                    output=op.output,
                    shape=self._types[op.output].shape,
                )
            )
        else:
            return False
        return True

    def _chain(self, cast: Call) -> bool:
        chain = self._chains.of(cast)
        shape = self._types[cast.output].shape
        if chain is None or len(shape) not in (2, 4):
            return False
        channels = shape[1]
        posts = vta_posts(chain.operations, chain.values, channels)
        if posts is None:
            return False
        self._add_chain(cast, chain, posts)
        return True

    def _add_chain(self, cast: Call, chain: Chain, posts: tuple[Post, ...]) -> None:
        """The layer on images, with views around it where values have no plane."""
        source = self._as_image(chain.source, chain.source_shape)
        out_shape = image_shape(self._types[cast.output].shape)
        posts = tuple(
            AddTensor(self._as_image(one.source, out_shape), one.shift)
            if isinstance(one, AddTensor)
            else one
            for one in posts
        )
        flat = self._types[cast.output].shape != out_shape
        result = self._new(f"{cast.output}.image", out_shape) if flat else cast.output
        layer = VtaConv(
            name=chain.name,
            source=source,
            result=result,
            in_shape=chain.source_shape,
            out_shape=out_shape,
            weight=chain.weight.astype(np.int16),
            group=chain.group,
            strides=chain.strides,
            pads=chain.pads,
            dilations=chain.dilations,
            post=posts,
            useful_macs=chain.macs,
        )
        self._add_layer(layer, (*chain.computes, cast.op))
        if flat:
            shape = self._types[cast.output].shape
            self._ops.append(
                Reshape(name=chain.name, inputs=(result,), output=cast.output, shape=shape)
            )

    def _as_image(self, name: str, shape: tuple[int, int, int, int]) -> str:
        """The value as (N, C, H, W)."""
        if self._types[name].shape == shape:
            return name
        key = name, shape
        if key not in self._shaped:
            view = self._new(f"{name}.image", shape)
            self._ops.append(Reshape(name=name, inputs=(name,), output=view, shape=shape))
            self._shaped[key] = view
        return self._shaped[key]

    def _new(self, stem: str, shape: tuple[int, ...]) -> str:
        name, number = stem, 0
        while name in self._types:
            number += 1
            name = f"{stem}{number}"
        self._types[name] = TensorType(shape, "int8")
        return name
