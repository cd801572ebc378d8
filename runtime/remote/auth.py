"""Who is at the other end: a shared secret that never travels.

Each end sends a nonce and proves with an HMAC over both that it has the secret; the words that go
in with them keep one end's proof from being the other's.
"""

import hashlib
import hmac
import os
import secrets
import stat
from os import PathLike
from pathlib import Path

from vitral.errors import DeviceError

__all__ = [
    "CLIENT",
    "NONCE_BYTES",
    "SECRET_FILE_VARIABLE",
    "SECRET_VARIABLE",
    "SERVER",
    "make_nonce",
    "proof",
    "read_secret",
    "same",
]

SECRET_VARIABLE = "VITRAL_SECRET"
SECRET_FILE_VARIABLE = "VITRAL_SECRET_FILE"
CLIENT, SERVER = b"vitral client", b"vitral server"
NONCE_BYTES = 32
_LEAST_BYTES = 16
_MOST_BYTES = 4096


def make_nonce() -> bytes:
    return secrets.token_bytes(NONCE_BYTES)


def proof(secret: bytes, who: bytes, server_nonce: bytes, client_nonce: bytes) -> str:
    """HMAC-SHA256 (hex) of an end's name and both nonces, each of NONCE_BYTES."""
    return hmac.new(secret, who + server_nonce + client_nonce, hashlib.sha256).hexdigest()


def same(expected: str, given: str) -> bool:
    """Compare in a time that does not depend on where they differ."""
    return hmac.compare_digest(expected.encode(), given.encode())


def read_secret(path: str | PathLike[str] | None = None) -> bytes | None:
    """The secret in a file, or where the environment says; None when nothing names one.

    White space at the ends of the file does not belong to it.

    Raises
    ------
    DeviceError
        When the file cannot be read, others may read it, or it has less than 16 bytes.
    """
    path = path or os.environ.get(SECRET_FILE_VARIABLE)
    if path:
        return _check(_read(Path(path)), str(path))
    text = os.environ.get(SECRET_VARIABLE)
    return _check(os.fsencode(text).strip(), SECRET_VARIABLE) if text else None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise DeviceError(f"{path}: cannot read the secret: {error.strerror}") from None
    if os.name == "posix" and stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise DeviceError(f"{path}: others may read or write the secret; chmod 600 it")
    return data.strip()


def _check(secret: bytes, name: str) -> bytes:
    if not _LEAST_BYTES <= len(secret) <= _MOST_BYTES:
        raise DeviceError(
            f"{name}: a secret has {_LEAST_BYTES} to {_MOST_BYTES} bytes, got {len(secret)};"
            " make one with: openssl rand -hex 32"
        )
    return secret
