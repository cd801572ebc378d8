"""Reading what stands for a value: numbers, strings, lists, records, types, metadata."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.ops import Op
from vitral.compiler.ir.text.kinds import wrong_field
from vitral.compiler.ir.text.literals import SUFFIXES
from vitral.compiler.ir.text.metadata import Metadata
from vitral.compiler.ir.text.records import ENUMS, OPS, RECORDS
from vitral.compiler.ir.text.tokens import Cursor, Token, unquoted
from vitral.compiler.ir.types import TensorType
from vitral.errors import CompileError

__all__ = ["Reader"]

_DTYPE_OF = {suffix: dtype for dtype, suffix in SUFFIXES.items()}
_NUMBER = re.compile(r"(-?(?:inf|nan|[0-9.]+(?:[eE][+-]?[0-9]+)?))([fiu][0-9]*)?")


class Reader:
    """Reads values at a cursor; `meta[...]` refers to `metadata`."""

    def __init__(self, cursor: Cursor, metadata: Metadata) -> None:
        self.cursor = cursor
        self._metadata = metadata

    def tensor_type(self) -> TensorType:
        """`Tensor[(1, 3), float32]`."""
        cursor = self.cursor
        cursor.expect("Tensor")
        cursor.expect("[")
        cursor.expect("(")
        shape: list[int] = []
        while not cursor.accept(")"):
            token = cursor.expect_kind("number", "a size")
            if not token.text.isdigit():
                cursor.fail(f"needs a size, got {token}", token)
            shape.append(int(token.text))
            if cursor.next.text != ")":
                cursor.expect(",")
        cursor.expect(",")
        dtype = cursor.expect_kind("word", "an element type")
        if dtype.text not in (*SUFFIXES, "bool"):
            cursor.fail(f"needs an element type, got {dtype}", dtype)
        cursor.expect("]")
        return TensorType(tuple(shape), dtype.text)

    def scalar(self) -> npt.NDArray[Any]:
        """A number or bool as a constant of rank 0."""
        token = self.cursor.take()
        if token.text in ("True", "False"):
            return np.array(token.text == "True")
        digits, suffix = self._parts(token)
        dtype = _DTYPE_OF.get(suffix)
        integral = dtype is not None and np.dtype(dtype).kind in "iu"
        if dtype is None or (integral and not digits.lstrip("-").isdigit()):
            self.cursor.fail(f"needs a number such as 64 or 0.5f, got {token}", token)
        try:
            return np.array(int(digits) if integral else np.dtype(dtype).type(digits), dtype)
        except OverflowError:
            self.cursor.fail(f"needs a number of {dtype}, got {token}", token)

    def _parts(self, token: Token) -> tuple[str, str]:
        match = _NUMBER.fullmatch(token.text)
        if token.kind != "number" or match is None:
            self.cursor.fail(f"needs a number, got {token}", token)
        return match.group(1), match.group(2) or ""

    def value(self) -> Any:
        """The value of an attribute."""
        token = self.cursor.next
        if token.kind == "number":
            return self._number()
        if token.kind == "string":
            return unquoted(self.cursor.take(), self.cursor.source)
        if self.cursor.accept("["):
            return tuple(self._until("]", self.value))
        if self.cursor.accept("{"):
            return dict(self._until("}", self._item))
        if token.kind != "word":
            self.cursor.fail(f"needs a value, got {token}")
        return self._named(token)

    def _number(self) -> int | float:
        token = self.cursor.take()
        digits, suffix = self._parts(token)
        if suffix not in ("", "f"):
            self.cursor.fail(f"needs a number such as 64 or 0.5f, got {token}", token)
        if suffix == "f":
            return float(np.float32(digits))
        return int(digits) if digits.lstrip("-").isdigit() else float(digits)

    def _item(self) -> tuple[str, Any]:
        key = unquoted(self.cursor.expect_kind("string", "a quoted name"), self.cursor.source)
        self.cursor.expect(":")
        return key, self.value()

    def _until(self, end: str, read: Callable[[], Any]) -> list[Any]:
        items: list[Any] = []
        while not self.cursor.accept(end):
            items.append(read())
            if self.cursor.next.text != end:
                self.cursor.expect(",")
        return items

    def _named(self, token: Token) -> Any:
        literals = {"None": None, "True": True, "False": False}
        if token.text in literals:
            self.cursor.take()
            return literals[token.text]
        if token.text == "Tensor":
            return self.tensor_type()
        if token.text == "meta":
            return self.meta()
        if token.text in RECORDS:
            self.cursor.take()
            return self.made(RECORDS[token.text], token, self._fields())
        kind, _, member = token.text.partition(".")
        if kind in ENUMS and member in ENUMS[kind].__members__:
            self.cursor.take()
            return ENUMS[kind][member]
        self.cursor.fail(f"needs a value, got {token}")

    def _fields(self) -> dict[str, Any]:
        self.cursor.expect("(")
        return dict(self._until(")", self.field))

    def field(self) -> tuple[str, Any]:
        """`name=value`."""
        name = self.cursor.expect_kind("word", "the name of an attribute")
        self.cursor.expect("=")
        return name.text, self.value()

    def made(self, kind: type, token: Token, fields: Mapping[str, Any]) -> Any:
        """A record of its fields."""
        wrong = wrong_field(kind, fields)
        if wrong is not None:
            self.cursor.fail(f"{token.text}: needs another kind of value as {wrong}", token)
        try:
            return kind(**fields)
        except TypeError as error:
            text = str(error).removeprefix(f"{kind.__name__}.__init__() ")
            self.cursor.fail(f"{token.text}: {text}", token)

    def meta(self) -> Any:
        """The entry that `meta[section][index]` refers to."""
        cursor = self.cursor
        start = cursor.expect("meta")
        cursor.expect("[")
        section = cursor.expect_kind("word", "a section of the metadata").text
        cursor.expect("]")
        cursor.expect("[")
        index = cursor.expect_kind("number", "an index").text
        cursor.expect("]")
        entries = self._metadata.sections.get(section, [])
        if not index.isdigit() or int(index) >= len(entries):
            held = f"{len(entries)} entries" if entries else "none"
            cursor.fail(f"needs an entry of {section} in the metadata, which has {held}", start)
        entry = entries[int(index)]
        return self._op(entry, f"meta[{section}][{index}]") if section == "vitral.Op" else entry

    def _op(self, entry: Any, where: str) -> Op:
        """A record of an operator inside of another."""
        source = f"{self.cursor.source}: {where}"
        if not isinstance(entry, dict) or set(entry) != {"name", "inputs", "output", "text"}:
            raise CompileError(f"{source}: needs name, inputs, output and text, got {entry!r:.60}")
        inner = Reader(Cursor(str(entry["text"]), source), self._metadata)
        token = inner.cursor.expect_kind("word", "an operator")
        if token.text not in OPS:
            inner.cursor.fail(f"needs a record of the passes, got {token}", token)
        fields = {"name": entry["name"], "inputs": tuple(entry["inputs"]), **inner._fields()}
        return inner.made(OPS[token.text], token, {**fields, "output": entry["output"]})
