"""What the registry knows of an operator: its arguments, attributes, type and meaning."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.compiler.ir.types import TensorType

__all__ = [
    "FLOATS",
    "INTEGERS",
    "LARGEST",
    "REQUIRED",
    "Arrays",
    "Attribute",
    "Attrs",
    "Misfit",
    "Operator",
    "Types",
    "need",
]

Attrs = Mapping[str, Any]
"""Values of all attributes of an operator, defaults included."""
Types = Sequence[TensorType]
Arrays = Sequence[npt.NDArray[Any]]

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
LARGEST = (1 << 31) - 1
"""Elements of a value."""
REQUIRED: Any = object()
"""Default of an attribute that has none."""


class Misfit(Exception):
    """What an operator needs and what came; whoever knows its name makes an error of it."""


def need(good: bool, text: str) -> None:
    """Raise `Misfit(text)` unless `good`."""
    if not good:
        raise Misfit(text)


@dataclass(frozen=True)
class Attribute:
    """Kind and default of an attribute.

    Parameters
    ----------
    kind : "int", "float", "bool", "string", "dtype", "ints" or "sections"
        "ints" is a tuple of int, "sections" an int or such a tuple; "dtype" is the name of an
        element type, or "" for the argument's.
    default : object
        REQUIRED, or its value when it is not given; None stands for what follows from the
        arguments.
    """

    kind: str
    default: Any = REQUIRED

    def checked(self, value: Any) -> Any:
        """The value in its one form; Misfit when it is of another kind."""
        if value is None and self.default is None:
            return None
        result = _FORMS[self.kind](value)
        need(result is not None, f"needs {_NAMES[self.kind]}, got {value!r}")
        return result


def _int(value: Any) -> int | None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return int(value) if whole else None


def _float(value: Any) -> float | None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return float(value) if number else None


def _bool(value: Any) -> bool | None:
    return bool(value) if isinstance(value, bool | np.bool_ | int) and value in (0, 1) else None


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _dtype(value: Any) -> str | None:
    return value if value in ("", "bool", *INTEGERS, *FLOATS) else None


def _ints(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return None
    items = [_int(item) for item in value]
    return None if None in items else tuple(item for item in items if item is not None)


_FORMS: dict[str, Callable[[Any], Any]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "string": _string,
    "dtype": _dtype,
    "ints": _ints,
    "sections": lambda value: _ints(value) if _int(value) is None else _int(value),
}
_NAMES = {
    "int": "an integer",
    "float": "a number",
    "bool": "True or False",
    "string": "a string",
    "dtype": "the name of an element type",
    "ints": "a list of integers",
    "sections": "an integer or a list of them",
}


@dataclass(frozen=True, kw_only=True)
class Operator:
    """An entry of the registry.

    Parameters
    ----------
    name : str
        As in the text form.
    arity : range
        Numbers of arguments that it takes.
    attributes : mapping
        Attribute name to its kind and default.
    relation : callable
        Type of the result from attributes and types of the arguments; raises Misfit.
    compute : callable
        The result from attributes and arguments, as the relation has accepted them.
    record : str, optional
        Prints the attributes as one entry of the metadata, under this name.
    """

    name: str
    arity: range
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    relation: Callable[[Attrs, Types], TensorType]
    compute: Callable[[Attrs, Arrays], npt.NDArray[Any]]
    record: str | None = None

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All attributes in their one form, in the registry's order; Misfit for wrong ones."""
        unknown = [name for name in given if name not in self.attributes]
        known = ", ".join(self.attributes) or "none"
        need(not unknown, f"needs attributes among {known}, got {', '.join(unknown)}")
        return {name: self._value(name, given) for name in self.attributes}

    def _value(self, name: str, given: Mapping[str, Any]) -> Any:
        attribute = self.attributes[name]
        if name not in given:
            need(attribute.default is not REQUIRED, f"needs attribute {name}, got none")
            return attribute.default
        try:
            return attribute.checked(given[name])
        except Misfit as error:
            raise Misfit(f"attribute {name} {error}") from None

    def result(self, given: Mapping[str, Any], args: Types) -> TensorType:
        """Type of the result; Misfit when arguments or attributes do not fit."""
        if len(args) not in self.arity:
            least, most = self.arity[0], self.arity[-1]
            wanted = f"{least}" if least == most else f"{least} to {most}"
            raise Misfit(f"needs {wanted} arguments, got {len(args)}")
        result = self.relation(self.complete(given), args)
        need(result.size <= LARGEST, f"needs a result of at most {LARGEST} elements, got {result}")
        return result
