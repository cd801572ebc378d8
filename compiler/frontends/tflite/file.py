"""Finds out whether a source is a TFLite file, and reads its bytes."""

import os
from pathlib import Path

from vitral.errors import CompileError

__all__ = ["is_tflite", "read_bytes"]

_IDENTIFIER = b"TFL3"
_HEAD = 8
"""A flatbuffer begins with the offset of its root and its file identifier, 4 bytes each."""


def is_tflite(source: object) -> bool:
    """Whether bytes, or the file at a path, begin as a TFLite flatbuffer does."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source[4:_HEAD]) == _IDENTIFIER
    if not isinstance(source, str | os.PathLike):
        return False
    try:
        with Path(source).open("rb") as file:
            return file.read(_HEAD)[4:] == _IDENTIFIER
    except OSError:
        return False


def read_bytes(source: object) -> bytes:
    """The model's bytes; CompileError when there is no such file."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    assert isinstance(source, str | os.PathLike)
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise CompileError(f"{source}: cannot be read: {error.strerror}") from None
