"""Steps of operators on windows that do not multiply: pools, and images laid out for a layer."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vitral.compiler.ir.ops import AccelMaxPool2d, AveragePool, Interpolate, MaxPool, Op, Patches
from vitral.compiler.passes.averages import average_thresholds, quotient_thresholds
from vitral.compiler.passes.law import code_bounds
from vitral.compiler.place.step_writer import StepWriter

__all__ = ["WRITERS", "integer_average"]


def _average_pool(writer: StepWriter, op: AveragePool) -> None:
    if op.y_quant is not None:
        integer_average(writer, op, code_bounds(op.y_quant, op.bounds))
        return
    scale = op.x_quant.tensor_scale
    writer.clamped(op, "average_pool_real", op.inputs, scale=scale, **_window(op))


def integer_average(writer: StepWriter, op: AveragePool, clamp: tuple[int, int]) -> None:
    size = writer.graph.types[op.inputs[0]].shape[2:]
    counts, thresholds, low = average_thresholds(op, size, clamp)
    arrays = {"counts": counts, "thresholds": thresholds}
    writer.step(op, "average_pool", op.inputs, arrays=arrays, low=low, **_window(op))


def _window(op: AveragePool) -> dict[str, Any]:
    return {
        "kernel": op.kernel,
        "strides": op.strides,
        "pads": op.pads,
        "excess": op.excess,
        "dilations": op.dilations,
        "include_pad": op.include_pad,
        "x_zero": op.x_quant.tensor_zero,
    }


def _interpolate(writer: StepWriter, op: Interpolate) -> None:
    arrays = {
        f"{what}{axis}": array
        for axis, index, weight in zip(op.axes, op.indices, op.weights, strict=True)
        for what, array in (("index", index), ("weight", weight))
    }
    common = {"axes": op.axes, "x_zero": op.x_quant.tensor_zero}
    if op.y_quant is None:
        scale = op.x_quant.tensor_scale
        writer.clamped(
            op,
            "interpolate_real",
            op.inputs,
            arrays=arrays,
            scale=scale,
            denominator=op.denominator,
            **common,
        )
        return
    low, high = code_bounds(op.y_quant, op.bounds)
    row = quotient_thresholds(op.x_quant, op.y_quant, op.denominator, low, high)
    thresholds = {"thresholds": np.array(row, np.int64)}
    writer.step(op, "interpolate", op.inputs, arrays={**thresholds, **arrays}, low=low, **common)


def _max_pool(writer: StepWriter, op: MaxPool | AccelMaxPool2d) -> None:
    writer.step(
        op,
        "max_pool",
        op.inputs,
        kernel=op.kernel,
        strides=op.strides,
        pads=op.pads,
        dilations=op.dilations,
        exact=writer.graph.types[op.output].dtype != "float32",
    )


def _patches(writer: StepWriter, op: Patches) -> None:
    writer.step(
        op,
        "patches",
        op.inputs,
        kernel=op.kernel,
        strides=op.strides,
        pads=op.pads,
        dilations=op.dilations,
        pad_value=op.pad_value,
    )


WRITERS: Mapping[type[Op], Callable[[StepWriter, Any], None]] = {
    AveragePool: _average_pool,
    Interpolate: _interpolate,
    MaxPool: _max_pool,
    AccelMaxPool2d: _max_pool,
    Patches: _patches,
}
