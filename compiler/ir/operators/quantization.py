"""`qnn.quantize` and `qnn.dequantize`: reals to codes and back by scale and zero point."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.operators.operator import Arrays, Attribute, Attrs, Operator, Types, need
from vitral.compiler.ir.operators.shapes import axis_of
from vitral.compiler.ir.types import TensorType
from vitral.runtime.cpu.convert import dequantize_array, quantize_array

__all__ = ["OPERATORS"]

Array = npt.NDArray[Any]

_CODES = ("int8", "uint8", "int16", "uint16", "int32")


def _check_maps(attrs: Attrs, x: TensorType, scale: TensorType, zero: TensorType) -> None:
    need(scale.dtype == "float32", f"needs scales of float32, got {scale.dtype}")
    if scale.shape:
        length = x.shape[axis_of(attrs["axis"], len(x.shape))]
        need(scale.shape == (length,), f"needs one scale or {length}, got {scale}")
    need(zero.shape in ((), scale.shape), f"needs zero points like the scales, got {zero}")


def _quantize_type(attrs: Attrs, args: Types) -> TensorType:
    x, scale, zero = args
    need(x.dtype == "float32", f"needs float32, got {x.dtype}")
    _check_maps(attrs, x, scale, zero)
    good = attrs["out_dtype"] in _CODES[:4]
    need(good, f"needs an out_dtype of {', '.join(_CODES[:4])}, got {attrs['out_dtype']!r}")
    return replace(x, dtype=attrs["out_dtype"])


def _maps(attrs: Attrs, args: Arrays) -> tuple[Array, Array, int | None]:
    x, scale, zero = args
    axis = axis_of(attrs["axis"], x.ndim) if scale.ndim else None
    return scale, np.broadcast_to(zero, scale.shape).astype(np.int32), axis


def _quantize(attrs: Attrs, args: Arrays) -> Array:
    """sat(rne(fl32(x / scale)) + zero point)"""
    scale, zero, axis = _maps(attrs, args)
    need(not np.isnan(args[0]).any(), "needs numbers, got NaN")
    return quantize_array(args[0], scale, zero, np.dtype(attrs["out_dtype"]), axis)


def _dequantize_type(attrs: Attrs, args: Types) -> TensorType:
    x, scale, zero = args
    need(x.dtype in _CODES, f"needs codes of {', '.join(_CODES)}, got {x.dtype}")
    _check_maps(attrs, x, scale, zero)
    return replace(x, dtype="float32")


def _dequantize(attrs: Attrs, args: Arrays) -> Array:
    """fl32(fl32(x - zero point) * scale)"""
    return dequantize_array(args[0], *_maps(attrs, args))


OPERATORS = (
    Operator(
        name="qnn.quantize",
        arity=range(3, 4),
        attributes={"axis": Attribute("int", -1), "out_dtype": Attribute("dtype", "int8")},
        relation=_quantize_type,
        compute=_quantize,
    ),
    Operator(
        name="qnn.dequantize",
        arity=range(3, 4),
        attributes={"axis": Attribute("int", -1)},
        relation=_dequantize_type,
        compute=_dequantize,
    ),
)
