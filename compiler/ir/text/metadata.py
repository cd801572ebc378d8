"""What stands behind the function: arrays, records and names, as JSON."""

import base64
import binascii
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.errors import CompileError

__all__ = ["CONSTANT", "Metadata"]

CONSTANT = "relay.Constant"
_DTYPES = (
    *("bool", "float16", "float32", "float64"),
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
)


class Metadata:
    """Lists of entries by their section's name; entries are referred to as `meta[section][i]`.

    `relay.Constant` holds arrays, all other sections hold what JSON has.
    """

    def __init__(self) -> None:
        self.sections: dict[str, list[Any]] = {}

    def add(self, section: str, value: Any) -> str:
        """The reference to a new entry."""
        entries = self.sections.setdefault(section, [])
        entries.append(value)
        return f"meta[{section}][{len(entries) - 1}]"

    def dump(self) -> str:
        """JSON, a line for each entry.

        Arrays are dtype, shape and base64 of their little-endian bytes in C order.
        """
        return "{\n" + ",\n".join(self._section(name) for name in self.sections) + "\n}"

    def _section(self, name: str) -> str:
        entries = self.sections[name]
        shown = (json.dumps(_encode(e) if name == CONSTANT else e) for e in entries)
        return f" {json.dumps(name)}: [\n  " + ",\n  ".join(shown) + "\n ]"

    @classmethod
    def load(cls, text: str, source: str, line: int) -> "Metadata":
        """Read JSON that starts on `line` of `source`; CompileError when it is malformed."""
        result = cls()
        try:
            sections = json.loads(text)
        except json.JSONDecodeError as error:
            where = f"{source}:{line + error.lineno - 1}:{error.colno}"
            raise CompileError(f"{where}: needs JSON in the metadata: {error.msg}") from None
        lists = isinstance(sections, dict) and all(isinstance(v, list) for v in sections.values())
        if not lists:
            raise CompileError(f"{source}:{line}:1: needs metadata that maps names to lists")
        for name, entries in sections.items():
            arrays = name == CONSTANT
            result.sections[name] = [
                _decode(entry, f"{source}: meta[{name}][{i}]") if arrays else entry
                for i, entry in enumerate(entries)
            ]
        return result


def _encode(array: npt.NDArray[Any]) -> dict[str, Any]:
    if str(array.dtype) not in _DTYPES:
        raise CompileError(f"needs constants of numbers, got {array.dtype}")
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "data": base64.b64encode(data).decode(),
    }


def _decode(entry: Any, where: str) -> npt.NDArray[Any]:
    try:
        dtype, shape, data = entry["dtype"], entry["shape"], entry["data"]
        if dtype not in _DTYPES:
            raise CompileError(f"{where}: needs a dtype of numbers, got {dtype!r}")
        values = np.frombuffer(base64.b64decode(data, validate=True), np.dtype(dtype))
        return values.reshape([int(size) for size in shape]).copy()
    except (TypeError, KeyError):
        raise CompileError(f"{where}: needs dtype, shape and data, got {entry!r:.60}") from None
    except (binascii.Error, ValueError) as error:
        if isinstance(error, CompileError):
            raise
        text = " ".join(str(error).split())
        raise CompileError(f"{where}: needs base64 of the shape's bytes: {text}") from None
