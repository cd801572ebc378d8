"""Whether a value is of the kind that a field is annotated with."""

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

__all__ = ["is_kind", "wrong_field"]


def wrong_field(kind: type, fields: Mapping[str, Any]) -> str | None:
    """The name of a field whose value is not of its kind; None when all are, or are unknown."""
    hints = _hints(kind)
    wrong = (name for name, value in fields.items() if not is_kind(value, hints.get(name, Any)))
    return next(wrong, None)


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def is_kind(value: Any, hint: Any) -> bool:
    """Whether a value fits an annotation: classes, tuples, arrays, unions and literals."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(is_kind(value, arg) for arg in args)
    if origin is Literal:
        return value in args
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _holds(value.dtype, args)
    if origin is tuple:
        return isinstance(value, tuple) and _items(value, args)
    if hint in (int, float, None, NoneType):
        return _is_plain(value, hint)
    return isinstance(value, origin or hint)


def _is_plain(value: Any, hint: Any) -> bool:
    if hint in (None, NoneType):
        return value is None
    kinds = int if hint is int else int | float
    return isinstance(value, kinds) and not isinstance(value, bool)


def _items(value: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
    if len(args) == 2 and args[1] is Ellipsis:
        return all(is_kind(item, args[0]) for item in value)
    return len(value) == len(args) and all(map(is_kind, value, args))


def _holds(dtype: "np.dtype[Any]", args: tuple[Any, ...]) -> bool:  # numpy 1.21 has no dtype[...]
    """Of an annotation such as npt.NDArray[np.int64], whose last argument is np.dtype[...]."""
    wanted: Any = (*get_args(args[-1]), Any)[0]
    known = isinstance(wanted, type) and issubclass(wanted, np.generic)
    return not known or issubclass(dtype.type, wanted)
