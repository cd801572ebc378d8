"""CPU operators of the graph as steps of a module."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Graph, Quant
from vitral.compiler.ir.macs import macs
from vitral.compiler.ir.ops import (
    AccelAdd,
    AccelConv2d,
    AccelMaxPool2d,
    AveragePool,
    Binary,
    CodeOp,
    Concat,
    Conv2d,
    Dequantize,
    FixedPoint,
    FlipSign,
    FloatOp,
    MatMul,
    MaxPool,
    Op,
    Patches,
    Pick,
    Quantize,
    Requantizing,
    Reshape,
    Table,
    Transpose,
)
from vitral.compiler.passes.averages import average_thresholds
from vitral.compiler.passes.law import binary_codes, centred_weight, code_bounds, law_multiplier
from vitral.errors import CompileError
from vitral.runtime.cpu import OPERATORS
from vitral.runtime.module import CpuStep

__all__ = ["StepWriter", "cpu_steps"]

Array = npt.NDArray[Any]
_LARGEST_MATMUL = (1 << 31) // (255 * 255)


@dataclass
class StepWriter:
    """Collects the steps of one graph and the arrays they need."""

    graph: Graph
    steps: list[CpuStep] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)

    def step(
        self,
        op: Op,
        function: str,
        inputs: tuple[str, ...],
        *,
        output: str | None = None,
        arrays: dict[str, Array] | None = None,
        exact: bool = True,
        cost: int = 0,
        **attributes: Any,
    ) -> str:
        """Append a step; returns its result's name."""
        assert function in OPERATORS
        output = output or op.output
        constants = {f"{output}.{what}": array for what, array in (arrays or {}).items()}
        self.arrays.update(constants)
        self.steps.append(
            CpuStep(
                name=op.name,
                op=function,
                inputs=inputs,
                outputs=(output,),
                attributes={k: _plain(v) for k, v in attributes.items()},
                constants=tuple(constants),
                macs=cost,
                exact=exact,
            )
        )
        return output

    def constant(self, name: str) -> None:
        """A step that makes a constant of the graph a value."""
        op = Op(name=name, inputs=(), output=name)
        self.step(op, "constant", (), arrays={"value": self.graph.constants[name]})

    def take(self) -> tuple[CpuStep, ...]:
        """The steps so far, which are then forgotten; arrays stay."""
        steps, self.steps = tuple(self.steps), []
        return steps


def _plain(value: Any) -> Any:
    """JSON's own types."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def cpu_steps(writer: StepWriter, op: Op) -> None:
    """Append the steps that compute `op` in exact arithmetic, or in float32 in a float island."""
    _WRITERS[type(op)](writer, op)


def _quantize(writer: StepWriter, op: Quantize) -> None:
    arrays = _affine(op.quant)
    writer.step(op, "quantize", op.inputs, arrays=arrays, axis=op.quant.axis)


def _dequantize(writer: StepWriter, op: Dequantize) -> None:
    arrays = _affine(op.quant)
    writer.step(op, "dequantize", op.inputs, arrays=arrays, axis=op.quant.axis)


def _affine(quant: Quant) -> dict[str, Array]:
    return {"scale": quant.scales, "zero_point": quant.zeros}


def _flip_sign(writer: StepWriter, op: FlipSign) -> None:
    writer.step(op, "flip_sign", op.inputs)


def _table(writer: StepWriter, op: Table) -> None:
    exact = op.table.dtype == np.int8
    writer.step(op, "table", op.inputs, arrays={"table": op.table}, exact=exact)


def _conv2d(writer: StepWriter, op: Conv2d) -> None:
    total = _conv2d_sum(writer, op, op)
    multiplier = op.product_scale if op.y_quant is None else law_multiplier(op)
    _round_sum(writer, op, total, multiplier, axis=1)


def _conv2d_sum(writer: StepWriter, op: Conv2d | AccelConv2d, law: Conv2d) -> str:
    return writer.step(
        op,
        "conv2d_sum",
        op.inputs,
        output=f"{op.output}.sum",
        arrays={"weight": centred_weight(law), "bias": law.bias},
        cost=macs(op, writer.graph),
        strides=op.strides,
        pads=op.pads,
        dilations=op.dilations,
        group=op.group,
        x_zero=law.x_quant.tensor_zero,
    )


def _accel_conv2d(writer: StepWriter, op: AccelConv2d) -> None:
    """The law itself, with the clamps that later passes have narrowed."""
    law, clamp = op.origin, _clamp(op)
    if isinstance(law, AveragePool):
        _integer_average(writer, replace(law, inputs=op.inputs, output=op.output), clamp)
        return
    if isinstance(law, Table):
        _clamped_table(writer, op, law)
        return
    total = _conv2d_sum(writer, op, law)
    assert law.y_quant is not None
    if law.fixed is not None:
        _round_fixed(writer, op, total, law.fixed, law.y_quant.tensor_zero, clamp)
        return
    writer.step(
        op,
        "requantize",
        (total,),
        arrays={"multiplier": law_multiplier(law)},
        axis=1,
        zero_point=law.y_quant.tensor_zero,
        low=clamp[0],
        high=clamp[1],
    )


def _round_fixed(
    writer: StepWriter, op: Op, total: str, law: FixedPoint, zero: int, clamp: tuple[int, int]
) -> None:
    writer.step(
        op,
        "requantize_fixed",
        (total,),
        arrays={"mult": law.mult, "shift": law.shift},
        axis=1,
        rounding=law.rounding.name,
        zero_point=zero,
        low=clamp[0],
        high=clamp[1],
    )


def _accel_add(writer: StepWriter, op: AccelAdd) -> None:
    """The law itself, with the clamps that later passes have narrowed."""
    if isinstance(op.origin, Table):
        _clamped_table(writer, op, op.origin)
        return
    table = np.clip(_binary_table(op.origin), *_clamp(op)).astype(np.int8)
    writer.step(op, "binary_table", op.inputs, arrays={"table": table})


def _clamped_table(writer: StepWriter, op: AccelConv2d | AccelAdd, law: Table) -> None:
    table = np.clip(law.table, *_clamp(op)).astype(np.int8)
    writer.step(op, "table", op.inputs[:1], arrays={"table": table})


def _clamp(op: AccelConv2d | AccelAdd) -> tuple[int, int]:
    return int(op.params.low[0]), int(op.params.high[0])


def _matmul(writer: StepWriter, op: MatMul) -> None:
    inner = writer.graph.types[op.inputs[0]].shape[-1]
    if inner > _LARGEST_MATMUL:
        raise CompileError(
            f"node {op.name!r}: needs at most {_LARGEST_MATMUL} products in a sum that fits int32,"
            f" got {inner}; split the product"
        )
    total = writer.step(
        op,
        "matmul_sum",
        op.inputs,
        output=f"{op.output}.sum",
        cost=macs(op, writer.graph),
        a_zero=op.a_quant.tensor_zero,
        b_zero=op.b_quant.zero_point[0],
    )
    scale = op.product_scale.reshape(-1)
    if op.y_quant is not None:
        with np.errstate(over="ignore", under="ignore"):
            scale = scale / np.float32(op.y_quant.tensor_scale)
    _round_sum(writer, op, total, scale, axis=-1)


def _round_sum(
    writer: StepWriter, op: Requantizing, total: str, multiplier: Array, *, axis: int
) -> None:
    """Codes of `y_quant` by the law, or float32, from exact sums."""
    if not np.isfinite(multiplier).all():
        raise CompileError(f"node {op.name!r}: needs scales whose quotient is a float32, got inf")
    arrays = {"multiplier": multiplier}
    if op.y_quant is None:
        _clamped(writer, op, "scale", (total,), arrays=arrays, axis=axis)
        return
    low, high = code_bounds(op.y_quant, op.bounds)
    writer.step(
        op,
        "requantize",
        (total,),
        arrays=arrays,
        axis=axis,
        zero_point=op.y_quant.tensor_zero,
        low=low,
        high=high,
    )


def _clamped(
    writer: StepWriter, op: Requantizing, function: str, inputs: tuple[str, ...], **more: Any
) -> None:
    """A float32 step and the clamps of `op` behind it."""
    name = f"{op.output}.unclamped" if op.bounds else op.output
    writer.step(op, function, inputs, output=name, exact=False, **more)
    for number, (low, high) in enumerate(op.bounds, 1):
        source = name
        name = op.output if number == len(op.bounds) else f"{op.output}.clamped{number}"
        writer.step(
            op,
            "float.clip",
            (source,),
            output=name,
            exact=False,
            low=low if np.isfinite(low) else None,
            high=high if np.isfinite(high) else None,
        )


def _binary(writer: StepWriter, op: Binary) -> None:
    quants = (op.a_quant, op.b_quant)
    if op.y_quant is not None:
        writer.step(op, "binary_table", op.inputs, arrays={"table": _binary_table(op)})
        return
    reals = tuple(
        writer.step(
            op,
            "dequantize",
            (source,),
            output=f"{op.output}.{side}",
            arrays=_affine(quant),
            exact=False,
        )
        for side, source, quant in zip("ab", op.inputs, quants, strict=True)
    )
    _clamped(writer, op, f"float.{op.function}", reals)


def _binary_table(op: Binary) -> npt.NDArray[np.int8]:
    """The result for all 65,536 pairs of codes, int8 (256, 256)."""
    assert op.y_quant is not None
    if op.table is not None:
        return op.table
    try:
        return binary_codes(op.function, op.a_quant, op.b_quant, op.y_quant, op.bounds)
    except ValueError:
        raise CompileError(
            f"node {op.name!r}: needs scales for which float32 holds both operands, got"
            f" {op.a_quant.tensor_scale:g} and {op.b_quant.tensor_scale:g}"
        ) from None


def _average_pool(writer: StepWriter, op: AveragePool) -> None:
    if op.y_quant is not None:
        _integer_average(writer, op, code_bounds(op.y_quant, op.bounds))
        return
    scale = op.x_quant.tensor_scale
    _clamped(writer, op, "average_pool_real", op.inputs, scale=scale, **_window(op))


def _integer_average(writer: StepWriter, op: AveragePool, clamp: tuple[int, int]) -> None:
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


def _concat(writer: StepWriter, op: Concat) -> None:
    writer.step(op, "concat", op.inputs, axis=op.axis)


def _reshape(writer: StepWriter, op: Reshape) -> None:
    writer.step(op, "reshape", op.inputs, shape=op.shape)


def _transpose(writer: StepWriter, op: Transpose) -> None:
    writer.step(op, "transpose", op.inputs, perm=op.perm)


def _pick(writer: StepWriter, op: Pick) -> None:
    type_ = writer.graph.types[op.output]
    fill = float(op.fill) if type_.dtype == "float32" else int(op.fill)
    arrays = {f"indices{axis}": index for axis, index in zip(op.axes, op.indices, strict=True)}
    exact = type_.dtype != "float32"
    writer.step(op, "pick", op.inputs, arrays=dict(arrays), exact=exact, axes=op.axes, fill=fill)


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


def _float(writer: StepWriter, op: FloatOp) -> None:
    name = f"float.{op.function}"
    writer.step(op, name, op.inputs, exact=False, cost=op.macs, **op.attributes)


def _code_op(writer: StepWriter, op: CodeOp) -> None:
    writer.step(op, op.function, op.inputs, arrays=op.arrays, **op.attributes)


_WRITERS: dict[type[Op], Callable[[StepWriter, Any], None]] = {
    Quantize: _quantize,
    Dequantize: _dequantize,
    FlipSign: _flip_sign,
    Table: _table,
    Conv2d: _conv2d,
    AccelConv2d: _accel_conv2d,
    AccelMaxPool2d: _max_pool,
    AccelAdd: _accel_add,
    MatMul: _matmul,
    Binary: _binary,
    AveragePool: _average_pool,
    MaxPool: _max_pool,
    Concat: _concat,
    Reshape: _reshape,
    Transpose: _transpose,
    Patches: _patches,
    Pick: _pick,
    FloatOp: _float,
    CodeOp: _code_op,
}
