"""Frames, of which a connection is made: a header, JSON, and raw bytes.

Little endian::

    0   4   magic "VTRL"
    4   1   protocol version
    5   1   kind
    6   2   0
    8   4   bytes of metadata
    12  8   bytes of body
    20  .   metadata: a JSON object, UTF-8
    .   .   body: arrays one after another; their sizes are in the metadata
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NoReturn

from vitral.errors import DeviceError

__all__ = [
    "HEADER_BYTES",
    "PROTOCOL",
    "Frame",
    "Kind",
    "ProtocolError",
    "pack_header",
    "parse_metadata",
    "unpack_header",
]

PROTOCOL = 1
"""Version of everything that both ends must agree on."""

MAGIC = b"VTRL"
_HEADER = struct.Struct("<4sBBHIQ")
HEADER_BYTES = _HEADER.size
_INT_DIGITS = 20  # of 2**64


class ProtocolError(DeviceError):
    """The other end sent what the protocol does not have; the connection cannot go on."""


class Kind(IntEnum):
    """What a frame is; docs/remote.md says who sends which and when."""

    HELLO = 1
    AUTH = 2
    WELCOME = 3
    OK = 4
    ERROR = 5
    ALLOCATE = 6
    LOAD = 7
    SEND = 8
    DATA = 9
    CHALLENGE = 10
    PROOF = 11
    WRITE = 12
    READ = 13
    RUN = 14
    RESULT = 15


_KINDS = frozenset(Kind)


@dataclass(frozen=True)
class Frame:
    """One frame; `body` holds all arrays."""

    kind: Kind
    metadata: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | bytearray | memoryview = b""


def pack_header(kind: Kind, metadata: Mapping[str, Any], body_bytes: int) -> bytes:
    """Header and metadata of a frame."""
    text = json.dumps(metadata, separators=(",", ":"), allow_nan=False).encode()
    return _HEADER.pack(MAGIC, PROTOCOL, kind, 0, len(text), body_bytes) + text


def unpack_header(
    header: bytes | bytearray, metadata_limit: int, body_limit: int
) -> tuple[Kind, int, int]:
    """Kind, bytes of metadata and bytes of body.

    Raises
    ------
    ProtocolError
        When it is no header, of another version, or announces more than a limit.
    """
    magic, version, kind, zero, metadata_bytes, body_bytes = _HEADER.unpack(header)
    if magic != MAGIC:
        raise ProtocolError(f"not Vitral's protocol: a frame must start with {MAGIC!r}")
    if version != PROTOCOL:
        raise ProtocolError(
            f"the other end speaks protocol {version}, this one {PROTOCOL};"
            " use the same Vitral at both ends"
        )
    if zero or kind not in _KINDS:
        raise ProtocolError(f"no frame has kind {kind} and flags {zero}")
    if metadata_bytes > metadata_limit:
        raise ProtocolError(f"{metadata_bytes} bytes of metadata, at most {metadata_limit} go")
    if body_bytes > body_limit:
        raise ProtocolError(f"{body_bytes} bytes of arrays in a frame, at most {body_limit} go")
    return Kind(kind), metadata_bytes, body_bytes


def parse_metadata(text: bytes | bytearray) -> dict[str, Any]:
    """The JSON object in a frame; ProtocolError when it is none."""
    try:
        value = json.loads(text, parse_int=_parse_int, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ProtocolError("a frame's metadata is no JSON") from None
    if not isinstance(value, dict):
        raise ProtocolError("a frame's metadata must be a JSON object")
    return value


def _parse_int(digits: str) -> int:
    if len(digits) > _INT_DIGITS:
        raise ValueError("an int of more than 64 bits")
    return int(digits)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
