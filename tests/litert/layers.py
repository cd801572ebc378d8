"""Layers for `Writer`, with random weights and scales that keep results spread over the codes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litert.writer import Tensor, Writer

__all__ = ["Layers"]

_SPREAD = 40.0
"""Standard deviation that results are scaled to, in codes."""


class Layers(Writer):
    """A `Writer` that draws weights, biases and scales from a seeded generator.

    `activation` is NONE 0, RELU 1, RELU_N1_TO_1 2 or RELU6 3; `padding` SAME 0 or VALID 1.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def conv(
        self,
        x: Tensor,
        outputs: int,
        kernel: tuple[int, int] = (1, 1),
        *,
        strides: tuple[int, int] = (1, 1),
        dilations: tuple[int, int] = (1, 1),
        padding: int = 0,
        activation: int = 0,
        groups: int = 1,
        bias: bool = True,
        per_channel: bool = True,
        scale: float | None = None,
        zero: int | None = None,
    ) -> Tensor:
        """CONV_2D."""
        inner = x.shape[3] // groups
        args = self._weights(x, (outputs, *kernel, inner), 0, outputs, bias, per_channel)
        y = self._result(x, outputs, kernel, strides, dilations, padding, inner, scale, zero)
        self.operator(
            "CONV_2D",
            [x, *args],
            [y],
            "Conv2DOptions",
            version=3,
            padding=padding,
            strideH=strides[0],
            strideW=strides[1],
            dilationHFactor=dilations[0],
            dilationWFactor=dilations[1],
            fusedActivationFunction=activation,
        )
        return y

    def depthwise(
        self,
        x: Tensor,
        kernel: tuple[int, int],
        *,
        multiplier: int = 1,
        strides: tuple[int, int] = (1, 1),
        dilations: tuple[int, int] = (1, 1),
        padding: int = 0,
        activation: int = 0,
        bias: bool = True,
        per_channel: bool = True,
        scale: float | None = None,
        zero: int | None = None,
    ) -> Tensor:
        """DEPTHWISE_CONV_2D."""
        outputs = x.shape[3] * multiplier
        args = self._weights(x, (1, *kernel, outputs), 3, outputs, bias, per_channel)
        y = self._result(x, outputs, kernel, strides, dilations, padding, 1, scale, zero)
        self.operator(
            "DEPTHWISE_CONV_2D",
            [x, *args],
            [y],
            "DepthwiseConv2DOptions",
            version=3,
            padding=padding,
            strideH=strides[0],
            strideW=strides[1],
            dilationHFactor=dilations[0],
            dilationWFactor=dilations[1],
            depthMultiplier=multiplier,
            fusedActivationFunction=activation,
        )
        return y

    def dense(
        self,
        x: Tensor,
        outputs: int,
        *,
        activation: int = 0,
        bias: bool = True,
        per_channel: bool = False,
        keep_dims: bool = False,
        scale: float | None = None,
    ) -> Tensor:
        """FULLY_CONNECTED over the last axis, or over all but the first where that has rank 4."""
        inner = int(np.prod(x.shape[1:])) if len(x.shape) == 4 else x.shape[-1]
        args = self._weights(x, (outputs, inner), 0, outputs, bias, per_channel)
        rows = int(np.prod(x.shape)) // inner
        shape = (*x.shape[:-1], outputs) if keep_dims else (rows, outputs)
        spread = x.scale * self._weight_scale(x) * 73 * np.sqrt(inner)
        y = self.tensor(shape, spread if scale is None else scale, self._zero())
        self.operator(
            "FULLY_CONNECTED",
            [x, *args],
            [y],
            "FullyConnectedOptions",
            version=12 if per_channel else 4,
            keepNumDims=keep_dims,
            fusedActivationFunction=activation,
        )
        return y

    def binary(
        self,
        name: str,
        a: Tensor,
        b: Tensor,
        *,
        activation: int = 0,
        scale: float | None = None,
        zero: int | None = None,
    ) -> Tensor:
        """ADD, SUB or MUL."""
        units = a.scale * b.scale * _SPREAD if name == "MUL" else np.hypot(a.scale, b.scale)
        y = self.tensor(
            np.broadcast_shapes(a.shape, b.shape),
            units if scale is None else scale,
            self._zero() if zero is None else zero,
        )
        self.operator(
            name,
            [a, b],
            [y],
            f"{name.capitalize()}Options",
            version=2,
            fusedActivationFunction=activation,
        )
        return y

    def pool(
        self,
        name: str,
        x: Tensor,
        kernel: tuple[int, int],
        *,
        strides: tuple[int, int] = (1, 1),
        padding: int = 0,
        activation: int = 0,
    ) -> Tensor:
        """MAX_POOL_2D or AVERAGE_POOL_2D."""
        shape = _windows(x.shape[1:3], kernel, strides, (1, 1), padding)
        y = self.tensor((x.shape[0], *shape, x.shape[3]), x.scale, x.zero)
        self.operator(
            name,
            [x],
            [y],
            "Pool2DOptions",
            version=2,
            padding=padding,
            strideH=strides[0],
            strideW=strides[1],
            filterHeight=kernel[0],
            filterWidth=kernel[1],
            fusedActivationFunction=activation,
        )
        return y

    def mean(
        self, x: Tensor, scale: float | None = None, zero: int | None = None, keep: bool = False
    ) -> Tensor:
        """MEAN over height and width."""
        n, _, _, c = x.shape
        y = self.tensor(
            (n, 1, 1, c) if keep else (n, c),
            x.scale if scale is None else scale,
            x.zero if zero is None else zero,
        )
        axes = self.constant(np.array([1, 2], np.int32))
        self.operator("MEAN", [x, axes], [y], "ReducerOptions", version=2, keepDims=keep)
        return y

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """RESHAPE."""
        y = self.tensor(shape, x.scale, x.zero, x.dtype)
        wanted = self.constant(np.array(shape, np.int32))
        self.operator("RESHAPE", [x, wanted], [y], "ReshapeOptions", newShape=list(shape))
        return y

    def softmax(self, x: Tensor) -> Tensor:
        """SOFTMAX, whose result has scale 1/256 and zero point -128."""
        y = self.tensor(x.shape, 1 / 256, -128)
        self.operator("SOFTMAX", [x], [y], "SoftmaxOptions", version=2, beta=1.0)
        return y

    def unary(
        self, name: str, x: Tensor, scale: float, zero: int, options: str = "", **fields: Any
    ) -> Tensor:
        """An element-wise operator of one argument."""
        y = self.tensor(x.shape, scale, zero)
        self.operator(
            name,
            [x],
            [y],
            options,
            version=1 if name in ("HARD_SWISH", "RELU_N1_TO_1") else 2,
            **fields,
        )
        return y

    def moved(
        self,
        name: str,
        x: Tensor,
        shape: Sequence[int],
        *arguments: Sequence[int],
        options: str = "",
        version: int = 2,
        **fields: Any,
    ) -> Tensor:
        """An operator that moves elements by constant lists of int32."""
        y = self.tensor(shape, x.scale, x.zero)
        lists = [self.constant(np.array(values, np.int32)) for values in arguments]
        self.operator(name, [x, *lists], [y], options, version=version, **fields)
        return y

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """CONCATENATION of tensors of one scale."""
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        y = self.tensor(shape, parts[0].scale, parts[0].zero)
        self.operator("CONCATENATION", parts, [y], "ConcatenationOptions", version=2, axis=axis)
        return y

    def pad(self, x: Tensor, widths: Sequence[tuple[int, int]], fill: int | None = None) -> Tensor:
        """PAD with real 0, or PADV2 with a code."""
        shape = [size + sum(width) for size, width in zip(x.shape, widths, strict=True)]
        y = self.tensor(shape, x.scale, x.zero)
        table = self.constant(np.array(widths, np.int32))
        if fill is None:
            self.operator("PAD", [x, table], [y], "PadOptions", version=2)
        else:
            value = self.constant(np.array([fill], np.int8), x.scale, x.zero)
            self.operator("PADV2", [x, table, value], [y], "PadV2Options", version=2)
        return y

    def _zero(self) -> int:
        return int(self.rng.integers(-20, 20))

    def _weight_scale(self, x: Tensor) -> float:
        """So that one product has about the variance of one code."""
        return 1.0 / (_SPREAD * 1.7)

    def _weights(
        self,
        x: Tensor,
        shape: tuple[int, ...],
        axis: int,
        outputs: int,
        bias: bool,
        per_channel: bool,
    ) -> list[Tensor]:
        """Weights and biases; the latter in units of their products."""
        values = self.rng.integers(-127, 128, shape).astype(np.int8)
        base = self._weight_scale(x)
        scales = base * self.rng.uniform(0.5, 1.5, outputs) if per_channel else np.array([base])
        weight = self.constant(values, scales.tolist(), axis=axis)
        if not bias:
            return [weight]
        units = np.float32(x.scale) * scales.astype(np.float32)
        steps = self.rng.integers(-2000, 2000, outputs).astype(np.int32)
        return [weight, self.constant(steps, units.tolist())]

    def _result(
        self,
        x: Tensor,
        outputs: int,
        kernel: tuple[int, int],
        strides: tuple[int, int],
        dilations: tuple[int, int],
        padding: int,
        inner: int,
        scale: float | None,
        zero: int | None,
    ) -> Tensor:
        shape = _windows(x.shape[1:3], kernel, strides, dilations, padding)
        products = inner * kernel[0] * kernel[1]
        spread = x.scale * self._weight_scale(x) * 73 * np.sqrt(products)
        return self.tensor(
            (x.shape[0], *shape, outputs),
            spread if scale is None else scale,
            self._zero() if zero is None else zero,
        )


def _windows(
    size: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: int,
) -> tuple[int, int]:
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    room = size if padding == 0 else [n - e + 1 for n, e in zip(size, extents, strict=True)]
    rows, columns = (-(-n // s) for n, s in zip(room, strides, strict=True))
    return rows, columns
