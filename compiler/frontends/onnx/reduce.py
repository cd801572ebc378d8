"""ReduceMean and ArgMax along any axes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Pending, Real, Symbol
from vitral.compiler.ir import Quant, TensorType
from vitral.compiler.ir.ops import AveragePool, CodeOp

__all__ = ["OPERATORS"]


def _reduce_mean(scope: Scope) -> Symbol:
    """Of codes an exact average, as of a pool; else a float island."""
    x = scope.need(0)
    axes, keep = _axes(scope, len(x.shape)), bool(scope.integer("keepdims", 1))
    if not axes:
        return x
    if isinstance(x, Real) and x.quant is not None:
        return _mean(scope, x, x.quant, axes, keep)
    tensor = scope.real(x)
    attributes = {"axes": axes, "keepdims": keep}
    shape = _reduced(x.shape, axes, keep)
    return scope.float_op("reduce_mean", (tensor,), shape, attributes=attributes)


def _axes(scope: Scope, rank: int) -> list[int]:
    """In ascending order; all of them where none is given, unless that means to do nothing."""
    axes = scope.integers(1) if scope.given(1) is not None else scope.integer_list("axes")
    if not axes:
        return [] if scope.integer("noop_with_empty_axes", 0) else list(range(rank))
    if any(not -rank <= axis < rank for axis in axes):
        raise scope.fail(f"needs axes of {rank} dimensions, got {axes}")
    return sorted({axis % rank for axis in axes})


def _reduced(shape: Sequence[int], axes: Sequence[int], keep: bool) -> tuple[int, ...]:
    if keep:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def _mean(scope: Scope, x: Real, quant: Quant, axes: list[int], keep: bool) -> Pending:
    """A pool over the whole image where that is the reduction, else over rows of one image."""
    rank, shape = len(x.shape), x.shape
    if rank in (3, 4) and axes == list(range(2, rank)):
        view = (*shape[:2], *shape[2:]) if rank == 4 else (*shape[:2], 1, shape[2])
        source = scope.reshape(x.tensor, view)
    else:
        rest = [i for i in range(rank) if i not in axes]
        turned = scope.transpose(x.tensor, (*rest, *axes))
        rows, count = (math.prod(shape[i] for i in part) for part in (rest, axes))
        source = scope.reshape(turned, (1, rows, 1, count))
    op = AveragePool(
        name=scope.node.name,
        inputs=(source.name,),
        output="",
        y_quant=None,
        x_quant=quant,
        kernel=(source.shape[2], source.shape[3]),
        strides=(1, 1),
    )
    return replace(scope.pending(op), shape=_reduced(shape, axes, keep))


def _arg(function: str) -> Callable[[Scope], Symbol]:
    """Index of the largest or smallest element, int64; codes are ordered as what they mean."""

    def operator(scope: Scope) -> Symbol:
        x = scope.need(0)
        rank, axis = len(x.shape), scope.integer("axis", 0)
        if not -rank <= axis < rank:
            raise scope.fail(f"needs an axis of {rank} dimensions, got {axis}")
        keep = bool(scope.integer("keepdims", 1))
        attributes = {
            "axis": axis % rank,
            "keepdims": keep,
            "last": bool(scope.integer("select_last_index", 0)),
        }
        shape = _reduced(x.shape, [axis % rank], keep)
        if not isinstance(x, Real) or x.quant is None:
            source = (scope.real(x),)
            return scope.float_op(function, source, shape, attributes=attributes, dtype="int64")
        return scope.builder.emit(
            CodeOp(
                name=scope.node.name,
                inputs=(x.tensor.name,),
                output=scope.output,
                function=function,
                type=TensorType(shape, "int64"),
                attributes=attributes,
            )
        )

    return operator


OPERATORS = {
    ("", "ReduceMean"): _reduce_mean,
    ("", "ArgMax"): _arg("arg_max"),
    ("", "ArgMin"): _arg("arg_min"),
}
