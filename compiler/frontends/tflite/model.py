"""Reads a TFLite flatbuffer: tensors, and operators in execution order, as plain records."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.frontends.tflite.options import OPTIONS
from vitral.compiler.ir import QUANTIZED, Quant
from vitral.errors import CompileError

__all__ = ["Model", "Node", "TensorRecord", "load_model"]

Array = npt.NDArray[Any]

_VERSION = 3
_DTYPES = {
    "FLOAT32": "float32",
    "FLOAT16": "float16",
    "INT32": "int32",
    "UINT8": "uint8",
    "INT64": "int64",
    "BOOL": "bool",
    "INT16": "int16",
    "INT8": "int8",
    "FLOAT64": "float64",
}
_BROKEN = (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError)
"""What the generated accessors raise for offsets that point nowhere."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorRecord:
    """A tensor: `array` when the file holds its data, `quant` when it has scales.

    `dtype` is numpy's name, or the schema's in lower case where numpy has none. Names are unique.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    quant: Quant | None
    array: Array | None
    variable: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """One operator; a missing optional input is -1. `options` are read by `OPTIONS`."""

    index: int
    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]

    @property
    def where(self) -> str:
        """Text that names this node in an error."""
        return f"node {self.index} ({self.op})"

    def fail(self, text: str) -> CompileError:
        """An error about this node, to be raised by the caller."""
        return CompileError(f"{self.where}: {' '.join(text.split())}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """The main subgraph; inputs and outputs are indices of tensors."""

    tensors: tuple[TensorRecord, ...]
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def load_model(data: bytes) -> Model:
    """The first subgraph of a flatbuffer.

    Raises CompileError, in one line, for a file that is truncated or malformed, and where the
    package that reads it is not installed.
    """
    schema = _schema()
    try:
        return _Reader(schema, data).model()
    except CompileError:
        raise
    except _BROKEN as error:
        text = " ".join(str(error).split())
        raise CompileError(
            f"needs a whole TFLite file, got {len(data)} bytes that do not hold together: {text}"
        ) from None


def _schema() -> Any:
    try:
        import tflite
    except ImportError:
        raise CompileError(
            "reading TFLite needs the package 'tflite'; pip install 'vitral[tflite]'"
        ) from None
    return tflite


class _Reader:
    """Walks the generated accessors of one file."""

    def __init__(self, schema: Any, data: bytes) -> None:
        self._schema = schema
        self._size = len(data)
        self._model = schema.Model.GetRootAsModel(data, 0)
        self._operators = _names(schema.BuiltinOperator)
        self._types = _names(schema.TensorType)

    def model(self) -> Model:
        model = self._model
        if model.Version() != _VERSION:
            raise CompileError(f"needs a TFLite file of version 3, got {model.Version()}")
        if not model.SubgraphsLength():
            raise CompileError("needs a TFLite file with a subgraph, got none")
        graph = model.Subgraphs(0)
        codes: list[str] = [
            self._code(c) for c in self._each(model.OperatorCodes, model.OperatorCodesLength)
        ]
        tensors = self._tensors(self._each(graph.Tensors, graph.TensorsLength))
        operators = self._each(graph.Operators, graph.OperatorsLength)
        nodes = tuple(self._node(i, op, codes) for i, op in enumerate(operators))
        result = Model(
            tensors=tensors,
            nodes=nodes,
            inputs=_integers(graph.InputsAsNumpy()),
            outputs=_integers(graph.OutputsAsNumpy()),
        )
        _check_indices(result)
        return result

    def _each(self, item: Callable[[int], Any], length: Callable[[], int]) -> list[Any]:
        count = length()
        if not 0 <= count <= self._size:
            raise ValueError(f"a list of {count} records")
        return [item(i) for i in range(count)]

    def _code(self, code: Any) -> str:
        """Files older than 2020 have the operator in a byte, newer ones in 32 bits as well."""
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        name = self._operators.get(number, f"operator {number}")
        if name != "CUSTOM":
            return name
        custom = code.CustomCode()
        return "CUSTOM " + ("" if custom is None else custom.decode(errors="replace"))

    def _tensors(self, tensors: Sequence[Any]) -> tuple[TensorRecord, ...]:
        records: list[TensorRecord] = []
        taken: set[str] = set()
        for index, tensor in enumerate(tensors):
            given = tensor.Name()
            name = given.decode(errors="replace") if given else f"tensor{index}"
            name = name if name not in taken else f"{name}#{index}"
            taken.add(name)
            records.append(self._tensor(index, name, tensor))
        return tuple(records)

    def _tensor(self, index: int, name: str, tensor: Any) -> TensorRecord:
        schema_type = self._types.get(tensor.Type(), f"type {tensor.Type()}")
        dtype = _DTYPES.get(schema_type, schema_type.lower())
        shape = _integers(tensor.ShapeAsNumpy())
        if any(size < 0 for size in shape):
            raise CompileError(f"tensor {name!r}: needs sizes >= 0, got {list(shape)}")
        if tensor.Sparsity() is not None:
            raise CompileError(f"tensor {name!r}: needs dense data, got a sparse tensor")
        return TensorRecord(
            index=index,
            name=name,
            shape=shape,
            dtype=dtype,
            quant=_quant(name, dtype, tensor.Quantization()),
            array=self._array(name, tensor.Buffer(), dtype, shape),
            variable=bool(tensor.IsVariable()),
        )

    def _array(self, name: str, buffer: int, dtype: str, shape: tuple[int, ...]) -> Array | None:
        if not 0 <= buffer < self._model.BuffersLength():
            raise ValueError(f"buffer {buffer} of tensor {name!r}")
        record = self._model.Buffers(buffer)
        if not buffer or not record.DataLength():
            return None
        if dtype not in _DTYPES.values():
            return np.empty(0, np.uint8)
        values = np.frombuffer(record.DataAsNumpy().tobytes(), dtype)
        if values.size != int(np.prod(shape, dtype=np.int64)):
            raise CompileError(
                f"tensor {name!r}: needs data of shape {list(shape)}, got {values.size} elements"
            )
        return values.reshape(shape)

    def _node(self, index: int, operator: Any, codes: Sequence[str]) -> Node:
        op: str = codes[int(operator.OpcodeIndex())]
        return Node(
            index=index,
            op=op,
            inputs=_integers(operator.InputsAsNumpy()),
            outputs=_integers(operator.OutputsAsNumpy()),
            options=self._options(op, operator.BuiltinOptions()),
        )

    def _options(self, op: str, table: Any) -> dict[str, Any]:
        """The fields by accessor; empty when the file has no options for the operator."""
        if op not in OPTIONS or table is None:
            return {}
        name, fields = OPTIONS[op]
        options = getattr(self._schema, name)()
        options.Init(table.Bytes, table.Pos)
        return {
            field: _integers(value) if field.endswith("AsNumpy") else value
            for field in fields
            if (value := getattr(options, field)()) is not None
        }


def _names(enumeration: type) -> dict[int, str]:
    return {v: n for n, v in vars(enumeration).items() if isinstance(v, int)}


def _integers(vector: Any) -> tuple[int, ...]:
    """An absent vector is 0 to the generated accessors."""
    return tuple(vector.tolist()) if isinstance(vector, np.ndarray) else ()


def _quant(name: str, dtype: str, parameters: Any) -> Quant | None:
    if parameters is None or not parameters.ScaleLength():
        return None
    scales = np.array(parameters.ScaleAsNumpy(), np.float32)
    given = parameters.ZeroPointAsNumpy() if parameters.ZeroPointLength() else np.zeros(1, np.int64)
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise CompileError(f"tensor {name!r}: needs finite scales > 0, got {scales.min():g}")
    if len(given) not in (1, len(scales)):
        raise CompileError(
            f"tensor {name!r}: needs a zero point for each of {len(scales)} scales,"
            f" got {len(given)}"
        )
    zeros = np.broadcast_to(given, scales.shape)
    if dtype in QUANTIZED and not set(zeros.tolist()) <= set(_codes(dtype)):
        raise CompileError(f"tensor {name!r}: needs zero points of {dtype}, got {zeros.max()}")
    return Quant(
        dtype=dtype,
        scale=tuple(float(s) for s in scales),
        zero_point=tuple(int(z) for z in zeros),
        axis=None if len(scales) == 1 else parameters.QuantizedDimension(),
    )


def _codes(dtype: str) -> range:
    limits = np.iinfo(dtype)
    return range(int(limits.min), int(limits.max) + 1)


def _check_indices(model: Model) -> None:
    limit = len(model.tensors)
    for node in model.nodes:
        wrong = [i for i in node.inputs if not -1 <= i < limit]
        wrong += [i for i in node.outputs if not 0 <= i < limit]
        if wrong:
            raise node.fail(f"needs tensors below {limit}, got {wrong[0]}")
    wrong = [i for i in (*model.inputs, *model.outputs) if not 0 <= i < limit]
    if wrong:
        raise CompileError(f"needs inputs and outputs below {limit}, got tensor {wrong[0]}")
