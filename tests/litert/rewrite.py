"""Changes to TFLite files."""

from collections.abc import Sequence
from typing import Any

import flatbuffers
from ai_edge_litert import schema_py_generated as schema

__all__ = ["operator_outputs", "with_outputs"]


def operator_outputs(model: bytes, *names: str) -> list[int]:
    """Tensors that the main subgraph's operators of these names compute."""
    proto: Any = schema.ModelT.InitFromPackedBuf(model)
    wanted = {getattr(schema.BuiltinOperator, name) for name in names}
    return [
        int(op.outputs[0])
        for op in proto.subgraphs[0].operators
        if proto.operatorCodes[op.opcodeIndex].builtinCode in wanted
    ]


def with_outputs(model: bytes, tensors: Sequence[int]) -> bytes:
    """The model with more tensors among its outputs, and without signatures."""
    proto: Any = schema.ModelT.InitFromPackedBuf(model)
    graph = proto.subgraphs[0]
    graph.outputs = [*(int(i) for i in graph.outputs), *tensors]
    proto.signatureDefs = None
    builder = flatbuffers.Builder(len(model))
    builder.Finish(proto.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())
