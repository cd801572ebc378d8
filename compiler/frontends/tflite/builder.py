"""Collects operators of the graph and keeps track of how tensors lie in memory.

TFLite's images are (N, H, W, C), those of the graph (N, C, H, W). A tensor of rank 4 is kept as
whatever its operator gives; the other form is made once, when a reader asks for it, so that
transposes stand only at the borders of a network and around operators that need the model's order.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from vitral.compiler.ir import Graph, Quant, TensorType, infer
from vitral.compiler.ir.ops import Op, Reshape, Transpose

__all__ = ["TO_IMAGE", "TO_PLAIN", "Builder", "Value", "image_shape", "plain_shape"]

TO_IMAGE = (0, 3, 1, 2)
TO_PLAIN = (0, 2, 3, 1)


@dataclass(frozen=True, kw_only=True)
class Value:
    """A value of the graph that holds a tensor of the model.

    `shape` is the model's. The value lies as (N, C, H, W) if `image`. `flattens` is the image of
    which this is a view in the model's order.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    image: bool = False
    flattens: "Value | None" = None


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """(N, C, H, W) of (N, H, W, C)."""
    n, h, w, c = shape
    return n, c, h, w


def plain_shape(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """(N, H, W, C) of (N, C, H, W)."""
    n, c, h, w = shape
    return n, h, w, c


class Builder:
    """A graph under construction; `reserved` names are never invented for a new value."""

    def __init__(self, reserved: Collection[str]) -> None:
        self._reserved = set(reserved)
        self._inputs: list[str] = []
        self._ops: list[Op] = []
        self._constants: dict[str, npt.NDArray[Any]] = {}
        self._types: dict[str, TensorType] = {}
        self._notices: list[str] = []
        self._other_form: dict[str, Value] = {}

    def input(self, name: str, shape: tuple[int, ...], dtype: str) -> Value:
        """A value that callers feed."""
        self._inputs.append(name)
        self._types[name] = TensorType(shape, dtype)
        return Value(name=name, shape=shape, dtype=dtype)

    def emit(self, op: Op) -> TensorType:
        """Append an operator; CompileError when its arguments do not fit."""
        type_ = infer(op, [self._types[name] for name in op.inputs])
        self._ops.append(op)
        self._types[op.output] = type_
        return type_

    def constant(self, hint: str, array: npt.NDArray[Any]) -> Value:
        """A value known at compile time."""
        name = self.unique(hint)
        dtype = str(array.dtype)
        self._constants[name] = array
        self._types[name] = TensorType(array.shape, dtype)
        return Value(name=name, shape=array.shape, dtype=dtype)

    def notice(self, text: str) -> None:
        """Tell the user something, once."""
        if text not in self._notices:
            self._notices.append(text)

    def unique(self, hint: str) -> str:
        """A value name that nothing else has."""
        name, number = hint, 1
        while name in self._reserved or name in self._types:
            number += 1
            name = f"{hint}.{number}"
        return name

    def image(self, value: Value, node: str) -> Value:
        """A value of rank 4 as (N, C, H, W)."""
        return value if value.image else self._turned(value, node, f"{value.name}.nchw")

    def plain(self, value: Value, node: str, name: str | None = None) -> Value:
        """A value in the model's order; called `name` if it has to be made."""
        if not value.image:
            return value
        hint = value.name.removesuffix(".nchw")
        return self._turned(value, node, name or f"{hint}.nhwc")

    def reshape(self, name: str, shape: tuple[int, ...], node: str, output: str) -> str:
        """The same elements in another shape; the value itself when it has that shape."""
        if self._types[name].shape == shape:
            return name
        self.emit(Reshape(name=node, inputs=(name,), output=output, shape=shape))
        return output

    def _turned(self, value: Value, node: str, hint: str) -> Value:
        if value.name in self._other_form:
            return self._other_form[value.name]
        image = not value.image
        name = hint if hint in self._reserved and hint not in self._types else self.unique(hint)
        _, height, width, channels = value.shape
        if height * width == 1 or channels == 1:
            shape = image_shape(value.shape) if image else value.shape
            self.emit(Reshape(name=node, inputs=(value.name,), output=name, shape=shape))
        else:
            perm = TO_IMAGE if image else TO_PLAIN
            self.emit(Transpose(name=node, inputs=(value.name,), output=name, perm=perm))
        turned = Value(name=name, shape=value.shape, dtype=value.dtype, image=image)
        self._other_form[value.name] = turned
        return turned

    def finish(self, outputs: Mapping[str, Value], edges: Mapping[str, Quant]) -> Graph:
        """The graph whose outputs are these values, under these names, in the model's order."""
        for name, value in outputs.items():
            plain = self.plain(value, name, name)
            if plain.name != name:
                source = (plain.name,)
                self.emit(Reshape(name=name, inputs=source, output=name, shape=plain.shape))
        return Graph(
            inputs=tuple(self._inputs),
            outputs=tuple(outputs),
            types=dict(self._types),
            ops=tuple(self._ops),
            constants=dict(self._constants),
            edges=dict(edges),
            notices=tuple(self._notices),
        )
