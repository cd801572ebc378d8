"""ConvTranspose as a convolution of stride 1 that computes every phase as a channel of its own.

With stride s, output position s · m + r is sum_j x[m - j] · w[s · j + r]: for each phase r an
ordinary convolution by every s-th tap, reversed. One convolution with O · s · s channels computes
all phases; its channels are then laid side by side.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.onnx.bias import bias_steps
from vitral.compiler.frontends.onnx.conv import check_weights, float_conv, product_scales
from vitral.compiler.frontends.onnx.geometry import LARGEST, Geometry, positive
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Const, ConstReal, Pending, Real, Symbol, Tensor
from vitral.compiler.ir.ops import Conv2d, Pick

__all__ = ["OPERATORS"]

Array = npt.NDArray
_MOST_TAPS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """One axis: `taps` of the convolution, its pads, and the part of the phases that is kept."""

    stride: int
    taps: int
    head: int
    tail: int
    first: int
    length: int


def _conv_transpose(scope: Scope) -> Symbol:
    x, w = scope.need(0), scope.need(1)
    if not isinstance(w, Const | ConstReal):
        raise scope.fail(f"needs constant weights as {scope.named(1)}, got some computed")
    _check_channels(scope, x.shape, w.shape)
    axes = _axes(scope, x.shape[2:], w.shape[2:])
    if isinstance(x, Real) and x.quant is not None and isinstance(w, ConstReal):
        return _integer(scope, x, w, axes)
    return _float(scope, axes)


def _integer(scope: Scope, x: Real, w: ConstReal, axes: list[_Axis]) -> Pending:
    assert x.quant is not None
    if w.quant.axis not in (None, 1):
        raise scope.fail(
            f"needs weight scales per tensor or along axis 1 as {scope.named(1)},"
            f" got axis {w.quant.axis}"
        )
    check_weights(scope, 1, w)
    shape = [-1 if i == w.quant.axis else 1 for i in range(w.codes.ndim)]
    zeros = w.quant.zeros.reshape(shape) if w.quant.axis is not None else w.quant.zeros
    centred = (w.codes.astype(np.int64) - zeros).astype(np.int16)
    weight, phases = _phases(scope, centred, axes), axes[0].stride * axes[1].stride
    per_group, group = w.shape[1], scope.integer("group", 1)
    scales = np.tile(product_scales(x.quant.tensor_scale, w, per_group), group)
    outputs = per_group * group * phases
    source = scope.reshape(x.tensor, _two_dimensional(x.shape))
    op = Conv2d(
        name=scope.node.name,
        inputs=(source.name,),
        output="",
        y_quant=None,
        x_quant=x.quant,
        weight=weight,
        weight_zero=np.zeros(outputs, np.int64),
        product_scale=np.repeat(scales, phases),
        bias=np.repeat(bias_steps(scope, 2, scales), phases),
        pads=_pads(axes),
        group=group,
    )
    wide = scope.pending(op).shape
    result = _result_shape(x.shape, per_group * group, axes)
    if wide == result:
        return Pending(op=op, shape=result)
    return Pending(
        op=op, shape=result, finish=lambda tensor, name: _side_by_side(scope, tensor, axes, name)
    )


def _float(scope: Scope, axes: list[_Axis]) -> Tensor:
    x, weight, bias = scope.real(scope.need(0)), scope.array(1), scope.array(2)
    assert weight is not None
    phases = axes[0].stride * axes[1].stride
    arranged = _phases(scope, weight, axes)
    geometry = Geometry(
        kernel=(axes[0].taps, axes[1].taps), strides=(1, 1), dilations=(1, 1), pads=_pads(axes)
    )
    source = scope.reshape(x, _two_dimensional(x.shape))
    offsets = None if bias is None else np.repeat(bias.reshape(-1), phases)
    wide = scope.builder.unique(f"{scope.output}.wide")
    result = float_conv(scope, source, arranged, offsets, geometry, wide)
    return _side_by_side(scope, result, axes, scope.output)


def _check_channels(scope: Scope, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    group = scope.integer("group", 1)
    if len(x) != len(w) or len(x) not in (3, 4):
        raise scope.fail(f"needs rank 3 or 4 input and weights, got {list(x)} and {list(w)}")
    if group < 1 or x[1] != w[0] or w[0] % group:
        raise scope.fail(
            f"needs channels that fit group {group}, got input {list(x)} and weights {list(w)}"
        )
    declared = scope.integer_list("kernel_shape") or list(w[2:])
    if declared != list(w[2:]):
        raise scope.fail(f"needs kernel_shape {list(w[2:])} as the weights have, got {declared}")


def _axes(scope: Scope, size: tuple[int, ...], kernel: tuple[int, ...]) -> list[_Axis]:
    rank = len(size)
    strides, dilations = (positive(scope, name, rank) for name in ("strides", "dilations"))
    more = scope.integer_list("output_padding") or [0] * rank
    if len(more) != rank or min(more) < 0 or max(more) > LARGEST:
        raise scope.fail(f"needs {rank} output_padding of 0..{LARGEST}, got {more}")
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    whole = [
        (n - 1) * s + e + extra for n, s, e, extra in zip(size, strides, extents, more, strict=True)
    ]
    pads = _cut(scope, size, strides, whole)
    spread = math.prod(-(-e // s) * s for s, e in zip(strides, extents, strict=True))
    if spread > _MOST_TAPS:
        raise scope.fail(f"needs at most {_MOST_TAPS} taps with zeros between them, got {spread}")
    axes = [
        _axis(scope, n, s, e, full, *edges)
        for n, s, e, full, edges in zip(size, strides, extents, whole, pads, strict=True)
    ]
    return axes if rank == 2 else [_axis(scope, 1, 1, 1, 1, 0, 0), *axes]


def _axis(
    scope: Scope, size: int, stride: int, extent: int, whole: int, head: int, tail: int
) -> _Axis:
    length = whole - head - tail
    if length < 1:
        raise scope.fail(f"needs pads below the {whole} results of an axis, got {head} and {tail}")
    taps = -(-extent // stride)
    skipped = min(head // stride, taps - 1)
    last = -(-(whole - tail) // stride)
    return _Axis(
        stride=stride,
        taps=taps,
        head=taps - 1 - skipped,
        tail=max(last - size, 0),
        first=head - skipped * stride,
        length=length,
    )


def _cut(
    scope: Scope, size: tuple[int, ...], strides: list[int], whole: list[int]
) -> list[tuple[int, int]]:
    """What `pads`, `auto_pad` or `output_shape` cut off at both ends of each axis."""
    rank, mode = len(size), scope.text("auto_pad", "NOTSET") or "NOTSET"
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise scope.fail(f"needs auto_pad NOTSET, VALID or SAME_*, got {mode!r}")
    wanted = scope.integer_list("output_shape")
    if wanted is None and mode.startswith("SAME"):
        wanted = [n * s for n, s in zip(size, strides, strict=True)]
    if wanted is not None:
        if len(wanted) < rank or min(wanted[-rank:]) < 1:
            raise scope.fail(f"needs {rank} sizes >= 1 as output_shape, got {wanted}")
        total = [f - n for f, n in zip(whole, wanted[-rank:], strict=True)]
        return [_halves(t, upper=mode == "SAME_UPPER") for t in total]
    pads = [0] * (2 * rank) if mode == "VALID" else scope.integer_list("pads") or [0] * (2 * rank)
    if len(pads) != 2 * rank or min(pads) < 0 or max(pads) > LARGEST:
        raise scope.fail(f"needs {2 * rank} pads of 0..{LARGEST}, got {pads}")
    return list(zip(pads[:rank], pads[rank:], strict=True))


def _halves(total: int, *, upper: bool) -> tuple[int, int]:
    """What is cut off at both ends; below 0, that is more elements, at the end alone."""
    if total < 0:
        return 0, total
    less, more = total // 2, total - total // 2
    return (less, more) if upper else (more, less)


def _phases(scope: Scope, weight: Array, axes: list[_Axis]) -> Array:
    """Weights (C, O / group, KH, KW) as (O · phases, C / group, taps, taps)."""
    wide = weight if weight.ndim == 4 else weight[:, :, None, :]
    dilations = scope.integer_list("dilations") or [1] * (weight.ndim - 2)
    down, right = dilations if len(dilations) == 2 else (1, dilations[0])
    rows, columns = axes
    channels, per_group, *_ = wide.shape
    group = scope.integer("group", 1)
    spread = np.zeros(
        (channels, per_group, rows.taps * rows.stride, columns.taps * columns.stride), wide.dtype
    )
    height, width = ((k - 1) * d + 1 for k, d in zip(wide.shape[2:], (down, right), strict=True))
    spread[:, :, :height:down, :width:right] = wide
    shape = (group, channels // group, per_group)
    parts = spread.reshape(*shape, rows.taps, rows.stride, columns.taps, columns.stride)
    turned = parts.transpose(0, 2, 4, 6, 1, 3, 5)[..., ::-1, ::-1]
    outputs = group * per_group * rows.stride * columns.stride
    return np.ascontiguousarray(turned.reshape(outputs, channels // group, rows.taps, columns.taps))


def _pads(axes: list[_Axis]) -> tuple[int, int, int, int]:
    return axes[0].head, axes[1].head, axes[0].tail, axes[1].tail


def _result_shape(x: tuple[int, ...], channels: int, axes: list[_Axis]) -> tuple[int, ...]:
    spatial = [axis.length for axis in axes]
    return (x[0], channels, *(spatial if len(x) == 4 else spatial[1:]))


def _side_by_side(scope: Scope, tensor: Tensor, axes: list[_Axis], name: str) -> Tensor:
    """Phases (N, O · s · s, H, W) laid out as (N, O, H · s, W · s), cut to the result."""
    rows, columns = axes
    images, wide, height, width = tensor.shape
    channels = wide // (rows.stride * columns.stride)
    split = (images, channels, rows.stride, columns.stride, height, width)
    turned = scope.transpose(scope.reshape(tensor, split), (0, 1, 4, 2, 5, 3))
    laid = scope.reshape(turned, (images, channels, height * rows.stride, width * columns.stride))
    indices = tuple(np.arange(axis.first, axis.first + axis.length) for axis in axes)
    x = scope.need(0).shape
    kept = scope.builder.unique(f"{name}.wide") if len(x) == 3 else name
    pick = Pick(
        name=scope.node.name, inputs=(laid.name,), output=kept, axes=(2, 3), indices=indices
    )
    result = scope.builder.emit(pick)
    if len(x) == 4:
        return result
    return scope.reshape(result, _result_shape(x, channels, axes), name)


def _two_dimensional(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) == 4 else (*shape[:2], 1, *shape[2:])


OPERATORS = {("", "ConvTranspose"): _conv_transpose}
