"""Finds chains of int32 operators between int8 values: `Chains`."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Call, Graph
from vitral.compiler.ir.operators import attributes_of
from vitral.compiler.ir.operators.shapes import four_pads, two
from vitral.compiler.passes.vta_posts import AddConstant, Clamp, Interval, Operation, Shift
from vitral.compiler.schedule.vta_layer import AddTensor

__all__ = ["Chain", "Chains"]

_INT32 = (-(1 << 31), (1 << 31) - 1)
_VIEWS = ("nn.batch_flatten", "reshape", "squeeze", "expand_dims")

Shape = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """A convolution of the int8 value `source`, seen as (N, C, H, W), and what follows it.

    `weight` is int8 (O, C / group, KH, KW), `values` what its sums can be; `computes` names the
    operators in their order.
    """

    name: str
    source: str
    source_shape: Shape
    weight: npt.NDArray[np.int8]
    values: Interval
    macs: int
    group: int = 1
    strides: tuple[int, int] = (1, 1)
    pads: Shape = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)
    operations: tuple[Operation, ...] = ()
    computes: tuple[str, ...] = ()

    def then(self, op: Call, operation: Operation) -> "Chain":
        return replace(
            self,
            operations=(*self.operations, operation),
            computes=(*self.computes, op.op),
        )


class Chains:
    """The chains of a graph. A value inside a chain has one reader: nobody else needs it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._writers = graph.producers()
        self._readers = graph.consumers()

    def of(self, cast: Call) -> Chain | None:
        """The chain that ends in a cast of int32 to int8."""
        return self._chain(cast.inputs[0])

    def _chain(self, name: str) -> Chain | None:
        op = self._writers.get(name)
        if not isinstance(op, Call) or self._graph.types[name].dtype != "int32":
            return None
        if op.op == "cast":
            return self._tensor(op)
        if name in self._graph.outputs or len(self._readers[name]) != 1:
            return None
        match op.op:
            case "nn.conv2d":
                return self._conv2d(op)
            case "nn.dense":
                return self._dense(op)
            case "add":
                return self._add(op)
            case "nn.relu" | "clip":
                chain = self._chain(op.inputs[0])
                return None if chain is None else chain.then(op, _clamp(op))
            case "right_shift" | "left_shift":
                return self._shift(op)
            case _:
                return None

    def _array(self, name: str) -> npt.NDArray[Any] | None:
        return self._graph.constants.get(name)

    def _tensor(self, cast: Call) -> Chain | None:
        """An int8 value as the convolution with one weight of 1 for each channel."""
        (name,) = cast.inputs
        type_ = self._graph.types[name]
        if type_.dtype != "int8" or len(type_.shape) not in (2, 4) or self._is_constant(name):
            return None
        shape = image_shape(type_.shape)
        return Chain(
            name=cast.name,
            source=name,
            source_shape=shape,
            weight=np.ones((shape[1], 1, 1, 1), np.int8),
            values=(-128, 127),
            macs=0,
            group=shape[1],
            computes=(cast.op,),
        )

    def _is_constant(self, name: str) -> bool:
        return name in self._graph.constants

    def _operands(self, op: Call) -> tuple[str, npt.NDArray[np.int8]] | None:
        source, weight = op.inputs[0], self._array(op.inputs[1])
        if weight is None or weight.dtype != np.int8 or self._is_constant(source):
            return None
        return (source, weight) if self._graph.types[source].dtype == "int8" else None

    def _conv2d(self, op: Call) -> Chain | None:
        operands = self._operands(op)
        if operands is None:
            return None
        source, weight = operands
        attrs = attributes_of(op.op, op.attrs)
        results = self._graph.types[op.output].size
        return Chain(
            name=op.name,
            source=source,
            source_shape=image_shape(self._graph.types[source].shape),
            weight=weight,
            values=_sums(weight),
            macs=results * int(np.prod(weight.shape[1:])),
            computes=(op.op,),
            group=attrs["groups"],
            strides=two(attrs["strides"], ""),
            pads=four_pads(attrs["padding"]),
            dilations=two(attrs["dilation"], ""),
        )

    def _dense(self, op: Call) -> Chain | None:
        """A convolution over the whole plane, where the input is a flattened image."""
        operands = self._operands(op)
        if operands is None or len(self._graph.types[op.output].shape) != 2:
            return None
        source, weight = operands
        image = self._unflattened(source)
        shape = image_shape(self._graph.types[image].shape)
        return Chain(
            name=op.name,
            source=image,
            source_shape=shape,
            weight=weight.reshape(len(weight), *shape[1:]),
            values=_sums(weight),
            macs=shape[0] * weight.size,
            computes=(op.op,),
        )

    def _unflattened(self, name: str) -> str:
        """The image that a value of rank 2 is a view of, sample by sample; else the value."""
        view, op = name, self._writers.get(name)
        while isinstance(op, Call) and op.op in _VIEWS:
            view = op.inputs[0]
            op = self._writers.get(view)
            shape = self._graph.types[view].shape
            if len(shape) == 4 and shape[0] == self._graph.types[name].shape[0]:
                return view
        return name

    def _add(self, op: Call) -> Chain | None:
        for value, other in (op.inputs, op.inputs[::-1]):
            if self._graph.types[value] != self._graph.types[op.output]:
                continue
            summand = self._summand(other, op)
            chain = None if summand is None else self._chain(value)
            if chain is not None and summand is not None:
                return chain.then(op, summand)
        return None

    def _summand(self, name: str, op: Call) -> Operation | None:
        """A constant for all elements or for each channel, or a shifted int8 value."""
        array, whole = self._array(name), self._graph.types[op.output]
        if array is not None:
            values = _per_channel(array, whole.shape)
            return None if values is None else AddConstant(values)
        shift, source = 0, self._writers.get(name)
        if isinstance(source, Call) and source.op == "left_shift":
            amount = self._array(source.inputs[1])
            shift = -1 if amount is None or amount.ndim else int(amount)
            source = self._writers.get(source.inputs[0])
        if not isinstance(source, Call) or source.op != "cast" or not 0 <= shift <= 24:
            return None
        type_ = self._graph.types[source.inputs[0]]
        fits = type_.dtype == "int8" and type_.shape == whole.shape
        constant = self._is_constant(source.inputs[0])
        return AddTensor(source.inputs[0], shift) if fits and not constant else None

    def _shift(self, op: Call) -> Chain | None:
        amount = self._array(op.inputs[1])
        chain = self._chain(op.inputs[0])
        if chain is None or amount is None or amount.ndim or not 0 <= int(amount) <= 31:
            return None
        right = int(amount) if op.op == "right_shift" else -int(amount)
        return chain.then(op, Shift(right))


def _clamp(op: Call) -> Clamp:
    if op.op == "nn.relu":
        return Clamp(0, None)
    attrs = attributes_of(op.op, op.attrs)
    low, high = (min(max(attrs[name], _INT32[0]), _INT32[1]) for name in ("a_min", "a_max"))
    return Clamp(int(np.ceil(low)), int(np.floor(high)))


def _sums(weight: npt.NDArray[np.int8]) -> Interval:
    """What the sums of products with int8 values can be; all of int32 when they may wrap."""
    rows = weight.reshape(len(weight), -1).astype(np.int64)
    high = int(np.maximum(rows * -128, rows * 127).sum(axis=1).max())
    low = int(np.minimum(rows * -128, rows * 127).sum(axis=1).min())
    return (low, high) if _INT32[0] <= low and high <= _INT32[1] else _INT32


def _per_channel(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[np.int32] | None:
    """int32 () or (O,) of a constant that is the same along all axes but the channels."""
    if array.dtype != np.int32:
        return None
    if array.size == 1:
        return array.reshape(())
    whole = (*(1,) * (len(shape) - array.ndim), *array.shape)
    wanted = (1, shape[1], *(1,) * (len(shape) - 2)) if len(shape) > 1 else ()
    return array.reshape(-1) if whole == wanted else None


def image_shape(shape: tuple[int, ...]) -> Shape:
    """(N, C, H, W) of an image, or of rows (N, C) as images of one pixel."""
    n, c, h, w = (*shape, 1, 1)[:4]
    return n, c, h, w
