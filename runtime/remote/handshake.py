"""Both ends of the handshake: HELLO, AUTH, WELCOME."""

from collections.abc import Mapping
from typing import Any

from vitral.errors import DeviceError
from vitral.runtime.remote.auth import CLIENT, NONCE_BYTES, SERVER, make_nonce, proof, same
from vitral.runtime.remote.channel import Channel, LinkError
from vitral.runtime.remote.frames import Frame, Kind, ProtocolError
from vitral.runtime.remote.records import error_from, take_text

__all__ = ["admit", "enter"]

_METADATA_BYTES = 4096


def admit(channel: Channel, secret: bytes | None, seconds: float) -> str:
    """The server's part up to WELCOME: let in who knows the secret; its proof for WELCOME.

    Raises
    ------
    DeviceError
        When the client does not know the secret.
    LinkError, ProtocolError
        When it says nothing in time, or something else.
    """
    nonce = make_nonce()
    channel.send(Kind.HELLO, {"nonce": nonce.hex(), "secret": secret is not None})
    answer = channel.receive(seconds, metadata_bytes=_METADATA_BYTES, body_bytes=0, whole=True)
    if answer is None:
        raise LinkError("the client left before it said who it is")
    if answer.kind is not Kind.AUTH:
        raise ProtocolError(f"expected AUTH, got {answer.kind.name}")
    theirs = _nonce(answer.metadata)
    known = proof(secret or b"", CLIENT, nonce, theirs)
    if not same(known, take_text(answer.metadata, "mac", 64)):
        raise DeviceError("the secret is wrong, or one end has none; give both the same")
    return proof(secret or b"", SERVER, nonce, theirs)


def enter(channel: Channel, secret: bytes | None, seconds: float, where: str) -> Mapping[str, Any]:
    """The client's part: what WELCOME says.

    Raises
    ------
    DeviceError
        When the server does not let this client in, or does not know the secret itself.
    """
    hello = _receive(channel, Kind.HELLO, seconds, where)
    if hello.metadata.get("secret") is not (secret is not None):
        raise DeviceError(f"{where}: {_missing(secret)}")
    ours, theirs = make_nonce(), _nonce(hello.metadata)
    mac = proof(secret or b"", CLIENT, theirs, ours)
    channel.send(Kind.AUTH, {"nonce": ours.hex(), "mac": mac})
    welcome = _receive(channel, Kind.WELCOME, seconds, where)
    expected = proof(secret or b"", SERVER, theirs, ours)
    if not same(expected, take_text(welcome.metadata, "mac", 64)):
        raise DeviceError(f"{where}: the server does not know the secret; it is not the right one")
    return welcome.metadata


def _receive(channel: Channel, kind: Kind, seconds: float, where: str) -> Frame:
    frame = channel.receive(seconds, body_bytes=0, whole=True)
    if frame is None:
        raise LinkError(f"{where}: the server closed the connection")
    if frame.kind is Kind.ERROR:
        raise error_from(frame.metadata, where)
    if frame.kind is not kind:
        raise ProtocolError(f"{where}: expected {kind.name}, got {frame.kind.name}")
    return frame


def _nonce(metadata: Mapping[str, Any]) -> bytes:
    text = take_text(metadata, "nonce", 2 * NONCE_BYTES)
    try:
        nonce = bytes.fromhex(text)
    except ValueError:
        nonce = b""
    if len(nonce) != NONCE_BYTES:
        raise ProtocolError(f"a nonce has {NONCE_BYTES} bytes in hex, got {text!r}")
    return nonce


def _missing(secret: bytes | None) -> str:
    if secret is None:
        return "the server wants a secret; name its file in VITRAL_SECRET_FILE"
    return "the server has no secret, this end has one; give both the same"
