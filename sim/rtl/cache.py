"""The folder of built code: keys, atomic files, and one builder at a time."""

import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from vitral.errors import DeviceError

__all__ = ["cache_folder", "digest_of", "locked", "write_atomically"]


def cache_folder() -> Path:
    """Where built code is kept: ``$VITRAL_CACHE`` or ``~/.cache/vitral``.

    DeviceError when there is neither.
    """
    chosen = os.environ.get("VITRAL_CACHE")
    if chosen:
        return Path(chosen)
    try:
        return Path("~/.cache/vitral").expanduser()
    except RuntimeError:
        raise DeviceError(
            "no home folder to keep the built core in; set VITRAL_CACHE to a folder"
        ) from None


def digest_of(*parts: str) -> str:
    """SHA-256 (hex) of a list of texts; where one ends and the next begins counts."""
    state = hashlib.sha256()
    for part in parts:
        state.update(hashlib.sha256(part.encode()).digest())
    return state.hexdigest()


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that no reader ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(name).replace(path)


@contextlib.contextmanager
def locked(lock: Path, done: Callable[[], bool]) -> Iterator[bool]:
    """Whether the work is still to do; if so, no other process does it meanwhile.

    DeviceError when the folder cannot be written.
    """
    if done():
        yield False
        return
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        opened = lock.open("w")
    except OSError as error:
        raise DeviceError(
            f"{lock.parent}: cannot keep the built core there ({error.strerror}); set VITRAL_CACHE"
            " to a folder that can be written"
        ) from None
    with opened as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield not done()
