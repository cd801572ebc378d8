"""The folder of built code: keys, atomic files, and one builder at a time."""

import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["cache_folder", "digest_of", "locked", "write_atomically"]


def cache_folder() -> Path:
    """Where built code is kept: ``$VITRAL_CACHE`` or ``~/.cache/vitral``."""
    chosen = os.environ.get("VITRAL_CACHE")
    return Path(chosen) if chosen else Path("~/.cache/vitral").expanduser()


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
    """Whether the work is still to do; if so, no other process does it meanwhile."""
    if done():
        yield False
        return
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield not done()
