"""A network's tensors by plain numpy: what its run on a device must be equal to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.assemble import plan
from vitral.compiler.frontends.onnx import import_onnx
from vitral.compiler.frontends.onnx.model import Source
from vitral.compiler.ir.ops import AccelOp
from vitral.compiler.pipeline import lower
from vitral.runtime.module import CpuStep
from vitral.runtime.steps import run_step

__all__ = ["numpy_tensors"]

Array = npt.NDArray[Any]


def numpy_tensors(
    model: Source, feeds: Mapping[str, Array], shapes: Mapping[str, Sequence[int]] | None = None
) -> dict[str, Array]:
    """Every tensor of a model by name, each operator in exact integers on the CPU.

    Nothing of schedules, programs and simulators has a part in it. Quantized tensors are int8, as
    in `Session.tensors`; one of uint8 is held as value - 128.
    """
    graph = lower(import_onnx(model, shapes))
    on_cpu = (replace(op, on_cpu=True) if isinstance(op, AccelOp) else op for op in graph.ops)
    planned = plan(replace(graph, ops=tuple(on_cpu)))
    values: dict[str, Array] = {name: np.asarray(array) for name, array in feeds.items()}
    for step in planned.steps:
        assert isinstance(step, CpuStep), f"{step.name} is no CPU step"
        run_step(step, values, planned.arrays)
    return values
