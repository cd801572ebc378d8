"""Collects the steps of the CPU side of a module."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Graph
from vitral.compiler.ir.ops import Op, Requantizing
from vitral.compiler.placement.kernels import kernel_name, kernels
from vitral.runtime.cpu import OPERATORS
from vitral.runtime.module import CpuStep

__all__ = ["StepWriter"]

Array = npt.NDArray[Any]


class _Constant(Op):
    """Stands for a constant of the graph, which no operator of it makes."""

    kind = "constant"


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
                kernel=kernel_name(kernels(op, self.graph)),
            )
        )
        return output

    def clamped(
        self, op: Requantizing, function: str, inputs: tuple[str, ...], **more: Any
    ) -> None:
        """A float32 step and the clamps of `op` behind it."""
        name = f"{op.output}.unclamped" if op.bounds else op.output
        self.step(op, function, inputs, output=name, exact=False, **more)
        for number, (low, high) in enumerate(op.bounds, 1):
            source = name
            name = op.output if number == len(op.bounds) else f"{op.output}.clamped{number}"
            self.step(
                op,
                "float.clip",
                (source,),
                output=name,
                exact=False,
                low=low if np.isfinite(low) else None,
                high=high if np.isfinite(high) else None,
            )

    def constant(self, name: str) -> None:
        """A step that makes a constant of the graph a value."""
        op = _Constant(name=name, inputs=(), output=name)
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
