"""Reads a float model and brings it into the one form that the passes know."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference, version_converter
from onnx.reference import ReferenceEvaluator

from vitral.compiler.frontends.onnx.model import Source, load_model
from vitral.compiler.quantize.float_graph import Array, FloatGraph, attributes, set_attribute
from vitral.errors import QuantizeError

__all__ = ["prepare", "static_shapes"]

OPSET = 13
"""The first with scales per channel in QuantizeLinear."""
_QUANTIZED = (
    "QuantizeLinear",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "ConvInteger",
    "MatMulInteger",
)
_ROUNDS = 8
_LARGEST_FOLD = 1 << 24


def prepare(
    source: Source, shapes: Mapping[str, tuple[int, ...] | int] | None = None
) -> FloatGraph:
    """A graph of opset 13 or later without Constant, Identity, Dropout and constant parts.

    Parameters
    ----------
    source : ModelProto, bytes or path
    shapes : mapping, optional
        Sizes of symbolic dimensions: an input's name to its whole shape, or a symbol to its size.

    Raises
    ------
    QuantizeError, CompileError
        When the model is malformed, or quantized already.
    """
    model = _proto(source)
    _refuse_quantized(model)
    _bind(model, shapes or {})
    model = _newer(model)
    graph = FloatGraph(model)
    _check_inputs(graph)
    _drop_pass_through(graph)
    for _ in range(_ROUNDS):
        if not _fold_constants(graph):
            break
    _turn_dense_weights(graph)
    graph.sweep()
    if shapes:
        _size_outputs(graph)
    return graph


def static_shapes(graph: FloatGraph) -> dict[str, tuple[int | None, ...]]:
    """Shapes that inference finds; an open dimension is None."""
    try:
        inferred = shape_inference.infer_shapes(graph.to_model(), data_prop=True)
    except Exception as error:  # onnx raises RuntimeError and its own; its words are kept
        raise QuantizeError(f"shapes do not fit: {' '.join(str(error).split())}") from None
    infos = [*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output]
    found: dict[str, tuple[int | None, ...]] = {n: a.shape for n, a in graph.constants.items()}
    for info in infos:
        tensor = info.type.tensor_type
        if tensor.HasField("shape"):
            found[info.name] = tuple(
                d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else None
                for d in tensor.shape.dim
            )
    return found


def _proto(source: Source) -> onnx.ModelProto:
    """A copy, after the importer's checks of the file."""
    load_model(source)
    copy = onnx.ModelProto()
    if isinstance(source, onnx.ModelProto):
        copy.CopyFrom(source)
    elif isinstance(source, bytes):
        copy.ParseFromString(source)
    else:
        copy = onnx.load(source)
    del copy.graph.value_info[:]
    return copy


def _refuse_quantized(model: onnx.ModelProto) -> None:
    for node in model.graph.node:
        if node.op_type in _QUANTIZED or node.op_type.startswith("QLinear"):
            raise QuantizeError(
                f"needs a float model, got one that is quantized already:"
                f" node {node.name!r} ({node.op_type}); give it to vitral compile"
            )


def _bind(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...] | int]) -> None:
    used: set[str] = set()
    for info in model.graph.input:
        dims = info.type.tensor_type.shape.dim
        whole = shapes.get(info.name)
        if isinstance(whole, tuple):
            if len(whole) != len(dims):
                raise QuantizeError(
                    f"input {info.name!r}: needs {len(dims)} sizes, got {list(whole)}"
                )
            used.add(info.name)
        for index, dim in enumerate(dims):
            size = whole[index] if isinstance(whole, tuple) else shapes.get(dim.dim_param)
            if isinstance(size, int) and not isinstance(whole, tuple):
                used.add(dim.dim_param)
            if isinstance(size, int) and not dim.dim_value > 0:
                dim.Clear()
                dim.dim_value = size
            elif isinstance(size, int) and dim.dim_value != size:
                raise QuantizeError(
                    f"input {info.name!r}: dimension {index} is {dim.dim_value}, not {size}"
                )
    for name in shapes:
        if name not in used:
            inputs = ", ".join(i.name for i in model.graph.input)
            raise QuantizeError(f"no input or symbol {name!r} to bind; inputs are {inputs}")
    if shapes:
        for output in model.graph.output:
            for dim in output.type.tensor_type.shape.dim:
                dim.Clear()


def _size_outputs(graph: FloatGraph) -> None:
    """Outputs get the sizes that follow from those bound."""
    shapes = static_shapes(graph)
    for output in graph.outputs:
        dims = output.type.tensor_type.shape.dim
        for dim, size in zip(dims, shapes.get(output.name, ()), strict=False):
            if size is not None:
                dim.dim_value = size


def _newer(model: onnx.ModelProto) -> onnx.ModelProto:
    version = next((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), OPSET)
    if version >= OPSET:
        return model
    try:
        converted = version_converter.convert_version(model, OPSET)
    except Exception as error:  # the converter raises what its C++ does
        text = " ".join(str(error).split())
        raise QuantizeError(f"opset {version} cannot be converted to {OPSET}: {text}") from None
    del converted.graph.value_info[:]
    return converted


def _check_inputs(graph: FloatGraph) -> None:
    if not any(i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT for i in graph.inputs):
        raise QuantizeError("needs a model with a float32 input, got none")


def _drop_pass_through(graph: FloatGraph) -> None:
    """Constant nodes become constants; Identity and Dropout go."""
    for node in list(graph.nodes):
        if node.op_type == "Constant" and not node.domain:
            value = _constant_value(node)
            if value is not None:
                graph.constants[node.output[0]] = value
                graph.nodes = [n for n in graph.nodes if n is not node]
        elif node.op_type == "Identity" or (
            node.op_type == "Dropout" and len([n for n in node.output if n]) == 1
        ):
            source = node.input[0]
            if source in graph.constants:
                graph.constants[node.output[0]] = graph.constants[source]
                graph.nodes = [n for n in graph.nodes if n is not node]
            elif node.output[0] not in graph.output_names or source in graph.producers():
                graph.remove(node, instead=source)


def _constant_value(node: onnx.NodeProto) -> Array | None:
    values = attributes(node)
    if "value" in values:
        return numpy_helper.to_array(values["value"])
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        if name in values:
            return np.array(values[name], dtype)
    return None


def _fold_constants(graph: FloatGraph) -> bool:
    """Compute nodes of which all inputs, or the shape they ask for, are known."""
    shapes = static_shapes(graph)
    changed = False
    for node in list(graph.nodes):
        value = _known_shape(node, shapes) if node.op_type == "Shape" else None
        if (
            value is None
            and node.input
            and all(not name or name in graph.constants for name in node.input)
        ):
            value = _evaluated(graph, node)
        if value is None or node.output[0] in graph.output_names:
            continue
        graph.constants[node.output[0]] = value
        graph.nodes = [n for n in graph.nodes if n is not node]
        changed = True
    return changed


def _known_shape(
    node: onnx.NodeProto, shapes: Mapping[str, tuple[int | None, ...]]
) -> Array | None:
    shape = shapes.get(node.input[0])
    if shape is None or None in shape:
        return None
    values = attributes(node)
    return np.array(shape[values.get("start", 0) : values.get("end", len(shape))], np.int64)


def _evaluated(graph: FloatGraph, node: onnx.NodeProto) -> Array | None:
    """The node's one result by onnx's reference; None when it has no implementation there."""
    if len(node.output) != 1 or node.domain not in ("", "ai.onnx"):
        return None
    names = [name for name in node.input if name]
    infos = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(graph.constants[n].dtype), graph.constants[n].shape
        )
        for n in dict.fromkeys(names)
    ]
    single = helper.make_graph([node], "part", infos, [onnx.ValueInfoProto(name=node.output[0])])
    opsets = [helper.make_opsetid(d, v) for d, v in graph.opsets.items()]
    model = helper.make_model(single, opset_imports=opsets)
    try:
        (value,) = ReferenceEvaluator(model).run(None, {n: graph.constants[n] for n in names})
    except Exception:  # whatever it cannot do stays in the graph
        return None
    array = np.asarray(value)
    return array if array.size <= _LARGEST_FOLD else None


def _turn_dense_weights(graph: FloatGraph) -> None:
    """Weights of Gemm as (outputs, inputs), its alpha and beta inside weights and bias."""
    for node in graph.nodes:
        if node.op_type != "Gemm":
            continue
        weight, values = graph.array(node, 1), attributes(node)
        bias = graph.array(node, 2) if len(node.input) > 2 and node.input[2] else None
        open_bias = len(node.input) > 2 and bool(node.input[2]) and bias is None
        if weight is None or open_bias or values.get("transA", 0):
            continue
        turned = weight if values.get("transB", 0) else weight.T
        scaled = np.float32(values.get("alpha", 1.0)) * turned
        inputs = [node.input[0], graph.constant(f"{node.name}.weight", scaled)]
        if bias is not None:
            whole = np.broadcast_to(bias.reshape(-1), (turned.shape[0],))
            scaled_bias = np.float32(values.get("beta", 1.0)) * whole
            inputs.append(graph.constant(f"{node.name}.bias", scaled_bias))
        node.input[:] = inputs
        del node.attribute[:]
        set_attribute(node, "transB", 1)
