"""A graph from its text form."""

from dataclasses import replace
from typing import Any

import numpy as np

from vitral.compiler.ir.build import GraphBuilder
from vitral.compiler.ir.call import Call
from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.operators import OPERATORS
from vitral.compiler.ir.operators.foreign import PREFIX
from vitral.compiler.ir.ops import Op
from vitral.compiler.ir.text.expressions import Reader
from vitral.compiler.ir.text.metadata import Metadata
from vitral.compiler.ir.text.records import OPS
from vitral.compiler.ir.text.tokens import Cursor, Token, unquoted
from vitral.compiler.ir.types import TensorType
from vitral.errors import CompileError

__all__ = ["parse_text"]

_MARK = "\nMETADATA:\n"


def parse_text(text: str, source: str = "<text>") -> Graph:
    """The graph that `to_text` wrote, or that was written by hand.

    Parameters
    ----------
    text : str
        A function, and what its `meta[...]` refer to behind the line `METADATA:`.
    source : str
        What errors call it, usually the file's name.

    Raises
    ------
    CompileError
        In one line with the place: `model.ir:3:12: needs ..., got ...`.
    """
    function, mark, rest = text.partition(_MARK)
    line = function.count("\n") + 3
    metadata = Metadata.load(rest, source, line) if mark else Metadata()
    return _Parser(Cursor(function, source), metadata).graph()


class _Parser:
    def __init__(self, cursor: Cursor, metadata: Metadata) -> None:
        self._cursor = cursor
        self._read = Reader(cursor, metadata)
        self._meta = metadata
        self._names = self._mapping("vitral.names")
        self._values: dict[str, str] = {}

    def graph(self) -> Graph:
        cursor = self._cursor
        cursor.expect("fn")
        self._build = GraphBuilder(self._parameters(), self._reserved())
        head = cursor.next
        told = self._result_types() if cursor.accept("->") else None
        cursor.expect("{")
        while cursor.next.kind == "value" and cursor.second.text == "=":
            self._line()
        outputs = self._results()
        cursor.expect("}")
        cursor.expect_kind("end", "the end of the function, or a line METADATA:")
        graph = self._build.graph(*outputs, notices=self._notices())
        given = tuple(graph.types[name] for name in graph.outputs)
        if told is not None and told != given:
            shown = ", ".join(str(item) for item in given)
            cursor.fail(f"needs the results' types, {shown}", head)
        return replace(graph, edges=self._edges()) if self._mapping("vitral.edges") else graph

    def _parameters(self) -> dict[str, TensorType]:
        cursor = self._cursor
        types: dict[str, TensorType] = {}
        cursor.expect("(")
        while not cursor.accept(")"):
            token = cursor.expect_kind("value", "a parameter such as %data")
            name = self._name(token)
            if name in types:
                cursor.fail(f"needs a parameter's name once, got {token} again", token)
            cursor.expect(":")
            types[name] = self._read.tensor_type()
            self._values[token.text] = name
            if cursor.next.text != ")":
                cursor.expect(",")
        return types

    def _name(self, token: Token) -> str:
        body = token.text[1:]
        if not body.startswith('"'):
            return body
        return unquoted(replace(token, text=body), self._cursor.source)

    def _result_types(self) -> tuple[TensorType, ...]:
        if not self._cursor.accept("("):
            return (self._read.tensor_type(),)
        types: list[TensorType] = []
        while not self._cursor.accept(")"):
            types.append(self._read.tensor_type())
            if self._cursor.next.text != ")":
                self._cursor.expect(",")
        return tuple(types)

    def _line(self) -> None:
        cursor = self._cursor
        target = cursor.take()
        if target.text in self._values:
            cursor.fail(f"needs a value that is not defined yet, got {target}", target)
        cursor.expect("=")
        number = target.text[1:]
        named = self._names.get(number, [])
        name = named[0] if named else self._build.fresh(number)
        if cursor.next.text == "meta":
            self._constant(self._array(), name, target)
        else:
            self._operator(name, named[1] if len(named) > 1 else target.text)
        self._values[target.text] = name

    def _constant(self, array: Any, name: str, token: Token) -> str:
        try:
            return self._build.constant(array, name)
        except CompileError as error:
            self._cursor.fail(str(error), token)

    def _array(self) -> Any:
        start = self._cursor.next
        array = self._read.meta()
        if not isinstance(array, np.ndarray):
            self._cursor.fail("needs a constant of the metadata, got another entry", start)
        return array

    def _operator(self, output: str, name: str) -> None:
        cursor = self._cursor
        token = cursor.expect_kind("word", "an operator")
        known = token.text in OPERATORS or token.text in OPS or token.text.startswith(PREFIX)
        if not known:
            cursor.fail(f"needs a known operator, got {token}", token)
        inputs, attrs = self._arguments(token)
        common = {"name": name, "inputs": tuple(inputs), "output": output}
        if token.text in OPS:
            op: Op = self._read.made(OPS[token.text], token, {**common, **attrs})
        else:
            op = Call(**common, op=token.text, attrs=attrs)
        try:
            self._build.append(op)
        except CompileError as error:
            cursor.fail(str(error), token)
        except (IndexError, TypeError, ValueError) as error:  # of a record's arrays
            cursor.fail(f"needs attributes that fit each other: {error}", token)

    def _arguments(self, op: Token) -> tuple[list[str], dict[str, Any]]:
        cursor = self._cursor
        inputs: list[str] = []
        attrs: dict[str, Any] = {}
        cursor.expect("(")
        while not cursor.accept(")"):
            start = cursor.next
            if start.kind == "word" and cursor.second.text == "=":
                key, value = self._read.field()
                if key in attrs:
                    cursor.fail(f"needs attribute {key} once, got it again", start)
                attrs[key] = value
            elif attrs:
                cursor.fail(f"needs arguments before attributes, got {start}")
            elif start.text == "meta" and self._is_record(op):
                attrs.update(self._record())
            else:
                inputs.append(self._argument())
            if cursor.next.text != ")":
                cursor.expect(",")
        return inputs, attrs

    def _is_record(self, op: Token) -> bool:
        return op.text in OPERATORS and OPERATORS[op.text].record is not None

    def _record(self) -> dict[str, Any]:
        start = self._cursor.next
        entry = self._read.meta()
        if not isinstance(entry, dict):
            self._cursor.fail("needs attributes in the metadata, got another entry", start)
        return entry

    def _argument(self) -> str:
        token = self._cursor.next
        if token.kind == "value":
            self._cursor.take()
            if token.text not in self._values:
                self._cursor.fail(f"needs a value defined before, got {token}", token)
            return self._values[token.text]
        if token.text == "meta":
            return self._constant(self._array(), self._build.fresh("constant"), token)
        if token.kind == "number" or token.text in ("True", "False"):
            return self._build.constant(self._read.scalar())
        self._cursor.fail(f"needs a value such as %0, a number or meta[...], got {token}")

    def _results(self) -> list[str]:
        cursor = self._cursor
        if cursor.next.kind != "mark" or not cursor.accept("("):
            return [self._argument()]
        results: list[str] = []
        while not cursor.accept(")"):
            results.append(self._argument())
            if cursor.next.text != ")":
                cursor.expect(",")
        return results

    def _mapping(self, section: str) -> dict[str, Any]:
        entries = self._meta.sections.get(section, [])
        return entries[0] if entries and isinstance(entries[0], dict) else {}

    def _reserved(self) -> list[str]:
        return [named[0] for named in self._names.values() if named]

    def _notices(self) -> list[str]:
        return [str(item) for item in self._meta.sections.get("vitral.notices", [])]

    def _edges(self) -> dict[str, Any]:
        edges: dict[str, Any] = {}
        for name, text in self._mapping("vitral.edges").items():
            inner = Reader(Cursor(text, f"{self._cursor.source}: vitral.edges"), self._meta)
            edges[name] = inner.value()
        return edges
