"""Folds batch norm, scales and constants into weights before quantization."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir import Call, Graph
from vitral.compiler.ir.operators import Misfit, attributes_of, operator
from vitral.compiler.quantize.global_scale.fold_scales import fold_scales
from vitral.compiler.quantize.global_scale.qconfig import QConfig
from vitral.compiler.quantize.global_scale.rewriter import Rewriter, call_of
from vitral.errors import CompileError

__all__ = ["prerequisite"]

Array = npt.NDArray[Any]
_NOTHING = ("nn.dropout", "copy")


def prerequisite(graph: Graph, qconfig: QConfig | None = None) -> Graph:
    """Batch norm becomes multiply and add, a bias an add; what constants alone give is computed;
    factors of channels go into the weights of the convolution or dense layer beside them."""
    return fold_scales(_simplified(graph))


def _simplified(graph: Graph) -> Graph:
    """Every operator that inference does not need as such in simpler ones."""
    new = Rewriter(graph)
    names: dict[str, str] = {name: name for name in (*graph.inputs, *graph.constants)}
    for op in graph.ops:
        call = call_of(op)
        inputs = tuple(names[name] for name in call.inputs)
        names[call.output] = _simple(new, call, inputs)
    return new.finish(tuple(names[name] for name in graph.outputs))


def _simple(new: Rewriter, op: Call, inputs: tuple[str, ...]) -> str:
    known = new.build.constants
    if op.op in _NOTHING:
        return inputs[0]
    if all(name in known for name in inputs):
        return new.build.constant(_computed(op, [known[name] for name in inputs]))
    rule = _RULES.get(op.op)
    if rule is not None and all(name in known for name in inputs[1:]):
        return rule(new, op, inputs)
    return new.forward(op, inputs)


def _computed(op: Call, args: list[Array]) -> Array:
    try:
        return operator(op.op).compute(attributes_of(op.op, op.attrs), args)
    except Misfit as error:
        raise CompileError(f"node {op.name!r} ({op.op}): {error}") from None


def _batch_norm(new: Rewriter, op: Call, inputs: tuple[str, ...]) -> str:
    """(x - mean) · gamma / sqrt(variance + epsilon) + beta, factor and summand rounded once."""
    attrs = attributes_of(op.op, op.attrs)
    gamma, beta, mean, variance = (
        new.build.constants[name].astype(np.float64) for name in inputs[1:]
    )
    if (variance + attrs["epsilon"] <= 0).any():
        raise CompileError(
            f"node {op.name!r}: needs variances above -epsilon, got {variance.min()}"
        )
    scale = (gamma if attrs["scale"] else 1) / np.sqrt(variance + attrs["epsilon"])
    shift = (beta if attrs["center"] else 0) - mean * scale
    shape = _along(attrs["axis"], len(new.build.types[inputs[0]].shape))
    scaled = new.build.call("multiply", inputs[0], scale.astype(np.float32).reshape(shape))
    return new.build.call("add", scaled, shift.astype(np.float32).reshape(shape))


def _bias_add(new: Rewriter, op: Call, inputs: tuple[str, ...]) -> str:
    axis = attributes_of(op.op, op.attrs)["axis"]
    shape = _along(axis, len(new.build.types[inputs[0]].shape))
    bias = new.build.constants[inputs[1]].reshape(shape)
    return new.build.call("add", inputs[0], bias, name=op.name, output=new.build.fresh(op.output))


def _along(axis: int, rank: int) -> tuple[int, ...]:
    """Shape of values along an axis that broadcasts, as short as it can be."""
    return (-1, *(1,) * (rank - axis % rank - 1))


_RULES: Mapping[str, Callable[[Rewriter, Call, tuple[str, ...]], str]] = {
    "nn.batch_norm": _batch_norm,
    "nn.bias_add": _bias_add,
}
