"""MAX_POOL_2D, AVERAGE_POOL_2D and MEAN."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vitral.arithmetic import requantize
from vitral.compiler.frontends.tflite.builder import Value
from vitral.compiler.frontends.tflite.fixed_point import (
    find_thresholds,
    quantize_multiplier,
)
from vitral.compiler.frontends.tflite.scope import Scope
from vitral.compiler.frontends.tflite.windows import read_windows
from vitral.compiler.ir import Quant
from vitral.compiler.ir.ops import AveragePool, MaxPool, Reshape, Table
from vitral.compiler.ir.rounding import Weighted
from vitral.isa import Rounding
from vitral.runtime.cpu.windows import window_counts

__all__ = ["OPERATORS"]

Int64 = npt.NDArray[np.int64]
Law = Callable[[Int64, int], Int64]


def _max_pool_2d(scope: Scope) -> Value:
    x, kernel = scope.image(0), _kernel(scope)
    _same_quant(scope)
    windows = read_windows(scope, x.shape[1:3], kernel)
    low, high = scope.clamp()
    clamps = (low, high) != (-128, 127)
    output = scope.builder.unique(f"{scope.name}.unclamped") if clamps else scope.image_name()
    pool = MaxPool(
        name=scope.name,
        inputs=(x.name,),
        output=output,
        kernel=kernel,
        strides=windows.strides,
        pads=windows.pads,
    )
    if not clamps:
        return scope.emit_image(pool)
    scope.builder.emit(pool)
    table = np.clip(np.arange(-128, 128), low, high).astype(np.int8)
    return scope.emit_image(
        Table(name=scope.name, inputs=(output,), output=scope.image_name(), table=table)
    )


def _average_pool_2d(scope: Scope) -> Value:
    """The sum of codes over the count of elements, ties away from code 0; padding never counts."""
    x, kernel = scope.image(0), _kernel(scope)
    _same_quant(scope)
    windows = read_windows(scope, x.shape[1:3], kernel)
    zero = scope.quant(0).tensor_zero
    counts = np.unique(
        window_counts(
            x.shape[1:3],
            kernel=kernel,
            strides=windows.strides,
            pads=windows.pads,
            excess=(0, 0),
            dilations=(1, 1),
            include_pad=False,
        )
    )

    def law(sums: Int64, count: int) -> Int64:
        return _divided(sums + zero * count, count)

    return scope.emit_image(
        AveragePool(
            name=scope.name,
            inputs=(x.name,),
            output=scope.image_name(),
            y_quant=scope.y_quant,
            x_quant=scope.quant(0),
            kernel=kernel,
            strides=windows.strides,
            pads=windows.pads,
            thresholds=replace(
                find_thresholds(law, counts, zero, scope.clamp()), core=_average_core(counts)
            ),
        )
    )


def _mean(scope: Scope) -> Value:
    """The mean over height and width of an image."""
    x = scope.image(0)
    axes = {axis % 4 for axis in scope.integers(1) if -4 <= axis < 4}
    if axes != {1, 2}:
        raise scope.fail(f"needs a mean over axes 1 and 2 of an image, got {scope.integers(1)}")
    quant, y = scope.quant(0), scope.y_quant
    _, height, width, channels = x.shape
    law, core = _mean_law(scope, height * width)
    steps = find_thresholds(law, [height * width], quant.tensor_zero, (-128, 127))
    keeps = bool(scope.integer("KeepDims"))
    output = scope.image_name() if keeps else scope.builder.unique(f"{scope.name}.image")
    pool = AveragePool(
        name=scope.name,
        inputs=(x.name,),
        output=output,
        y_quant=y,
        x_quant=quant,
        kernel=(height, width),
        strides=(1, 1),
        thresholds=replace(steps, core=core),
    )
    if keeps:
        return scope.emit_image(pool)
    scope.builder.emit(pool)
    shape = (x.shape[0], channels)
    return scope.emit_plain(
        Reshape(name=scope.name, inputs=(output,), output=scope.name, shape=shape)
    )


def _mean_law(scope: Scope, count: int) -> tuple[Law, Weighted | None]:
    """Codes of sums of `count` codes less the zero point, and how the requantiser gives them.

    In fixed point, xs / ys is shifted left as far as the count has bits and divided by the count.
    """
    x, y = scope.quant(0), scope.y_quant
    if scope.rounding == "xnnpack":
        return _xnnpack_mean(x, y, count), None
    mult, shift = _mean_multiplier(scope, x, y, count)
    core = Weighted(
        weight=1,
        bias=-x.tensor_zero * count,
        mult=mult,
        shift=shift,
        zero_point=y.tensor_zero,
        rounding=scope.mode,
    )

    def law(sums: Int64, count: int) -> Int64:
        return requantize(
            sums, mult=mult, shift=shift, zero_point=y.tensor_zero, rounding=core.rounding
        )

    return law, core


def _xnnpack_mean(x: Quant, y: Quant, count: int) -> Law:
    """The sum of codes times a float32, plus one that holds both zero points, ties to even."""
    factor = x.scales / y.scales * (np.float32(1) / np.float32(count))
    bias = np.float32(y.tensor_zero) - factor * np.float32(x.tensor_zero * count)

    def law(sums: Int64, count: int) -> Int64:
        codes = (sums + x.tensor_zero * count).astype(np.float32)
        return np.rint(codes * factor + bias).astype(np.int64)

    return law


def _mean_multiplier(scope: Scope, x: Quant, y: Quant, count: int) -> tuple[int, int]:
    try:
        mult, shift = (int(v) for v in quantize_multiplier(x.tensor_scale / y.tensor_scale))
    except ValueError as error:
        raise scope.fail(f"needs {error}") from None
    bits = min(count.bit_length() - 1, 32, 62 - shift)
    return (mult << bits) // count, shift + bits


def _average_core(counts: Int64) -> Weighted | None:
    """Twice the sum, divided by 2**31 with rounding and by 2**bits with ties away from 0.

    The fraction has room for a quotient of 31 bits, so ties stay ties and nothing becomes one.
    """
    if len(counts) != 1:
        return None
    count = int(counts[0])
    bits = (count - 1).bit_length()
    mult = ((1 << (30 + bits)) + count // 2) // count
    return Weighted(
        weight=2, bias=0, mult=mult, shift=31 + bits, zero_point=0, rounding=Rounding.DOUBLE
    )


def _divided(total: Int64, count: int) -> Int64:
    """total / count, ties away from 0."""
    return np.sign(total) * ((np.abs(total) + count // 2) // count)


def _kernel(scope: Scope) -> tuple[int, int]:
    return scope.integer("FilterHeight"), scope.integer("FilterWidth")


def _same_quant(scope: Scope) -> None:
    if scope.quant(0) != scope.y_quant:
        raise scope.fail(
            f"needs equal scales on both sides, got {scope.quant(0)} and {scope.y_quant}"
        )


OPERATORS = {
    "MAX_POOL_2D": _max_pool_2d,
    "AVERAGE_POOL_2D": _average_pool_2d,
    "MEAN": _mean,
}
