"""Numbers and strings of the text form: `16f`, `64`, `3i8`, `1e-05`, `%"a b"`."""

import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["SUFFIXES", "show_float", "show_name", "show_number", "show_scalar"]

SUFFIXES = {
    "float32": "f",
    "float64": "f64",
    "float16": "f16",
    "int32": "",
    **{name: name.replace("uint", "u").replace("int", "i") for name in (
        "int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64")},
}  # fmt: skip
"""Element type to what stands behind a number of it."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[./:-][A-Za-z0-9_]+)*\Z")


def show_name(name: str) -> str:
    """A value's name, quoted unless it is a word."""
    return f"%{name}" if _PLAIN_NAME.match(name) else f"%{json.dumps(name)}"


def show_scalar(array: npt.NDArray[Any]) -> str | None:
    """A number of rank 0; None when only the metadata can hold it."""
    dtype = str(array.dtype)
    if dtype == "bool":
        return str(bool(array))
    if dtype not in SUFFIXES or not np.isfinite(array):
        return None
    return f"{str(array[()]).removesuffix('.0')}{SUFFIXES[dtype]}"


def show_float(value: float) -> str:
    """A Python float; `0.07f` is the float32 nearest to 0.07, where that is shorter."""
    text = repr(value)
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    short = f"{str(narrow)}f"  # noqa: RUF010 - a format would show it as a float64
    same = np.isfinite(value) and float(narrow) == value
    return short if same and len(short) < len(text) else text


def show_number(value: float) -> str:
    """A number of an attribute that is known to be a float: `-127`, not `-127.0`."""
    whole = np.isfinite(value) and value == int(value) and abs(value) < 2**53
    zero = value == 0 and np.signbit(value)
    return str(int(value)) if whole and not zero else show_float(value)
