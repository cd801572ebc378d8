"""Steps of operators of the text form that run on the CPU, with the meaning they have there."""

from collections.abc import Callable, Mapping
from typing import Any

from vitral.compiler.ir import Call
from vitral.compiler.ir.macs import macs
from vitral.compiler.ir.operators import OPERATORS
from vitral.compiler.ir.ops import Op
from vitral.compiler.place.step_writer import StepWriter
from vitral.errors import CompileError

__all__ = ["WRITERS"]


def _call(writer: StepWriter, op: Call) -> None:
    if op.op not in OPERATORS:
        raise CompileError(f"node {op.name!r}: needs an operator that the CPU has, got {op.op!r}")
    types = (writer.graph.types[name].dtype for name in (*op.inputs, op.output))
    writer.step(
        op,
        "call",
        op.inputs,
        exact=all("float" not in dtype for dtype in types),
        cost=macs(op, writer.graph),
        operator=op.op,
        **op.attrs,
    )


WRITERS: Mapping[type[Op], Callable[[StepWriter, Any], None]] = {Call: _call}
