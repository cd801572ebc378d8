"""Breaks models: each must compile or be refused in one line."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import vitral
from fuzz.generate import random_sample
from vitral.errors import VitralError

__all__ = ["BREAKS", "broken_model", "check_broken", "refusal"]

Rng = np.random.Generator
_NUMBERS = (0, -1, 1, 2, 3, 255, -(2**31), 2**31, 2**40, 2**62)
_BASES = 40
"""Different models that are broken."""


def broken_model(seed: int) -> tuple[str, bytes]:
    """What was done to a model, in a word, and its bytes."""
    rng = np.random.default_rng([seed, 0xBAD])
    model = onnx.ModelProto()
    model.CopyFrom(random_sample(int(rng.integers(_BASES)), operators=4).model)
    name = list(BREAKS)[int(rng.integers(len(BREAKS)))]
    for _ in range(int(rng.integers(1, 3))):
        BREAKS[name](model, rng)
    data = model.SerializeToString()
    if name == "bytes":
        data = _flipped(data, rng)
    return name, data


def check_broken(seed: int) -> str | None:
    """What is wrong with how a broken model is dealt with."""
    name, data = broken_model(seed)
    text = refusal(data)
    return None if text is None else f"seed {seed} ({name}): {text}"


def refusal(data: bytes) -> str | None:
    """What is wrong with how a broken model is dealt with; None if it is right."""
    try:
        vitral.compile(data)
    except VitralError as error:
        lines = str(error).splitlines()
        return None if len(lines) == 1 and lines[0] else f"needs one line, got {str(error)!r}"
    except Exception as error:  # whatever comes out is what is looked for
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


def _flipped(data: bytes, rng: Rng) -> bytes:
    """Some bytes changed; or all from one on left out."""
    changed = bytearray(data)
    if rng.random() < 0.2:
        return bytes(changed[: int(rng.integers(len(data)))])
    for _ in range(int(rng.integers(1, 6))):
        changed[int(rng.integers(len(data)))] = int(rng.integers(256))
    return bytes(changed)


def _leave_bytes(model: onnx.ModelProto, rng: Rng) -> None:
    """Bytes change once the model is written."""


def _drop_constant(model: onnx.ModelProto, rng: Rng) -> None:
    constants = model.graph.initializer
    if constants:
        del constants[int(rng.integers(len(constants)))]


def _wrong_type(model: onnx.ModelProto, rng: Rng) -> None:
    """A constant of another element type, its data left as they are or converted."""
    constant = _one(model.graph.initializer, rng)
    array = _readable(constant)
    kinds = (TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32)
    kinds += (TensorProto.INT64, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.STRING)
    kind = kinds[int(rng.integers(len(kinds)))]
    if array is None or rng.random() < 0.5 or kind == TensorProto.STRING:
        constant.data_type = kind
        return
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    constant.CopyFrom(numpy_helper.from_array(array.astype(dtype), constant.name))


def _wrong_shape(model: onnx.ModelProto, rng: Rng) -> None:
    constant = _one(model.graph.initializer, rng)
    if constant.dims and rng.random() < 0.6:
        constant.dims[int(rng.integers(len(constant.dims)))] = _number(rng)
    else:
        constant.dims.append(_number(rng))


def _wrong_rank(model: onnx.ModelProto, rng: Rng) -> None:
    """A constant with a dimension more, or flat; its data fit."""
    constant = _one(model.graph.initializer, rng)
    array = _readable(constant)
    if array is None:
        return
    changed = array.reshape(-1) if rng.random() < 0.5 else array[None]
    constant.CopyFrom(numpy_helper.from_array(changed, constant.name))


def _wrong_value(model: onnx.ModelProto, rng: Rng) -> None:
    """A float that is no number, none at all, or out of range."""
    floats = [c for c in model.graph.initializer if c.data_type == TensorProto.FLOAT]
    if not floats:
        return
    constant = _one(floats, rng)
    array = _readable(constant)
    if array is None or not array.size:
        return
    array = array.copy()
    values = (0, -1, np.nan, np.inf, 1e-45, 1e-30, 1e30, 3e38)
    array.reshape(-1)[int(rng.integers(array.size))] = values[int(rng.integers(len(values)))]
    constant.CopyFrom(numpy_helper.from_array(array, constant.name))


def _other_operator(model: onnx.ModelProto, rng: Rng) -> None:
    node = _one(model.graph.node, rng)
    others = sorted(onnx.defs.get_all_schemas(), key=lambda schema: schema.name)
    own = [n.op_type for n in model.graph.node]
    node.op_type = _one(own, rng) if rng.random() < 0.7 else _one(others, rng).name
    if rng.random() < 0.2:
        node.domain = str(_one(["", "com.microsoft", "nowhere"], rng))


def _other_input(model: onnx.ModelProto, rng: Rng) -> None:
    """An input that is another tensor, unknown, or left out; a cycle now and then."""
    node = _one(model.graph.node, rng)
    names = [name for n in model.graph.node for name in (*n.input, *n.output)]
    choices = [*names, "", "unknown"]
    if not node.input or rng.random() < 0.15:
        node.input.append(str(_one(names, rng)))
    elif rng.random() < 0.15:
        del node.input[int(rng.integers(len(node.input))) :]
    else:
        node.input[int(rng.integers(len(node.input)))] = str(_one(choices, rng))


def _other_output(model: onnx.ModelProto, rng: Rng) -> None:
    """A result with a name that is taken, empty, or missing."""
    node = _one(model.graph.node, rng)
    names = [name for n in model.graph.node for name in (*n.input, *n.output)]
    if node.output and rng.random() < 0.7:
        node.output[0] = str(_one([*names, "", "new"], rng))
    elif rng.random() < 0.5:
        del node.output[:]
    else:
        node.output.append(str(_one(names, rng)))


def _attribute(model: onnx.ModelProto, rng: Rng) -> None:
    """A number that is out of range, a list too long or short, another type, a new attribute."""
    nodes = [node for node in model.graph.node if node.attribute]
    if not nodes:
        return
    node = _one(nodes, rng)
    index = int(rng.integers(len(node.attribute)))
    old = node.attribute[index]
    value = onnx.helper.get_attribute_value(old)
    numbers = list(value) if isinstance(value, list | tuple) or hasattr(value, "append") else []
    if numbers and rng.random() < 0.6:
        numbers[int(rng.integers(len(numbers)))] = _number(rng)
        new: object = numbers
    else:
        options = (_number(rng), [_number(rng)] * int(rng.integers(1, 9)), 0.5, "text", [1.5, 2.5])
        new = options[int(rng.integers(len(options)))]
    name = old.name if rng.random() < 0.9 else "unheard_of"
    node.attribute[index].CopyFrom(onnx.helper.make_attribute(name, new))


def _graph_edges(model: onnx.ModelProto, rng: Rng) -> None:
    """An input's size, rank or type; outputs that nobody makes."""
    if rng.random() < 0.3:
        output = _one(model.graph.output, rng)
        names = [name for node in model.graph.node for name in node.input]
        output.name = str(_one([*names, "", "unknown"], rng))
        return
    tensor = _one(model.graph.input, rng).type.tensor_type
    kind = int(rng.integers(4))
    if kind == 0:
        tensor.elem_type = int(rng.integers(0, 25))
    elif kind == 1 and tensor.shape.dim:
        tensor.shape.dim[int(rng.integers(len(tensor.shape.dim)))].dim_value = _number(rng)
    elif kind == 2 and tensor.shape.dim:
        del tensor.shape.dim[-1]
    else:
        tensor.shape.dim.add().dim_param = "n"


def _versions(model: onnx.ModelProto, rng: Rng) -> None:
    if rng.random() < 0.5:
        model.ir_version = int(rng.integers(-1, 40))
    if model.opset_import and rng.random() < 0.8:
        model.opset_import[0].version = _number(rng)
    elif model.opset_import:
        del model.opset_import[0]


def _readable(constant: onnx.TensorProto) -> np.ndarray | None:
    """Its array, unless it was broken before."""
    try:
        return numpy_helper.to_array(constant)
    except ValueError:
        return None


def _number(rng: Rng) -> int:
    return int(_NUMBERS[int(rng.integers(len(_NUMBERS)))])


def _one(values, rng: Rng):  # type: ignore[no-untyped-def]
    return values[int(rng.integers(len(values)))]


BREAKS: dict[str, Callable[[onnx.ModelProto, Rng], None]] = {
    "bytes": _leave_bytes,
    "missing constant": _drop_constant,
    "type": _wrong_type,
    "shape": _wrong_shape,
    "rank": _wrong_rank,
    "value": _wrong_value,
    "operator": _other_operator,
    "input": _other_input,
    "output": _other_output,
    "attribute": _attribute,
    "edges": _graph_edges,
    "versions": _versions,
}
