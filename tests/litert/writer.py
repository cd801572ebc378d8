"""Writes TFLite models: tensors and operators are appended, `model` gives the flatbuffer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
import numpy.typing as npt
from ai_edge_litert import schema_py_generated as schema

__all__ = ["Tensor", "Writer"]

_TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "float16": schema.TensorType.FLOAT16,
    "int32": schema.TensorType.INT32,
    "uint8": schema.TensorType.UINT8,
    "int64": schema.TensorType.INT64,
    "bool": schema.TensorType.BOOL,
    "int16": schema.TensorType.INT16,
    "int8": schema.TensorType.INT8,
    "resource": schema.TensorType.RESOURCE,
}


@dataclass(frozen=True)
class Tensor:
    """A tensor of the model under construction; `scale` and `zero` of its first quantization."""

    index: int
    shape: tuple[int, ...]
    dtype: str
    scale: float
    zero: int


class Writer:
    """One subgraph; operators run in the order in which they are appended."""

    def __init__(self) -> None:
        self._tensors: list[Any] = []
        self._operators: list[Any] = []
        self._codes: list[tuple[int, int, str | None]] = []
        self._buffers: list[Any] = [_buffer(b"")]
        self._inputs: list[int] = []

    def input(
        self, shape: Sequence[int], scale: float = 0.0, zero: int = 0, dtype: str = "int8"
    ) -> Tensor:
        """A tensor that callers feed, called x0, x1, ..."""
        tensor = self.tensor(shape, scale, zero, dtype, name=f"x{len(self._inputs)}")
        self._inputs.append(tensor.index)
        return tensor

    def constant(
        self,
        array: npt.ArrayLike,
        scale: float | Sequence[float] = 0.0,
        zero: int | Sequence[int] = 0,
        axis: int = 0,
    ) -> Tensor:
        """A tensor with data; several scales run along `axis`."""
        values = np.ascontiguousarray(array)
        self._buffers.append(_buffer(values.tobytes()))
        tensor = self.tensor(values.shape, scale, zero, str(values.dtype), axis=axis)
        self._tensors[tensor.index].buffer = len(self._buffers) - 1
        return tensor

    def tensor(
        self,
        shape: Sequence[int],
        scale: float | Sequence[float] = 0.0,
        zero: int | Sequence[int] = 0,
        dtype: str = "int8",
        *,
        name: str | None = None,
        axis: int = 0,
        signature: Sequence[int] | None = None,
        variable: bool = False,
    ) -> Tensor:
        """A tensor without data; not quantized when the scale is 0."""
        record = schema.TensorT()
        record.shape, record.type, record.buffer = list(shape), _TYPES[dtype], 0
        record.name = name or f"t{len(self._tensors)}"
        record.hasRank, record.isVariable = True, variable
        if signature is not None:
            record.shapeSignature = list(signature)
        scales = np.atleast_1d(np.asarray(scale, np.float32))
        zeros = np.broadcast_to(np.asarray(zero, np.int64), scales.shape)
        if scales.any():
            quantization = schema.QuantizationParametersT()
            quantization.scale, quantization.zeroPoint = scales.tolist(), zeros.tolist()
            quantization.quantizedDimension = axis
            record.quantization = quantization
        self._tensors.append(record)
        return Tensor(len(self._tensors) - 1, tuple(shape), dtype, float(scales[0]), int(zeros[0]))

    def operator(
        self,
        name: str,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
        options: str = "",
        *,
        version: int = 1,
        custom: str | None = None,
        **fields: Any,
    ) -> None:
        """An operator `name` of BuiltinOperator; `options` is its table of options, if any."""
        code = (getattr(schema.BuiltinOperator, name), version, custom)
        if code not in self._codes:
            self._codes.append(code)
        record = schema.OperatorT()
        record.opcodeIndex = self._codes.index(code)
        record.inputs = [-1 if tensor is None else tensor.index for tensor in inputs]
        record.outputs = [tensor.index for tensor in outputs]
        if options:
            record.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            record.builtinOptions = getattr(schema, f"{options}T")()
            for field, value in fields.items():
                assert hasattr(record.builtinOptions, field), (options, field)
                setattr(record.builtinOptions, field, value)
        self._operators.append(record)

    def model(self, *outputs: Tensor) -> bytes:
        """The flatbuffer of a model with these outputs."""
        graph = schema.SubGraphT()
        graph.tensors, graph.operators = self._tensors, self._operators
        graph.inputs, graph.outputs = self._inputs, [tensor.index for tensor in outputs]
        graph.name = "main"
        model = schema.ModelT()
        model.version, model.description = 3, "a test of vitral"
        model.subgraphs, model.buffers = [graph], self._buffers
        model.operatorCodes = [_operator_code(*code) for code in self._codes]
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())


def _buffer(data: bytes) -> Any:
    buffer: Any = schema.BufferT()
    buffer.data = np.frombuffer(data, np.uint8) if data else None
    return buffer


def _operator_code(code: int, version: int, custom: str | None) -> Any:
    record = schema.OperatorCodeT()
    record.builtinCode, record.version = code, version
    record.deprecatedBuiltinCode = min(code, 127)
    record.customCode = custom
    return record
