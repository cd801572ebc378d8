"""Executes the steps of a module that run on the CPU."""

from collections.abc import Mapping

import numpy.typing as npt

from vitral.errors import DeviceError
from vitral.runtime.cpu import OPERATORS
from vitral.runtime.module import CpuStep

__all__ = ["run_step"]


def run_step(
    step: CpuStep, values: dict[str, npt.NDArray], constants: Mapping[str, npt.NDArray]
) -> None:
    """Add the step's outputs to `values`.

    Raises
    ------
    DeviceError
        When the operator is unknown, as in a module of a newer Vitral, or refuses its input.
    """
    operator = OPERATORS.get(step.op)
    if operator is None:
        raise DeviceError(
            f"{step.name}: no CPU operator {step.op!r}; this Vitral is older than the module"
        )
    tensors = [values[name] for name in step.inputs]
    tensors += [constants[name] for name in step.constants]
    try:
        results = operator(*tensors, **step.attributes)
    except ValueError as error:
        raise DeviceError(f"{step.name} ({step.op}): {error}") from None
    if len(step.outputs) == 1 and not isinstance(results, tuple):
        results = (results,)
    values.update(zip(step.outputs, results, strict=True))
