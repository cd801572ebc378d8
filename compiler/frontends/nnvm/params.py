"""Reads and writes parameter files of NNVM: named arrays, little endian.

u64 magic, u64 reserved, u64 count, count x (u64 length, bytes) names,
u64 count, count x array: u64 magic, u64 reserved, i32 device type, i32 device id, i32 rank,
u8 kind, u8 bits, u16 lanes, rank x i64 shape, i64 bytes, data
"""

import math
import struct
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from vitral.errors import CompileError

__all__ = ["load_params", "save_params"]

LIST_MAGIC = 0xF7E58D4F05049CB7
ARRAY_MAGIC = 0xDD5E40F096B4A13F
_KINDS = {0: "i", 1: "u", 2: "f"}
_CPU = 1
_MOST_RANK = 32

Array = npt.NDArray[np.generic]


def load_params(data: bytes) -> dict[str, Array]:
    """Name to array.

    Raises
    ------
    CompileError
        In one line, when the file is cut off, is another file, or has an element type that numpy
        does not have.
    """
    reader = _Reader(data)
    magic = reader.number("<Q", "the magic number")
    if magic != LIST_MAGIC:
        raise CompileError(
            f"parameter file: needs magic number {LIST_MAGIC:#x}, got {magic:#x}; is it an NNVM"
            " parameter file?"
        )
    reader.number("<Q", "a reserved word")
    names = [reader.name(i) for i in range(reader.count("names"))]
    count = reader.count("arrays")
    if count != len(names):
        raise CompileError(
            f"parameter file: needs an array for each name, got {len(names)} names"
            f" and {count} arrays"
        )
    arrays = {name: reader.array(name) for name in names}
    if len(arrays) != len(names):
        raise CompileError("parameter file: needs different names, got one twice")
    if reader.left:
        raise CompileError(f"parameter file: {reader.left} bytes are left after the last array")
    return arrays


def save_params(arrays: Mapping[str, Array]) -> bytes:
    """The bytes that `load_params` reads back."""
    parts = [struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays))]
    for name in arrays:
        text = name.encode()
        parts += [struct.pack("<Q", len(text)), text]
    parts.append(struct.pack("<Q", len(arrays)))
    for array in arrays.values():
        kind = "iuf".index(array.dtype.kind)
        content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
        parts += [
            struct.pack("<QQiii", ARRAY_MAGIC, 0, _CPU, 0, array.ndim),
            struct.pack("<BBH", kind, 8 * array.dtype.itemsize, 1),
            struct.pack(f"<{array.ndim}q", *array.shape),
            struct.pack("<q", len(content)),
            content,
        ]
    return b"".join(parts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._at

    def take(self, size: int, what: str) -> bytes:
        """The next `size` bytes."""
        if size > self.left:
            raise CompileError(
                f"parameter file: {what} needs {size} bytes at byte {self._at}, {self.left} are"
                " left; is the file cut off?"
            )
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, form: str, what: str) -> int:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form), what))
        return value

    def count(self, what: str) -> int:
        """A number of things of at least 8 bytes each."""
        count = self.number("<Q", f"the number of {what}")
        if 8 * count > self.left:
            raise CompileError(
                f"parameter file: {count} {what} do not fit in the {self.left} bytes left"
            )
        return count

    def name(self, index: int) -> str:
        text = self.take(self.number("<Q", "the length of a name"), f"name {index}")
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise CompileError(f"parameter file: name {index} is not UTF-8") from None

    def array(self, name: str) -> Array:
        where = f"array {name!r}"
        magic = self.number("<Q", where)
        if magic != ARRAY_MAGIC:
            raise CompileError(
                f"parameter file: {where} needs magic number {ARRAY_MAGIC:#x}, got {magic:#x}"
            )
        self.take(16, where)  # a reserved word and the device that it was on
        rank = self.number("<i", where)
        if not 0 <= rank <= _MOST_RANK:
            raise CompileError(f"parameter file: {where} needs rank 0 to {_MOST_RANK}, got {rank}")
        dtype = self._dtype(where)
        shape = struct.unpack(f"<{rank}q", self.take(8 * rank, where))
        size = self.number("<q", where)
        wanted = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != wanted:
            raise CompileError(
                f"parameter file: {where} of shape {list(shape)} and {dtype.name} needs {wanted}"
                f" bytes, the file says {size}"
            )
        values = np.frombuffer(self.take(size, where), dtype).reshape(shape)
        return values.astype(dtype.newbyteorder("="))

    def _dtype(self, where: str) -> np.dtype[np.generic]:
        kind, bits, lanes = struct.unpack("<BBH", self.take(4, where))
        try:
            if lanes != 1 or bits % 8:
                raise TypeError
            return np.dtype(f"<{_KINDS[kind]}{bits // 8}")
        except (KeyError, TypeError):
            raise CompileError(
                f"parameter file: {where} needs an element type of numpy, got kind {kind},"
                f" {bits} bits, {lanes} lanes"
            ) from None
