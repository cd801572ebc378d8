"""Who is let in, and how the way there is protected."""

import os
import ssl
from pathlib import Path
from typing import Any

import pytest
from hand_made import double_module
from serving import connect, doubled, enter_raw, is_cut_off, receive, served

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.runtime.device import open_device
from vitral.runtime.remote import Server
from vitral.runtime.remote.address import is_loopback, server_tls
from vitral.runtime.remote.auth import CLIENT, SERVER, make_nonce, proof, read_secret
from vitral.runtime.remote.channel import Channel
from vitral.runtime.remote.frames import Kind
from vitral.runtime.remote.limits import Limits
from vitral.runtime.session import Session

SECRET = b"sixteen bytes or more"
TLS = Path(__file__).parents[1] / "data/tls"
"""A key pair for tests only: no server that anybody uses has it."""


def tls() -> ssl.SSLContext:
    return server_tls(TLS / "cert.pem", TLS / "key.pem")


@pytest.fixture(autouse=True)
def no_secrets_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VITRAL_SECRET", "VITRAL_SECRET_FILE", "VITRAL_CA_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_secret_lets_in() -> None:
    with served(secret=SECRET) as server:
        with Session(double_module(), server.address, secret=SECRET) as session:
            assert doubled(session)


@pytest.mark.parametrize(
    ("servers", "clients", "message"),
    [
        (SECRET, SECRET + b"!", "the secret is wrong"),
        (SECRET, None, "the server wants a secret; name its file in VITRAL_SECRET_FILE"),
        (None, SECRET, "the server has no secret, this end has one"),
    ],
)
def test_other_secrets_do_not(servers: Any, clients: Any, message: str) -> None:
    with served(secret=servers) as server:
        with pytest.raises(DeviceError, match=message):
            open_device(server.address, CoreConfig(), secret=clients)


@pytest.mark.parametrize("kind", [Kind.ALLOCATE, Kind.RUN, Kind.READ, Kind.LOAD, Kind.WELCOME])
def test_nothing_is_answered_before_the_proof(kind: Kind) -> None:
    with served(secret=SECRET) as server, connect(server) as sock:
        channel = Channel(sock, Limits())
        hello = receive(channel)
        assert set(hello.metadata) == {"nonce", "secret"}
        channel.send(kind, {"bytes": 1})
        answer = receive(channel)
        assert answer.kind is Kind.ERROR
        assert set(answer.metadata) == {"message", "type"}
        assert is_cut_off(sock)


def test_proof_of_one_handshake_is_none_in_another() -> None:
    """A recorded answer is of no use: the server's nonce is new each time."""
    ours, seen = make_nonce(), []
    with served(secret=SECRET) as server:
        for _ in range(2):
            with connect(server) as sock:
                channel = Channel(sock, Limits())
                hello = receive(channel)
                nonce = bytes.fromhex(hello.metadata["nonce"])
                seen.append(proof(SECRET, CLIENT, nonce, ours))
                channel.send(Kind.AUTH, {"nonce": ours.hex(), "mac": seen[0]})
                seen.append(receive(channel).kind)
    assert seen[1] is Kind.WELCOME
    assert seen[3] is Kind.ERROR


def test_server_s_proof_is_not_a_client_s() -> None:
    """Nor can a client's own words be sent back to it."""
    nonces = (make_nonce(), make_nonce())
    assert proof(SECRET, SERVER, *nonces) != proof(SECRET, CLIENT, *nonces)


def test_server_must_know_the_secret_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from vitral.runtime.remote import connection

    monkeypatch.setattr(connection, "admit", _admit_all)
    with served(secret=SECRET) as server:
        with pytest.raises(DeviceError, match="the server does not know the secret"):
            open_device(server.address, CoreConfig(), secret=SECRET)


def test_secret_never_travels() -> None:
    """Of all that a client says in the handshake, nothing has the secret in it."""
    with served(secret=SECRET) as server, connect(server) as sock:
        said: list[bytes] = []
        recorder: Any = _Recorder(sock, said)
        enter_raw(recorder, SECRET)
    text = b"".join(said)
    assert len(text) > 100
    assert SECRET not in text
    assert SECRET.hex().encode() not in text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "board.example"])
@pytest.mark.parametrize("given", [{}, {"secret": SECRET}, {"tls": True}])
def test_server_does_not_leave_the_machine_unprotected(host: str, given: dict[str, Any]) -> None:
    options = {**given, **({"tls": tls()} if "tls" in given else {})}
    device = open_device("null", CoreConfig())
    with pytest.raises(DeviceError, match=f"{host} is reached from other machines"):
        Server(device, host, **options)
    device.close()


def test_server_with_both_may_leave_the_machine() -> None:
    with served(host="0.0.0.0", secret=SECRET, tls=tls()) as server:
        address = f"tcp://localhost:{server.port}"
        options = {"secret": SECRET, "ca_file": TLS / "cert.pem"}
        with Session(double_module(), address, **options) as session:
            assert doubled(session)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ca_file": TLS / "other_cert.pem"}, "not trusted: "),
        ({}, "sent nothing in time; a server with TLS needs its certificate in VITRAL_CA_FILE"),
    ],
)
def test_tls_server_needs_its_certificate(options: dict[str, Any], message: str) -> None:
    with served(tls=tls()) as server:
        with pytest.raises(DeviceError, match=message) as caught:
            open_device(server.address, CoreConfig(), connect_seconds=0.3, **options)
    assert "\n" not in str(caught.value)


def test_certificate_must_be_of_that_host() -> None:
    with served(host="127.0.0.2", tls=tls()) as server:
        with pytest.raises(DeviceError, match="not trusted: IP address mismatch"):
            open_device(server.address, CoreConfig(), ca_file=TLS / "cert.pem")


def test_plain_server_does_not_speak_tls() -> None:
    with served() as server:
        with pytest.raises(DeviceError, match="no TLS: "):
            open_device(server.address, CoreConfig(), ca_file=TLS / "cert.pem")


def test_client_does_not_leave_the_machine_unprotected(monkeypatch: pytest.MonkeyPatch) -> None:
    from vitral.runtime.devices import remote

    with served() as server:
        monkeypatch.setattr(remote, "is_loopback", lambda host: False)
        with pytest.raises(
            DeviceError, match=r"another machine: that needs TLS; .* VITRAL_CA_FILE"
        ):
            open_device(server.address, CoreConfig())


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
    ],
)
def test_what_is_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_secret_comes_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_secret() is None
    monkeypatch.setenv("VITRAL_SECRET", SECRET.decode())
    assert read_secret() == SECRET
    path = tmp_path / "secret"
    path.write_bytes(b"  another secret, of a file\n")
    path.chmod(0o600)
    monkeypatch.setenv("VITRAL_SECRET_FILE", str(path))
    assert read_secret() == b"another secret, of a file"
    assert read_secret(path) == b"another secret, of a file"


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (b"short\n", 0o600, "a secret has 16 to 4096 bytes, got 5"),
        (b"", 0o600, "got 0"),
        (bytes(5000), 0o600, "got 4097"),
        (SECRET, 0o640, "others may read or write the secret; chmod 600 it"),
        (SECRET, 0o602, "others may"),
    ],
)
def test_secret_that_is_none(content: bytes, mode: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    os.chmod(path, mode)
    with pytest.raises(DeviceError, match=message):
        read_secret(path)


def _admit_all(channel: Channel, secret: bytes | None, seconds: float) -> str:
    channel.send(Kind.HELLO, {"nonce": make_nonce().hex(), "secret": True})
    assert channel.receive(seconds) is not None
    return "0" * 64


class _Recorder:
    """A socket that notes what is sent."""

    def __init__(self, sock: Any, said: list[bytes]) -> None:
        self._sock, self._said = sock, said

    def send(self, data: Any) -> int:
        count = self._sock.send(data)
        self._said.append(bytes(data[:count]))
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)
