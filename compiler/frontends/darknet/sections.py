"""Reads Darknet's .cfg files: sections of options, in order, names repeated."""

from collections.abc import Sequence
from typing import TypeVar

from vitral.errors import CompileError

__all__ = ["Section", "parse_cfg"]

T = TypeVar("T", int, float)


class Section:
    """Options of one section; every reader raises CompileError naming section and line.

    Parameters
    ----------
    kind : str
        What stands in brackets.
    line : int
        Where, counted from 1.
    number : int
        Layer number as `route` and `shortcut` count: -1 for [net].
    options : dict
        Option name to its text.
    """

    def __init__(self, kind: str, line: int, number: int) -> None:
        self.kind = kind
        self.line = line
        self.number = number
        self.options: dict[str, str] = {}

    @property
    def where(self) -> str:
        """For messages."""
        return f"cfg line {self.line} [{self.kind}], layer {self.number}"

    def whole(self, name: str, default: int | None = None) -> int:
        """An integer."""
        return self._number(name, default, int, "an integer")

    def real(self, name: str, default: float | None = None) -> float:
        """A number."""
        return self._number(name, default, float, "a number")

    def flag(self, name: str) -> bool:
        """1 or 0, the default."""
        value = self.whole(name, 0)
        if value not in (0, 1):
            raise self.misfit(name, "0 or 1", str(value))
        return bool(value)

    def wholes(self, name: str) -> tuple[int, ...]:
        """Integers with commas between."""
        return tuple(self._list(name, int, "integers"))

    def reals(self, name: str) -> tuple[float, ...]:
        """Numbers with commas between."""
        return tuple(self._list(name, float, "numbers"))

    def misfit(self, name: str, wanted: str, got: str) -> CompileError:
        """What to raise for a value that does not fit."""
        return CompileError(f"{self.where}: {name} needs {wanted}, got {got!r}")

    def refuse(self, *names: str) -> None:
        """Refuse options that change the result and are not supported; 0 is no option."""
        for name in names:
            if self.options.get(name, "0") != "0":
                raise CompileError(
                    f"{self.where}: {name}={self.options[name]} is not supported; remove it"
                )

    def _number(self, name: str, default: T | None, read: type[T], wanted: str) -> T:
        if name not in self.options:
            if default is None:
                raise CompileError(f"{self.where}: needs {name}=, got none")
            return default
        try:
            return read(self.options[name])
        except ValueError:
            raise self.misfit(name, wanted, self.options[name]) from None

    def _list(self, name: str, read: type[int] | type[float], wanted: str) -> Sequence:
        text = self.options.get(name, "")
        try:
            return [read(item) for item in text.split(",") if item.strip()]
        except ValueError:
            raise self.misfit(name, wanted, text) from None


def parse_cfg(text: str) -> list[Section]:
    """The sections; the first one is [net]."""
    sections: list[Section] = []
    for line, raw in enumerate(text.splitlines(), 1):
        content = raw.split("#")[0].split(";")[0].strip()
        if not content:
            continue
        if content.startswith("[") and content.endswith("]"):
            sections.append(Section(content[1:-1].strip(), line, len(sections) - 1))
            continue
        name, equals, value = content.partition("=")
        if not equals or not sections:
            raise CompileError(f"cfg line {line}: needs [section] or name=value, got {content!r}")
        sections[-1].options[name.strip()] = value.strip()
    if not sections or sections[0].kind not in ("net", "network"):
        raise CompileError("cfg: needs [net] as its first section")
    if len(sections) == 1:
        raise CompileError("cfg: needs at least one layer behind [net], got none")
    return sections
