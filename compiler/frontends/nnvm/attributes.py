"""The texts of NNVM's attributes as values."""

import ast
from collections.abc import Mapping
from typing import Any

from vitral.errors import CompileError

__all__ = ["Attributes"]


class Attributes:
    """Attributes of one node; every reader raises CompileError naming node and attribute.

    What nobody has read when `finish` is called is refused, unless it says the usual.
    """

    def __init__(self, where: str, attrs: Mapping[str, str]) -> None:
        self.where = where
        self._attrs = dict(attrs)

    def whole(self, name: str, default: int | None = None) -> int:
        """An integer."""
        value = self._value(name, default)
        if type(value) is not int:
            raise self.misfit(name, "an integer", value)
        return value

    def real(self, name: str, default: float | None = None) -> float:
        """A number."""
        value = self._value(name, default)
        if type(value) not in (int, float):
            raise self.misfit(name, "a number", value)
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or False, or 1 or 0."""
        value = self._value(name, default)
        if value not in (True, False):
            raise self.misfit(name, "True or False", value)
        return bool(value)

    def wholes(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Integers; one alone counts as a tuple of one."""
        value = self._value(name, default)
        items = (value,) if type(value) is int else value
        if not isinstance(items, tuple | list) or any(type(item) is not int for item in items):
            raise self.misfit(name, "integers", value)
        return tuple(items)

    def pairs(self, name: str) -> tuple[tuple[int, int], ...]:
        """Pairs of integers."""
        value = self._value(name, None)
        try:
            return tuple((int(low), int(high)) for low, high in value)
        except (TypeError, ValueError):
            raise self.misfit(name, "pairs of integers", value) from None

    def text(self, name: str, default: str) -> str:
        """A word."""
        return self._attrs.pop(name, default)

    def only(self, name: str, *allowed: str) -> None:
        """Refuse a word that is none of `allowed`; the first one is the default."""
        value = self.text(name, allowed[0])
        if value not in allowed:
            raise self.misfit(name, " or ".join(allowed), value)

    def finish(self) -> None:
        """Refuse what nobody has read."""
        for name, value in self._attrs.items():
            if value not in ("__undef__", "None") and not name.startswith("__"):
                raise CompileError(f"{self.where}: attribute {name}={value!r} is not supported")

    def misfit(self, name: str, wanted: str, got: Any) -> CompileError:
        """What to raise for a value that does not fit."""
        return CompileError(f"{self.where}: attribute {name} needs {wanted}, got {got!r}")

    def _value(self, name: str, default: Any) -> Any:
        if name not in self._attrs:
            if default is None:
                raise CompileError(f"{self.where}: needs attribute {name}, got none")
            return default
        text = self._attrs.pop(name)
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise self.misfit(name, "a value", text) from None
