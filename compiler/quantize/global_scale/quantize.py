"""The passes of the global-scale scheme, one after the other."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Graph, TensorType, verify
from vitral.compiler.quantize.global_scale.annotate import annotate
from vitral.compiler.quantize.global_scale.calibrate import calibrate
from vitral.compiler.quantize.global_scale.prerequisite import prerequisite
from vitral.compiler.quantize.global_scale.qconfig import QConfig
from vitral.compiler.quantize.global_scale.realize import realize
from vitral.errors import CompileError

__all__ = ["PASSES", "bind", "quantize"]

PASSES: tuple[Callable[[Graph, QConfig], Graph], ...] = (
    prerequisite,
    annotate,
    calibrate,
    realize,
)
"""Applied in this order."""


def quantize(
    graph: Graph,
    params: Mapping[str, npt.NDArray[Any]] | None = None,
    qconfig: QConfig | None = None,
) -> Graph:
    """The integer graph of a float one.

    Parameters
    ----------
    graph : Graph
        Of float32 `Call` operators; weights are constants.
    params : mapping, optional
        Inputs that are constants, by name.
    qconfig : QConfig, optional
        The defaults when None.

    Raises
    ------
    CompileError
        In one line naming the operator, for weights that are no finite numbers and for sums that
        int32 does not hold.
    """
    config = qconfig or QConfig()
    graph = bind(graph, params or {})
    for apply in PASSES:
        graph = apply(graph, config)
        verify(graph)
    return graph


def bind(graph: Graph, params: Mapping[str, npt.NDArray[Any]]) -> Graph:
    """The graph with some inputs as constants."""
    arrays = {name: np.asarray(array) for name, array in params.items()}
    for name, array in arrays.items():
        if name not in graph.inputs:
            raise CompileError(f"parameter {name!r}: needs an input of that name, found none")
        got, wanted = TensorType(array.shape, str(array.dtype)), graph.types[name]
        if got != wanted:
            raise CompileError(f"parameter {name!r}: needs {wanted}, got {got}")
    inputs = tuple(name for name in graph.inputs if name not in arrays)
    return replace(graph, inputs=inputs, constants={**graph.constants, **arrays})
