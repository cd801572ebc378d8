"""Steps of operators of the text form that run on the CPU, with the meaning they have there."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vitral.compiler.ir import Call, TensorType
from vitral.compiler.ir.macs import macs
from vitral.compiler.ir.ops import Op
from vitral.compiler.place.step_writer import StepWriter
from vitral.errors import CompileError

__all__ = ["WRITERS"]


def _call(writer: StepWriter, op: Call) -> None:
    types = (writer.graph.types[name].dtype for name in (*op.inputs, op.output))
    writer.step(
        op,
        "call",
        op.inputs,
        exact=all("float" not in dtype for dtype in types),
        cost=macs(op, writer.graph),
        operator=op.op,
        attrs={name: _plain(op, value) for name, value in op.attrs.items()},
    )


def _plain(op: Call, value: Any) -> Any:
    """An attribute as JSON has it; a type as its element type and shape."""
    if isinstance(value, TensorType):
        return [value.dtype, *value.shape]
    if isinstance(value, tuple | list):
        return [_plain(op, item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str | int | float) or value is None:
        return value
    raise CompileError(
        f"node {op.name!r} ({op.op}): needs attributes of numbers and strings to run on the CPU,"
        f" got {type(value).__name__}"
    )


WRITERS: Mapping[type[Op], Callable[[StepWriter, Any], None]] = {Call: _call}
