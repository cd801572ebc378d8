"""Frames between a host and a core behind a serial line: the one place where their bytes are.

A request, and its reply::

    A5  op  tag  count  address (4, low byte first)  CRC   [payload  CRC]
    5A  status  tag  [payload]  CRC

`count` + 1 is the number of memory words, 0 elsewhere. A CRC is CRC-16 with polynomial 0x1021 and
initial value 0xFFFF over everything since the frame's first byte, high byte first, CRCs that came
before in the frame included. Payloads are words of 4 bytes (registers) or 8 (memory), low byte
first.

One request is answered before the next one is sent. The other side falls silent on a frame whose
header is damaged or stops; the host then waits for `IDLE_SECONDS` and sends it again with the same
tag. A register write whose tag is the one of the last register write is answered, but not done
again, so that a lost reply never starts a program twice; HELLO forgets that tag.
"""

import enum
from binascii import crc_hqx

from vitral.errors import DeviceError

__all__ = [
    "BURST_WORDS",
    "HEADER_BYTES",
    "HELLO_MAGIC",
    "IDLE_SECONDS",
    "MEMORY_WORD",
    "REGISTER_WORD",
    "REPLY_BYTES",
    "REPLY_SYNC",
    "REQUEST_SYNC",
    "Op",
    "Reply",
    "crc16",
    "encode_request",
]

REQUEST_SYNC = 0xA5
REPLY_SYNC = 0x5A
HEADER_BYTES = 10
"""Of a request before its payload, sync and CRC included."""
REPLY_BYTES = 5
"""Of a reply without payload."""
REGISTER_WORD = 4
MEMORY_WORD = 8
BURST_WORDS = 256
"""Memory words of one frame at most."""
HELLO_MAGIC = 0x31425456
"""'VTB1': what HELLO is answered with, and how many bytes of memory there are."""
IDLE_SECONDS = 0.03
"""A pause within a request after which the other side has forgotten it, with a margin."""


class Op(enum.IntEnum):
    """What a request asks for."""

    HELLO = 0
    READ_REGISTER = 1
    WRITE_REGISTER = 2
    READ_MEMORY = 3
    WRITE_MEMORY = 4
    CLEAR_MEMORY = 5  # zeros, so that they need not cross the line


class Reply(enum.IntEnum):
    """How it went. Only OK comes with a payload."""

    OK = 0
    DAMAGED = 1  # the payload's CRC is wrong; memory words of it may have been written
    REFUSED = 2  # no such operation or address
    SILENT = 3  # the core did not answer on its register port


def crc16(data: bytes) -> bytes:
    """The two bytes of the CRC."""
    return crc_hqx(data, 0xFFFF).to_bytes(2, "big")


def encode_request(
    op: Op, tag: int, address: int, *, words: int = 1, payload: bytes = b""
) -> bytes:
    """Bytes of a request.

    Raises
    ------
    DeviceError
        When a number does not fit its field.
    """
    if not 1 <= words <= BURST_WORDS:
        raise DeviceError(f"a frame has 1 to {BURST_WORDS} words, got {words}")
    if not 0 <= address < 1 << 32:
        raise DeviceError(f"addresses have 32 bits, got {address:#x}")
    header = bytes([REQUEST_SYNC, op, tag & 0xFF, words - 1]) + address.to_bytes(4, "little")
    frame = header + crc16(header)
    if payload:
        frame += payload
        frame += crc16(frame)
    return frame
