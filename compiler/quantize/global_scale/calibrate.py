"""Gives every `annotation.simulated_quantize` its scale and limits."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Call, Graph
from vitral.compiler.quantize.global_scale.annotate import MOVED, PRODUCTS, SAME, SIMULATED
from vitral.compiler.quantize.global_scale.qconfig import QConfig
from vitral.compiler.quantize.global_scale.rewriter import Rewriter, call_of, scalar
from vitral.errors import CompileError

__all__ = ["calibrate", "power_of_two"]

_LEAST = -23
"""Exponent of the smallest range of weights: with it, shifts stay below 31."""


def calibrate(graph: Graph, qconfig: QConfig | None = None) -> Graph:
    """The annotated graph with dom_scale, clip_min and clip_max as arguments.

    Input codes have the scale global_scale / 2**(nbit_input - 1), weights the least power of two
    that is not below their largest magnitude over 2**(nbit_weight - 1), constants that are added to
    a sum the scale of that sum.
    """
    config = qconfig or QConfig()
    new = Rewriter(graph)
    names = {name: name for name in (*graph.inputs, *graph.constants)}
    scales: dict[str, float] = {}
    readers = graph.consumers()
    for op in map(call_of, graph.ops):
        inputs = tuple(names[name] for name in op.inputs)
        if op.op == SIMULATED:
            partners = [name for one in readers.get(op.output, ()) for name in one.inputs]
            scales[op.output] = _scale(graph, op, [scales.get(name) for name in partners], config)
            limit = _limit(op, config)
            values = (scales[op.output], -limit, limit)
            inputs = (*inputs, *(new.build.constant(scalar(value)) for value in values))
        else:
            scale = _scale_of(op, [scales.get(name) for name in op.inputs])
            if scale is not None:
                scales[op.output] = scale
        names[op.output] = new.forward(op, inputs)
    return new.finish(tuple(names[name] for name in graph.outputs))


def power_of_two(values: npt.NDArray[Any]) -> float:
    """The least power of two that no magnitude exceeds; 1 when all are 0."""
    most = float(np.abs(values).max(initial=0))
    if most == 0:
        return 1.0
    fraction, exponent = math.frexp(most)
    return 2.0 ** max(exponent - (fraction == 0.5), _LEAST)


def _scale(graph: Graph, op: Call, partners: list[float | None], config: QConfig) -> float:
    if op.attrs["kind"] == "input":
        return config.input_scale
    values = graph.constants[op.inputs[0]]
    if not np.isfinite(values).all():
        raise CompileError(f"constant {op.inputs[0]!r}: needs finite numbers, got nan or inf")
    if op.attrs["kind"] == "activation":
        return next(scale for scale in partners if scale is not None)
    return power_of_two(values) / 2 ** (config.nbit_weight - 1)


def _limit(op: Call, config: QConfig) -> int:
    """Largest code."""
    limits = {"input": config.input_limit, "weight": config.weight_limit}
    return limits.get(op.attrs["kind"], (1 << (config.nbit_activation - 1)) - 1)


def _scale_of(op: Call, scales: list[float | None]) -> float | None:
    """Scale of the codes that an operator gives; None when it gives float."""
    known = [scale for scale in scales if scale is not None]
    if len(known) < len(scales) or op.op not in (*PRODUCTS, *SAME, *MOVED, "add"):
        return None
    return known[0] * known[1] if op.op in PRODUCTS else min(known)
