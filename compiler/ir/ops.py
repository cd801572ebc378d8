"""The operators of the graph: plain records; `vitral.compiler.ir.infer` gives their types.

Every operator has one result. A `Requantizing` operator ends in a rounding: it computes an exact
result, clamps it to its `bounds` and writes codes of `y_quant`, or float32 when that is None.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.rounding import FixedPoint, Thresholds
from vitral.compiler.ir.types import Quant, TensorType
from vitral.compiler.schedule.layer import ChannelParams

__all__ = [
    "AccelAdd",
    "AccelConv2d",
    "AccelMaxPool2d",
    "AccelOp",
    "AveragePool",
    "Binary",
    "Bounds",
    "ChannelTable",
    "CodeOp",
    "Concat",
    "Conv2d",
    "Dequantize",
    "FlipSign",
    "FloatOp",
    "Interpolate",
    "MatMul",
    "MaxPool",
    "Op",
    "Patches",
    "Pick",
    "Quantize",
    "Requantizing",
    "Reshape",
    "Table",
    "Transpose",
]

Bounds = tuple[tuple[float, float], ...]
"""Clamps [low, high] of a real result, in order of application; infinite where open."""

Quad = tuple[int, int, int, int]
Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Op:
    """An operator named after the model's node, its argument values and its result value.

    `device` is "accelerator" or "cpu" where somebody has said where it runs.
    """

    kind: ClassVar[str]
    name: str
    inputs: tuple[str, ...]
    output: str
    device: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantize(Op):
    """float32 to codes, IEEE float32 division, ties to even before the zero point.

    `tflite` names another law: ties "away" from 0, or a product with the "inverse" scale.
    """

    kind = "quantize"
    quant: Quant
    tflite: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Dequantize(Op):
    """Codes to float32."""

    kind = "dequantize"
    quant: Quant


@dataclass(frozen=True, kw_only=True, eq=False)
class FlipSign(Op):
    """uint8 to int8 as value - 128, or back."""

    kind = "flip_sign"


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Op):
    """Code to table[code - lowest code]; 256 entries of any element type.

    `steps`, where known, are the real results in units of the result's scale, float64 (256,).
    `label` is what it computes, by a name of the text form.
    """

    kind = "table"
    table: npt.NDArray[Any]
    steps: npt.NDArray[np.float64] | None = None
    label: str = "table"


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelTable(Op):
    """Code to table[c, code - lowest code], c the index along `axis`; `table` is (C, 256)."""

    kind = "channel_table"
    table: npt.NDArray[Any]
    axis: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Requantizing(Op):
    """An operator with one rounding at its end; with `sums` the exact int32 sums are its result."""

    y_quant: Quant | None
    bounds: Bounds = ()
    sums: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Conv2d(Requantizing):
    """Quantized 2-D convolution by the arithmetic law.

    A = sum((x - xz) * (w - wz[o])) + bias[o], exact;
    y = sat(rne(fl32(fl32(A) * fl32(product_scale[o] / ys))) + yz).

    Parameters
    ----------
    weight : ndarray
        Integers (O, C / group, KH, KW); with zero points subtracted -255..255.
    weight_zero : ndarray
        int64 (O,).
    product_scale : ndarray
        float32 (O,): fl32(xs * ws[o]), the real value of one unit of A.
    bias : ndarray
        int64 (O,) in units of A.
    pads : tuple of int
        (top, left, bottom, right); padding is real 0.
    fixed : FixedPoint, optional
        Replaces the float32 rounding and the bounds.
    """

    kind = "qnn.conv2d"
    x_quant: Quant
    weight: npt.NDArray[Any]
    weight_zero: npt.NDArray[np.int64]
    product_scale: npt.NDArray[np.float32]
    bias: npt.NDArray[np.int64]
    strides: Pair = (1, 1)
    pads: Quad = (0, 0, 0, 0)
    dilations: Pair = (1, 1)
    group: int = 1
    fixed: FixedPoint | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class MatMul(Requantizing):
    """Quantized matrix product of two values, numpy.matmul's shapes.

    `product_scale` is float32 of shape () or (columns,): the real value of one unit of the sum.
    """

    kind = "qnn.matmul"
    a_quant: Quant
    b_quant: Quant
    product_scale: npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Binary(Requantizing):
    """`function` of two quantized values, op by op in IEEE float32; broadcasts.

    One of add, sub, mul, div, max, min and prelu. `table`, where given, holds the codes of all
    pairs instead: int8 (256, 256), ascending codes.
    """

    kind = "qnn.binary"
    function: str
    a_quant: Quant
    b_quant: Quant
    table: npt.NDArray[np.int8] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class AveragePool(Requantizing):
    """Exact window sum divided by the count, one rounding of the exact rational.

    `pads` (top, left, bottom, right) count as elements when `include_pad`; `excess` (bottom, right)
    is what ceil mode adds behind them and never counts. `thresholds`, where given, replace the
    rounding and the bounds.
    """

    kind = "qnn.avg_pool2d"
    x_quant: Quant
    kernel: Pair
    strides: Pair
    pads: Quad = (0, 0, 0, 0)
    excess: Pair = (0, 0)
    dilations: Pair = (1, 1)
    include_pad: bool = False
    thresholds: Thresholds | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Interpolate(Requantizing):
    """Weighted sums of elements along axes, divided by `denominator`, rounded once.

    Along axis `axes[i]` result element k is the sum over t of weights[i][k, t] times element
    indices[i][k, t]; both are int64 (length, taps). `denominator` is what all weights together add
    to: the product of the sums of a row of each axis.
    """

    kind = "qnn.interpolate"
    x_quant: Quant
    axes: tuple[int, ...]
    indices: tuple[npt.NDArray[np.int64], ...]
    weights: tuple[npt.NDArray[np.int64], ...]
    denominator: int


@dataclass(frozen=True, kw_only=True, eq=False)
class MaxPool(Op):
    """Largest element of each window; padding never wins. `pads` include ceil mode's excess."""

    kind = "nn.max_pool2d"
    kernel: Pair
    strides: Pair
    pads: Quad = (0, 0, 0, 0)
    dilations: Pair = (1, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Concat(Op):
    """Arguments one after the other along `axis`."""

    kind = "concatenate"
    axis: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Reshape(Op):
    """The same elements in C order with another shape."""

    kind = "reshape"
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Transpose(Op):
    """Axes in the order `perm`."""

    kind = "transpose"
    perm: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pick(Op):
    """Elements by their index along each axis of `axes`, in any order; index -1 is `fill`.

    Slices, repeated elements and padding are all of this form. `indices` are int64 (size,).
    """

    kind = "pick"
    axes: tuple[int, ...]
    indices: tuple[npt.NDArray[np.int64], ...]
    fill: float = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Patches(Op):
    """Windows of an image as channels: tap (i, j) of channel c is channel (i * KW + j) * C + c.

    Padding elements hold the code `pad_value`.
    """

    kind = "patches"
    kernel: Pair
    strides: Pair
    pads: Quad
    dilations: Pair
    pad_value: int


@dataclass(frozen=True, kw_only=True, eq=False)
class FloatOp(Op):
    """An operator `float.<function>` of `vitral.runtime.cpu`, part of a float island.

    Arguments are float32 or integers that the operator reads as such, results are of `dtype`.
    """

    kind = "float"
    function: str
    shape: tuple[int, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    macs: int = 0
    dtype: str = "float32"


@dataclass(frozen=True, kw_only=True, eq=False)
class CodeOp(Op):
    """An exact operator of `vitral.runtime.cpu` on codes that only the CPU has.

    `type` is the result's, `arrays` are the step's constants in their order.
    """

    kind = "code"
    function: str
    type: TensorType
    attributes: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class AccelOp(Op):
    """An operator in the accelerator's arithmetic, int8 in and out.

    `on_cpu` when it does not run there: the CPU then computes the law that it was lowered from.
    """

    on_cpu: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class AccelConv2d(AccelOp):
    """A convolution of codes, requantised by `params`; padding elements hold `pad_value`.

    `origin` is what it was lowered from, the law that it must obey: a quantized convolution, or an
    average or a table, which have one weight.
    """

    kind = "vta.conv2d"
    weight: npt.NDArray[np.int16]
    params: ChannelParams
    pad_value: int
    strides: Pair
    pads: Quad
    dilations: Pair
    group: int
    origin: Conv2d | AveragePool | Table


@dataclass(frozen=True, kw_only=True, eq=False)
class AccelMaxPool2d(AccelOp):
    """Largest code of each window; padding never wins. `pads` include ceil mode's excess."""

    kind = "vta.max_pool2d"
    kernel: Pair
    strides: Pair
    pads: Quad
    dilations: Pair


@dataclass(frozen=True, kw_only=True, eq=False)
class AccelAdd(AccelOp):
    """requantize(multipliers[0] * a + multipliers[1] * b, params) of two values of one shape.

    `origin` is the sum or difference that it was lowered from, the law that it must obey, or a
    table of its first argument.
    """

    kind = "vta.add"
    multipliers: Pair
    params: ChannelParams
    origin: Binary | Table
