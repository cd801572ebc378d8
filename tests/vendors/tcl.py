"""A Tcl interpreter whose vendor commands are Python functions."""

import tkinter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Refused", "Tcl", "flags"]


class Refused(Exception):
    """What a tool would not have accepted."""


class Tcl:
    """Runs scripts; every command that is neither Tcl's nor bound is an error."""

    def __init__(self) -> None:
        self._tcl = tkinter.Tcl()
        self._problem: Refused | None = None
        self._tcl.eval("set tcl_interactive 0")

    def bind(self, name: str, function: Callable[..., Any]) -> None:
        """Make a command; it gets texts, and gives a text or a sequence, which becomes a list."""

        def command(*args: str) -> str:
            try:
                result = function(*args)
            except Refused as problem:
                self._problem = problem
                raise
            except TypeError as error:
                self._problem = Refused(f"{name} {' '.join(args)}: {error}")
                raise
            if isinstance(result, (list, tuple)):
                return self.list_of(result)
            return "" if result is None else str(result)

        self._tcl.createcommand(name, command)

    def bind_all(self, owner: object, names: Sequence[str]) -> None:
        """Make commands of an object's methods of the same names."""
        for name in names:
            self.bind(name, getattr(owner, name))

    def list_of(self, values: Sequence[object]) -> str:
        """A Tcl list."""
        return str(self._tcl.call("format", "%s", self._tcl.call("list", *map(str, values))))

    def split(self, text: str) -> list[str]:
        """The elements of a Tcl list."""
        return [str(part) for part in self._tcl.splitlist(text)]

    def set(self, name: str, value: str) -> None:
        """Set a global variable or element of an array."""
        self._tcl.call("set", f"::{name}", value)

    def run(self, path: Path) -> None:
        """Run a script; Refused with the reason when it fails."""
        self.eval(f"source {{{path}}}")

    def eval(self, text: str) -> str:
        self._problem = None
        try:
            return str(self._tcl.eval(text))
        except (tkinter.TclError, Refused, TypeError) as error:
            raise self._problem or Refused(str(error)) from None


def flags(args: Sequence[str], valued: Sequence[str], plain: Sequence[str] = ()) -> Any:
    """(flag values by name, others); Refused for a flag that the command does not have."""
    found: dict[str, str] = {}
    others: list[str] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if word in valued:
            if not rest:
                raise Refused(f"{word} needs a value")
            found[word] = rest.pop(0)
        elif word in plain:
            found[word] = "1"
        elif word.startswith("-") and len(word) > 1 and word[1].isalpha():
            raise Refused(f"no option {word} here")
        else:
            others.append(word)
    return found, others
