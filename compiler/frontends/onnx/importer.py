"""Import of a quantized ONNX model, in QDQ or QOperator form, as a graph of the IR."""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from vitral.compiler.frontends.onnx import (
    activations,
    cast,
    conv,
    elementwise,
    matmul,
    normalize,
    pool,
    qdq,
    reduce,
    regions,
    resize,
    shape,
    transposed,
)
from vitral.compiler.frontends.onnx.builder import Builder
from vitral.compiler.frontends.onnx.fold import constant_node, fold_node
from vitral.compiler.frontends.onnx.islands import is_float, island
from vitral.compiler.frontends.onnx.model import Model, Node, Source, load_model
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.shapes import bind_shapes
from vitral.compiler.frontends.onnx.symbols import Const, ConstReal, Symbol
from vitral.compiler.ir import Graph, TensorType
from vitral.errors import CompileError

__all__ = ["OPERATORS", "import_onnx"]

OPERATORS: dict[tuple[str, str], Callable[[Scope], Symbol | tuple[Symbol, ...]]] = {
    **qdq.OPERATORS,
    **conv.OPERATORS,
    **transposed.OPERATORS,
    **matmul.OPERATORS,
    **normalize.OPERATORS,
    **pool.OPERATORS,
    **reduce.OPERATORS,
    **cast.OPERATORS,
    **activations.OPERATORS,
    **elementwise.OPERATORS,
    **shape.OPERATORS,
    **regions.OPERATORS,
    **resize.OPERATORS,
}
"""(domain, operator) to its import function."""

_KEEP_CODES = ("Identity", "Dropout", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze")


def import_onnx(
    source: Source,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    cpu: str = "auto",
) -> Graph:
    """The graph of a model given as path, bytes or protobuf.

    `shapes` binds symbolic dimensions: input name to its whole shape, or symbol to its size. Float
    operators without a form in numpy run in onnxruntime, unless `cpu` is "numpy".

    Raises CompileError, in one line naming node and tensor, for whatever the compiler refuses.
    """
    model = load_model(source)
    reserved = {name for node in model.nodes for name in node.outputs}
    builder = Builder(reserved | set(model.constants))
    symbols: dict[str, Symbol] = {n: Const(array=a) for n, a in model.constants.items()}
    for given, dims in bind_shapes(model.inputs, shapes or {}):
        symbols[given.name] = builder.input(given.name, TensorType(dims, given.dtype))
    for node in model.nodes:
        _import_node(model, node, symbols, builder, cpu)
    return builder.finish({name: symbols[name] for name in model.outputs})


def _import_node(
    model: Model, node: Node, symbols: dict[str, Symbol], builder: Builder, cpu: str
) -> None:
    if node.domain == "" and node.op == "Constant":
        symbols[node.outputs[0]] = Const(array=constant_node(node))
        return
    scope = Scope(node=node, args=_arguments(model, node, symbols), builder=builder)
    folded = _folded(scope)
    if folded is not None:
        _check_results(node, 1, model.read)
        symbols[node.outputs[0]] = folded
        return
    results = _results(scope, model.read, cpu)
    symbols.update(zip(node.outputs, results, strict=False))


def _results(scope: Scope, read: Collection[str], cpu: str) -> tuple[Symbol, ...]:
    """What the node's import function gives; in a float island, also what it does not take."""
    node, numpy_only = scope.node, cpu == "numpy"
    operator = OPERATORS.get((node.domain, node.op))
    if operator is None:
        return island(scope, numpy_only=numpy_only)
    start = scope.builder.checkpoint()
    try:
        found = operator(scope)
        results = found if isinstance(found, tuple) else (found,)
        _check_results(node, len(results), read)
        return results
    except CompileError:
        if not is_float(scope):
            raise
        scope.builder.rewind(start)
        try:
            return island(scope, numpy_only=numpy_only)
        except CompileError:
            pass
        raise


def _check_results(node: Node, count: int, read: Collection[str]) -> None:
    unknown = [name for name in node.outputs[count:] if name in read]
    if unknown:
        raise node.fail(f"tensor {unknown[0]!r} is a second result, which is not supported")


def _arguments(
    model: Model, node: Node, symbols: Mapping[str, Symbol]
) -> tuple[Symbol | None, ...]:
    for name in node.inputs:
        if name in model.unreadable:
            raise node.fail(
                f"needs int8, uint8, int32 or float32 as tensor {name!r},"
                f" got {model.unreadable[name]}"
            )
    return tuple(symbols[name] if name else None for name in node.inputs)


def _folded(scope: Scope) -> Symbol | None:
    """The node's result when all its inputs are constants, else None."""
    node, args = scope.node, scope.args
    known = [a for a in args if a is not None]
    if node.domain != "" or not all(isinstance(a, Const | ConstReal) for a in known):
        return None
    if node.op in ("QuantizeLinear", "DequantizeLinear"):
        return None
    if any(isinstance(a, ConstReal) for a in known) and node.op in _KEEP_CODES:
        return None
    arrays = [scope.array(i) for i in range(len(args))]
    if not known or any(a is not None and a.dtype == np.object_ for a in arrays):
        raise CompileError(f"{node.where}: needs inputs of numbers, got none")
    return Const(array=fold_node(node, arrays))
