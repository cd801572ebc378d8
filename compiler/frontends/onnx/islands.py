"""Operators on real numbers that this compiler knows nothing about: run by onnxruntime.

Each becomes a model of one node, which the CPU hands to onnxruntime. Its integer inputs (axes,
shapes) and short lists of numbers are constants of that model; shapes of results come from ONNX's
shape inference.
"""

import base64
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vitral.compiler.frontends.onnx.fold import node_proto
from vitral.compiler.frontends.onnx.scope import Scope
from vitral.compiler.frontends.onnx.symbols import Const, Symbol, Tensor
from vitral.runtime.cpu import OPERATORS as CPU_OPERATORS

__all__ = ["is_float", "island", "island_operators"]

_RESULTS = ("float32", "int32", "int64", "bool")
_EXCLUDED = ("Random", "Sequence", "String", "Optional", "Bernoulli", "Multinomial", "Dynamic")
_OLDEST_IR = 8
_SHORT = 64


@lru_cache(maxsize=1)
def island_operators() -> frozenset[str]:
    """Operators of ai.onnx that onnxruntime may run in a float island, those known here included.

    Those with graphs inside, sequences, text or random numbers are none.
    """
    return frozenset(
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if schema.domain == ""
        and not schema.deprecated
        and not schema.name.startswith(_EXCLUDED)
        and not any(
            a.type in (onnx.defs.OpSchema.AttrType.GRAPH, onnx.defs.OpSchema.AttrType.GRAPHS)
            for a in schema.attributes.values()
        )
    )


def is_float(scope: Scope) -> bool:
    """Whether all inputs are float tensors and constants, so that no byte is promised."""
    tensors = [a for a in scope.args if isinstance(a, Tensor)]
    others = [a for a in scope.args if a is not None and not isinstance(a, Tensor | Const)]
    return bool(tensors) and not others and all(t.type.dtype == "float32" for t in tensors)


def island(scope: Scope, *, numpy_only: bool) -> tuple[Symbol, ...]:
    """All results of a node that no import function takes, as float operators.

    Raises CompileError that names the operator when it cannot run in an island: not with numpy
    alone, not without onnxruntime, not on codes, and not with shapes that depend on data.
    """
    node = scope.node
    what = f"operator {node.domain or 'ai.onnx'}::{node.op}"
    wanted = f"tensor {node.outputs[0]!r} needs it"
    if node.domain != "" or node.op not in island_operators() or not node.outputs[0]:
        raise scope.fail(f"{what} is not supported; {wanted}")
    if numpy_only:
        raise scope.fail(f"{what} has no numpy form, which cpu='numpy' asks for; {wanted}")
    if find_spec("onnxruntime") is None:
        raise scope.fail(f"{what} runs in onnxruntime only, which is not installed; {wanted}")
    model, tensors = _model(scope)
    attributes = {"model": base64.b64encode(model.SerializeToString()).decode()}
    results: list[Symbol] = []
    for number, (info, name) in enumerate(
        zip(model.graph.output, _named(node.outputs), strict=True)
    ):
        dtype, shape = _type(scope, info)
        results.append(
            scope.float_op(
                "onnx",
                tensors,
                shape,
                attributes={**attributes, "result": number, "operator": node.op},
                output=name,
                dtype=dtype,
            )
        )
    return tuple(results)


def _named(outputs: tuple[str, ...]) -> list[str]:
    """Without the empty names at the end; one in between is refused by onnx itself."""
    kept = list(outputs)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _model(scope: Scope) -> tuple[onnx.ModelProto, tuple[Tensor, ...]]:
    """The node with constants inside and its shapes inferred, and the values that it reads."""
    node = scope.node
    names: list[str] = []
    infos: list[onnx.ValueInfoProto] = []
    constants: list[onnx.TensorProto] = []
    tensors: list[Tensor] = []
    for number, symbol in enumerate(scope.args):
        name = "" if symbol is None else f"x{number}"
        names.append(name)
        if isinstance(symbol, Const) and _goes_inside(symbol.array):
            constants.append(numpy_helper.from_array(symbol.array, name))
        elif symbol is not None:
            tensor = scope.builder.tensor(symbol, node.name)
            element = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.type.dtype))
            infos.append(helper.make_tensor_value_info(name, element, tensor.shape))
            tensors.append(tensor)
    count = len(_named(node.outputs))
    proto = node_proto(node, names, [f"y{i}" for i in range(count)])
    outputs = [helper.make_empty_tensor_value_info(name) for name in proto.output]
    graph = helper.make_graph([proto], "island", infos, outputs, constants)
    opsets = [helper.make_opsetid("", node.opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_OLDEST_IR)
    # Both raise anything; all of it means that node and inputs do not fit each other.
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        _try_out(model, tensors)
    except Exception as error:
        raise scope.fail(f"does not fit its inputs: {error}") from None
    return inferred, tuple(tensors)


def _goes_inside(array: np.ndarray) -> bool:
    """Integers and short lists of numbers, which may decide shapes; weights stay outside."""
    return array.dtype != np.float32 or array.size <= _SHORT


def _try_out(model: onnx.ModelProto, tensors: list[Tensor]) -> None:
    """onnxruntime checks more than ONNX does, and some of it in the first run only."""
    run = CPU_OPERATORS["float.onnx"]
    encoded = base64.b64encode(model.SerializeToString()).decode()
    ones = (np.ones(tensor.shape, tensor.type.dtype) for tensor in tensors)
    run(*ones, model=encoded, result=0, operator=model.graph.node[0].op_type)


def _type(scope: Scope, info: onnx.ValueInfoProto) -> tuple[str, tuple[int, ...]]:
    tensor: Any = info.type.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape"):
        raise scope.fail("needs a result whose shape is known at compile time, got one that is not")
    dtype = str(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    if dtype not in _RESULTS:
        raise scope.fail(f"needs a result of {', '.join(_RESULTS)}, got {dtype}")
    if not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
        raise scope.fail("needs a result whose shape is known at compile time, got one that is not")
    return dtype, tuple(dim.dim_value for dim in tensor.shape.dim)
