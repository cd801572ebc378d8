"""CPU operators of the graph as steps of a module."""

from collections.abc import Callable, Mapping
from typing import Any

from vitral.compiler.ir.ops import Op
from vitral.compiler.place import call_steps, sum_steps, value_steps, window_steps
from vitral.compiler.place.step_writer import StepWriter

__all__ = ["StepWriter", "cpu_steps"]

_WRITERS: Mapping[type[Op], Callable[[StepWriter, Any], None]] = {
    **value_steps.WRITERS,
    **window_steps.WRITERS,
    **sum_steps.WRITERS,
    **call_steps.WRITERS,
}


def cpu_steps(writer: StepWriter, op: Op) -> None:
    """Append the steps that compute `op` in exact arithmetic, or in float32 in a float island."""
    _WRITERS[type(op)](writer, op)
