"""Readable text of a graph, in the style of Relay."""

import zlib
from dataclasses import fields
from typing import Any

import numpy as np

from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.ops import FixedPoint, Op, Thresholds
from vitral.compiler.ir.types import Quant
from vitral.compiler.schedule.layer import ChannelParams

__all__ = ["print_graph"]

_LITERAL_LIMIT = 4


def print_graph(graph: Graph) -> str:
    """One line for each operator:

        def @main(%x: Tensor[[1, 3, 8, 8], int8]) -> (%y) {
          %y = qnn.conv2d(%x, weight=int8[4, 3, 3, 3]#1c2f9a00, ...)  // conv1: Tensor[[...], int8]
        }

    Arrays of more than four elements are shown as type, shape and CRC-32 of their bytes.
    """
    arguments = ", ".join(f"%{name}: {graph.types[name]}" for name in graph.inputs)
    results = ", ".join(f"%{name}" for name in graph.outputs)
    constants = [f"  %{n} = constant({_show(array)})" for n, array in graph.constants.items()]
    body = [f"  {_line(graph, op)}" for op in graph.ops]
    return "\n".join([f"def @main({arguments}) -> ({results}) {{", *constants, *body, "}"])


def _line(graph: Graph, op: Op) -> str:
    parts = [f"%{name}" for name in op.inputs]
    hidden = {item.name for item in fields(Op)} | {"origin", "steps"}
    for item in fields(op):
        value = getattr(op, item.name)
        left_out = (item.default is None or item.default is False) and value is item.default
        if item.name not in hidden and not left_out:
            parts.append(f"{item.name}={_show(value)}")
    return f"%{op.output} = {op.kind}({', '.join(parts)})  // {op.name}: {graph.types[op.output]}"


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return _show_array(value)
    if isinstance(value, Quant):
        return str(value)
    if isinstance(value, ChannelParams | FixedPoint | Thresholds):
        shown = (f"{f.name}={_show(getattr(value, f.name))}" for f in fields(value))
        return f"({', '.join(shown)})"
    if isinstance(value, tuple):
        return f"[{', '.join(_show(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}={_show(v)}' for k, v in value.items())}}}"
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else str(value)


def _show_array(array: np.ndarray) -> str:
    if array.size <= _LITERAL_LIMIT:
        return f"{array.dtype}{array.tolist()}"
    crc = zlib.crc32(np.ascontiguousarray(array).tobytes())
    return f"{array.dtype}{list(array.shape)}#{crc:08x}"
