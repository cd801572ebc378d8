"""The `.vitral` file: a compiled module as one self-contained, checksummed sequence of bytes.

Little endian throughout::

    0   8   magic, 89 "VTRLMOD"
    8   4   format version
    12  4   0
    16  8   bytes of the header
    24  8   bytes of the whole file
    32  32  SHA-256 of bytes 0..32 and of everything from byte 64 on
    64  .   header: JSON, UTF-8, keys sorted
    .   .   arrays, C order, each at a multiple of 64, zeros between

The header has `module` (see `vitral.runtime.module_record`) and `arrays`, a list of
``[dtype, shape, offset, bytes]`` to which the module refers by number. Equal modules give equal
files.
"""

import hashlib
import json
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.errors import ConfigError, ModuleError
from vitral.runtime.module import Module
from vitral.runtime.module_record import from_record, to_record

__all__ = ["FORMAT_VERSION", "pack", "unpack"]

FORMAT_VERSION = 1
MAGIC = b"\x89VTRLMOD"
ALIGN = 64
_PREFIX = struct.Struct("<8sIIQQ")
_SUMMED = _PREFIX.size
_DATA = _SUMMED + hashlib.sha256().digest_size
_KINDS = "biuf"


def pack(module: Module) -> bytes:
    """The bytes of a module's file.

    Raises
    ------
    ModuleError
        When an attribute is no JSON value or an array is not of numbers.
    """
    arrays: list[npt.NDArray] = []
    record = to_record(module, lambda array: _keep(arrays, array))
    header, offsets = _header(record, arrays)
    total = offsets[-1] + arrays[-1].nbytes if arrays else _DATA + len(header)
    data = bytearray(total)
    _PREFIX.pack_into(data, 0, MAGIC, FORMAT_VERSION, 0, len(header), total)
    data[_DATA : _DATA + len(header)] = header
    for offset, array in zip(offsets, arrays, strict=True):
        data[offset : offset + array.nbytes] = array.tobytes()
    data[_SUMMED:_DATA] = _checksum(data)
    return bytes(data)


def unpack(data: bytes, name: str = "module") -> Module:
    """The module in a file's bytes; `name` is for messages. Arrays are views of `data`.

    Raises
    ------
    ModuleError
        When the bytes are no module, truncated, corrupt, or of another version.
    """
    text = _checked_header(data, name)
    try:
        header = json.loads(text)
        arrays = [_array(data, *entry) for entry in header["arrays"]]
        return from_record(header["module"], arrays)
    except ConfigError as error:
        raise ModuleError(f"{name}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, ModuleError):
            raise ModuleError(f"{name}: {error}") from None
        raise ModuleError(
            f"{name}: the header does not describe a module ({type(error).__name__}: {error});"
            " compile the model again"
        ) from None


def _keep(arrays: list[npt.NDArray], array: npt.NDArray) -> int:
    stored = np.asarray(array)
    if stored.dtype.kind not in _KINDS:
        raise ModuleError(f"a module holds arrays of numbers or bools, got dtype {stored.dtype}")
    arrays.append(
        np.ascontiguousarray(stored, stored.dtype.newbyteorder("<")).reshape(stored.shape)
    )
    return len(arrays) - 1


def _header(record: dict[str, Any], arrays: list[npt.NDArray]) -> tuple[bytes, list[int]]:
    """Header text and the arrays' offsets, which depend on the header's own length."""
    offsets = [0] * len(arrays)
    while True:
        table = [
            [array.dtype.str, list(array.shape), offset, array.nbytes]
            for array, offset in zip(arrays, offsets, strict=True)
        ]
        text = _json({"module": record, "arrays": table})
        placed = _place(_DATA + len(text), arrays)
        if placed == offsets:
            return text, offsets
        offsets = placed


def _place(position: int, arrays: list[npt.NDArray]) -> list[int]:
    offsets = []
    for array in arrays:
        offsets.append(-(-position // ALIGN) * ALIGN)
        position = offsets[-1] + array.nbytes
    return offsets


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise ModuleError(f"a module's attributes must be JSON values: {error}") from None


def _checksum(data: bytes | bytearray) -> bytes:
    view = memoryview(data)
    digest = hashlib.sha256(view[:_SUMMED])
    digest.update(view[_DATA:])
    return digest.digest()


def _checked_header(data: bytes, name: str) -> bytes:
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        raise ModuleError(f"{name}: not a Vitral module (it does not start with {MAGIC!r})")
    if len(data) < _DATA:
        raise ModuleError(
            f"{name}: truncated: {len(data)} bytes, the prefix alone has {_DATA}; copy it again"
        )
    _, version, _, header_bytes, total = _PREFIX.unpack_from(data)
    if version != FORMAT_VERSION:
        raise ModuleError(
            f"{name}: module format {version}, this Vitral reads {FORMAT_VERSION};"
            " compile the model again"
        )
    if len(data) < total:
        raise ModuleError(f"{name}: truncated: {len(data)} bytes of {total}; copy the file again")
    if len(data) > total or _checksum(data) != data[_SUMMED:_DATA]:
        raise ModuleError(
            f"{name}: corrupt: its SHA-256 does not match its {len(data)} bytes;"
            " copy the file again"
        )
    return data[_DATA : _DATA + header_bytes]


def _array(data: bytes, dtype: str, shape: list[int], offset: int, nbytes: int) -> npt.NDArray:
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    if count * kind.itemsize != nbytes or offset + nbytes > len(data):
        raise ModuleError(f"array at byte {offset}: {nbytes} bytes do not hold {shape} of {dtype}")
    return np.frombuffer(data, kind, count, offset).reshape(shape)
