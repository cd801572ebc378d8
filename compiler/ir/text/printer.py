"""A graph as text, in the form of Relay."""

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from vitral.compiler.ir.call import Call
from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.operators import OPERATORS, Misfit, Operator, attributes_of
from vitral.compiler.ir.ops import Op
from vitral.compiler.ir.text.literals import show_float, show_name, show_number, show_scalar
from vitral.compiler.ir.text.metadata import CONSTANT, Metadata
from vitral.compiler.ir.text.records import op_title, shown_fields
from vitral.compiler.ir.types import TensorType
from vitral.errors import CompileError

__all__ = ["to_text"]


def to_text(
    graph: Graph, *, types: bool = False, results: bool = False, metadata: bool = True
) -> str:
    """The function that a graph is, ending in a newline:

        fn (%data: Tensor[(1, 1, 16, 16), float32]) {
          %0 = meta[relay.Constant][0]
          %1 = nn.conv2d(%data, %0)
          %1
        }

    Parameters
    ----------
    types : bool
        Every line gets its type behind it, `# ty=Tensor[...]`.
    results : bool
        The function's head tells the results' types.
    metadata : bool
        Constants, records and names follow the function, so that it can be parsed again.

    Raises
    ------
    CompileError
        For an operator whose attributes the text cannot hold.
    """
    writer = _Writer(graph, types)
    body = writer.body()
    head = f"fn ({', '.join(f'{show_name(n)}: {graph.types[n]}' for n in graph.inputs)})"
    if results:
        kinds = [str(graph.types[name]) for name in graph.outputs]
        head += f"\n    -> {kinds[0] if len(kinds) == 1 else '(' + ', '.join(kinds) + ')'}"
    text = "\n".join([f"{head} {{", *body, "}", ""])
    return f"{text}\nMETADATA:\n{writer.meta.dump()}\n" if metadata else text


class _Writer:
    """Numbers the values of a graph and collects its metadata."""

    def __init__(self, graph: Graph, types: bool) -> None:
        self.meta = Metadata()
        self._graph = graph
        self._types = types
        self._lines: list[str] = []
        self._shown = {name: show_name(name) for name in graph.inputs}
        self._names: dict[str, list[str]] = {}

    def body(self) -> list[str]:
        for op in self._graph.ops:
            args = [self._value(name) for name in op.inputs]
            shown = self._op(op, args)
            self._line(op.output, shown, op.name)
        results = [self._value(name) for name in self._graph.outputs]
        last = results[0] if len(results) == 1 else f"({', '.join(results)})"
        self._extras()
        return [*self._lines, f"  {last}"]

    def _extras(self) -> None:
        sections = self.meta.sections
        if self._names:
            sections["vitral.names"] = [self._names]
        if self._graph.edges:
            edges = {name: self._any(quant) for name, quant in self._graph.edges.items()}
            sections["vitral.edges"] = [edges]
        if self._graph.notices:
            sections["vitral.notices"] = list(self._graph.notices)

    def _value(self, name: str) -> str:
        if name in self._shown:
            return self._shown[name]
        array = self._graph.constants[name]
        scalar = show_scalar(array) if array.ndim == 0 else None
        if scalar is not None:
            return scalar
        self._line(name, self.meta.add(CONSTANT, array))
        return self._shown[name]

    def _line(self, name: str, text: str, node: str | None = None) -> None:
        number = str(len(self._lines))
        shown = f"%{number}"
        told = f" # ty={self._graph.types[name]}" if self._types else ""
        self._lines.append(f"  {shown} = {text}{told}")
        self._shown[name] = shown
        if node not in (None, shown) or name != number:
            self._names[number] = [name] if node in (None, shown) else [name, node]

    def _op(self, op: Op, args: list[str]) -> str:
        if not isinstance(op, Call):
            return f"{op_title(op.kind)}({', '.join([*args, *self._fields(op)])})"
        entry = OPERATORS.get(op.op)
        if entry is None:
            attrs = [f"{name}={self._any(value)}" for name, value in op.attrs.items()]
        elif entry.record:
            attrs = [self.meta.add(entry.record, self._complete(op))]
        else:
            attrs = self._attributes(op, entry)
        return f"{op.op}({', '.join([*args, *attrs])})"

    def _complete(self, op: Call) -> dict[str, Any]:
        try:
            return attributes_of(op.op, op.attrs)
        except Misfit as error:
            raise CompileError(f"node {op.name!r} ({op.op}): {error}") from None

    def _attributes(self, op: Call, entry: Operator) -> list[str]:
        return [
            f"{name}={self._typed(entry.attributes[name].kind, value)}"
            for name, value in self._complete(op).items()
            if value != entry.attributes[name].default
        ]

    def _typed(self, kind: str, value: Any) -> str:
        return show_number(value) if kind == "float" else self._any(value)

    def _fields(self, record: Any) -> list[str]:
        return [f"{name}={self._any(value)}" for name, value in shown_fields(record)]

    def _any(self, value: Any) -> str:
        """A value of any field."""
        if isinstance(value, np.ndarray):
            return self.meta.add(CONSTANT, value)
        if isinstance(value, Enum):
            return f"{type(value).__name__}.{value.name}"
        if isinstance(value, np.generic):
            return self._any(value.item())
        if value is None or isinstance(value, bool | int):
            return str(value)
        if isinstance(value, float):
            return show_float(value)
        if isinstance(value, str):
            return json.dumps(value)
        if isinstance(value, tuple | list):
            return f"[{', '.join(self._any(item) for item in value)}]"
        return self._composed(value)

    def _composed(self, value: Any) -> str:
        if isinstance(value, Mapping):
            items = (f"{json.dumps(str(k))}: {self._any(v)}" for k, v in value.items())
            return f"{{{', '.join(items)}}}"
        if isinstance(value, TensorType):
            return str(value)
        if isinstance(value, Op):
            text = f"{op_title(value.kind)}({', '.join(self._fields(value))})"
            entry = {"name": value.name, "inputs": list(value.inputs), "output": value.output}
            return self.meta.add("vitral.Op", {**entry, "text": text})
        if is_dataclass(value):
            return f"{type(value).__name__}({', '.join(self._fields(value))})"
        raise CompileError(f"the text form has no {type(value).__name__}, got {value!r:.60}")
