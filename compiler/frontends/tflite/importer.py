"""Import of an int8 TFLite model as a graph of the IR."""

from collections.abc import Callable, Mapping, Sequence

from vitral.compiler.frontends.tflite import (
    conv,
    edges,
    elementwise,
    pool,
    regions,
    shape,
    softmax,
    unary,
    variables,
)
from vitral.compiler.frontends.tflite.builder import Builder, Value
from vitral.compiler.frontends.tflite.file import read_bytes
from vitral.compiler.frontends.tflite.model import Model, TensorRecord, load_model
from vitral.compiler.frontends.tflite.scope import ROUNDINGS, Scope, TfliteRounding
from vitral.compiler.frontends.tflite.states import States
from vitral.compiler.ir import QUANTIZED, Graph, Quant
from vitral.errors import CompileError

__all__ = ["OPERATORS", "import_tflite"]

OPERATORS: dict[str, Callable[[Scope], Value | tuple[Value, ...]]] = {
    **conv.OPERATORS,
    **elementwise.OPERATORS,
    **pool.OPERATORS,
    **edges.OPERATORS,
    **regions.OPERATORS,
    **shape.OPERATORS,
    **softmax.OPERATORS,
    **unary.OPERATORS,
    **variables.OPERATORS,
}
"""Operator to its import function."""

_WITHOUT_RESULT = ("ASSIGN_VARIABLE", "CALL_ONCE")
_FEEDS = ("int8", "uint8", "float32")


def import_tflite(
    source: object,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    rounding: TfliteRounding = "reference",
) -> Graph:
    """The graph of a model given as path or bytes; `shapes` replaces whole shapes of inputs.

    Raises CompileError, in one line naming node and tensor, for whatever the compiler refuses.
    """
    if rounding not in ROUNDINGS:
        raise CompileError(f"tflite_rounding must be one of {', '.join(ROUNDINGS)}, got {rounding}")
    model = load_model(read_bytes(source))
    builder = Builder({tensor.name for tensor in model.tensors})
    values, states = _inputs(model, builder, shapes or {}), States()
    for node in model.nodes:
        scope = Scope(
            model=model,
            node=node,
            values=values,
            builder=builder,
            states=states,
            rounding=rounding,
        )
        _import_node(scope)
    repeated = [i for i in model.outputs if model.outputs.count(i) > 1]
    if repeated:
        raise CompileError(f"output {model.tensors[repeated[0]].name!r}: needs to be listed once")
    outputs = {model.tensors[i].name: _output(model, i, values, builder) for i in model.outputs}
    edges = {**_edges(model), **states.edges}
    return builder.finish({**outputs, **states.outputs()}, edges)


def _inputs(
    model: Model, builder: Builder, shapes: Mapping[str, Sequence[int] | int]
) -> dict[int, Value]:
    tensors = [model.tensors[i] for i in model.inputs]
    names = {tensor.name for tensor in tensors}
    unknown = [name for name in shapes if name not in names]
    if unknown:
        raise CompileError(
            f"shapes names {unknown[0]!r}, the inputs are {', '.join(sorted(names))}"
        )
    values: dict[int, Value] = {}
    for tensor in tensors:
        if tensor.dtype not in _FEEDS:
            raise CompileError(
                f"input {tensor.name!r}: needs {' or '.join(_FEEDS)}, got {tensor.dtype}"
            )
        dims = _bound(tensor, shapes)
        if min(dims, default=1) < 1:
            raise CompileError(f"input {tensor.name!r}: needs sizes > 0, got {list(dims)}")
        values[tensor.index] = builder.input(tensor.name, dims, tensor.dtype)
    return values


def _bound(tensor: TensorRecord, shapes: Mapping[str, Sequence[int] | int]) -> tuple[int, ...]:
    given = shapes.get(tensor.name)
    if given is None:
        return tensor.shape
    if isinstance(given, int) or len(given) != len(tensor.shape):
        raise CompileError(
            f"input {tensor.name!r}: needs a shape of {len(tensor.shape)} sizes, got {given}"
        )
    return tuple(int(size) for size in given)


def _import_node(scope: Scope) -> None:
    model, node = scope.model, scope.node
    operator = OPERATORS.get(node.op)
    if operator is None:
        names = ", ".join(repr(model.tensors[i].name) for i in node.outputs) or "nothing"
        raise node.fail(f"this operator is not supported; it computes {names}")
    if not node.outputs and node.op not in _WITHOUT_RESULT:
        raise node.fail("needs a result, got none")
    found = operator(scope)
    results = found if isinstance(found, tuple) else (found,)
    scope.values.update(zip(node.outputs, results, strict=False))


def _output(model: Model, index: int, values: dict[int, Value], builder: Builder) -> Value:
    tensor = model.tensors[index]
    if index not in values:
        if tensor.array is None:
            raise CompileError(f"output {tensor.name!r}: needs a node that computes it, found none")
        values[index] = builder.constant(tensor.name, tensor.array)
    return values[index]


def _edges(model: Model) -> dict[str, Quant]:
    """Scales of inputs and outputs that hold codes."""
    tensors = [model.tensors[i] for i in (*model.inputs, *model.outputs)]
    return {
        tensor.name: tensor.quant
        for tensor in tensors
        if tensor.quant is not None and tensor.quant.axis is None and tensor.dtype in QUANTIZED
    }
