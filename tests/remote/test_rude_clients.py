"""Clients that break the protocol, dawdle, or vanish; others are served all the same."""

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hand_made import ARENA, double_module
from serving import (
    MIB,
    GatedDevice,
    X,
    answers,
    ask,
    connect,
    enter_raw,
    is_cut_off,
    served,
    wait_until,
)

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.runtime.device import open_device
from vitral.runtime.remote import Server
from vitral.runtime.remote.frames import PROTOCOL, Kind, pack_header
from vitral.runtime.remote.records import launch_record
from vitral.runtime.remote.scrub import SCRUB_BYTES
from vitral.runtime.session import Session

LAUNCH = launch_record(double_module().segments[0].launch(0, ARENA))


def frame(
    kind: int = Kind.ALLOCATE,
    metadata: bytes = b"{}",
    body: bytes = b"",
    *,
    magic: bytes = b"VTRL",
    version: int = PROTOCOL,
    flags: int = 0,
    metadata_bytes: int | None = None,
    body_bytes: int | None = None,
) -> bytes:
    """A frame byte by byte, with lengths that may be lies."""
    sizes = (
        len(metadata) if metadata_bytes is None else metadata_bytes,
        len(body) if body_bytes is None else body_bytes,
    )
    return struct.pack("<4sBBHIQ", magic, version, kind, flags, *sizes) + metadata + body


MALFORMED = {
    "another protocol": b"GET / HTTP/1.1\r\nHost: board\r\n\r\n",
    "zeros": bytes(64),
    "magic": frame(magic=b"VTRM"),
    "version": frame(version=PROTOCOL + 1),
    "unknown kind": frame(200),
    "kind 0": frame(0),
    "flags": frame(flags=1),
    "server's kind": frame(Kind.WELCOME),
    "second handshake": frame(Kind.AUTH, b'{"nonce":"00","mac":"00"}'),
    "data that nobody asked for": frame(Kind.DATA, b"{}", b"abc"),
    "much metadata": frame(metadata_bytes=0xFFFF_FFFF),
    "huge body": frame(Kind.WRITE, body_bytes=1 << 63),
    "no JSON": frame(metadata=b"{"),
    "no text": frame(metadata=b"\xff\xfe{}"),
    "a list": frame(metadata=b"[]"),
    "no metadata": frame(metadata=b""),
    "deep": frame(metadata=b"[" * 50_000),
    "long int": frame(metadata=b'{"bytes":' + b"9" * 5_000 + b"}"),
    "not a number": frame(metadata=b'{"bytes":NaN}'),
    "pickle": frame(metadata=b"\x80\x04\x95K."),
}

WRONG_FIELDS: list[tuple[Kind, Any]] = [
    (Kind.ALLOCATE, {}),
    (Kind.ALLOCATE, {"bytes": -1}),
    (Kind.ALLOCATE, {"bytes": 1.5}),
    (Kind.ALLOCATE, {"bytes": True}),
    (Kind.ALLOCATE, {"bytes": "1"}),
    (Kind.ALLOCATE, {"bytes": 1 << 60}),
    (Kind.LOAD, {"digest": 3, "chunks": []}),
    (Kind.LOAD, {"digest": "0" * 65, "chunks": []}),
    (Kind.LOAD, {"digest": "0", "chunks": [[0]]}),
    (Kind.LOAD, {"digest": "0", "chunks": [[0, 1, 2]]}),
    (Kind.LOAD, {"digest": "0", "chunks": "01"}),
    (Kind.LOAD, {"digest": "0", "chunks": [[0, 0]] * 5000}),
    (Kind.READ, {"outputs": {"0": 1}}),
    (Kind.READ, {"outputs": [[0.0, 1.0]]}),
    (Kind.WRITE, {"offset": None}),
    (Kind.RUN, {}),
    (Kind.RUN, {"launch": []}),
    (Kind.RUN, {"launch": LAUNCH, "marks": [-1]}),
    (Kind.RUN, {"launch": LAUNCH, "marks": 3}),
    (Kind.RUN, {"launch": LAUNCH, "timeout": -1}),
    (Kind.RUN, {"launch": LAUNCH, "timeout": "1"}),
    (Kind.RUN, {"launch": LAUNCH, "timeout": []}),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served() as server:
        yield server


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_frame_ends_the_connection(name: str, server: Server) -> None:
    with connect(server) as sock:
        enter_raw(sock)
        sock.sendall(MALFORMED[name])
        assert is_cut_off(sock)
    assert answers(server)


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_frame_in_place_of_the_handshake(name: str, server: Server) -> None:
    with connect(server) as sock:
        sock.sendall(MALFORMED[name])
        assert is_cut_off(sock)
    assert answers(server)


@pytest.mark.parametrize(("kind", "metadata"), WRONG_FIELDS)
def test_wrong_field_is_named_in_one_line(kind: Kind, metadata: Any, server: Server) -> None:
    with connect(server) as sock:
        channel = enter_raw(sock)
        if kind is not Kind.ALLOCATE:
            assert ask(channel, Kind.ALLOCATE, {"bytes": ARENA}).kind is Kind.OK
        answer = ask(channel, kind, metadata)
        assert answer.kind is Kind.ERROR
        assert "\n" not in answer.metadata["message"]
        assert len(answer.metadata["message"]) < 200
    assert answers(server)


def test_requests_in_the_wrong_order(server: Server) -> None:
    with connect(server) as sock:
        channel = enter_raw(sock)
        for kind, metadata in ((Kind.READ, {}), (Kind.RUN, {}), (Kind.LOAD, {}), (Kind.WRITE, {})):
            assert "no memory" in ask(channel, kind, metadata).metadata["message"]
        assert ask(channel, Kind.ALLOCATE, {"bytes": 1}).kind is Kind.OK
        assert "already" in ask(channel, Kind.ALLOCATE, {"bytes": 1}).metadata["message"]


@pytest.mark.parametrize("cut", [0, 1, 19, 20, 25])
def test_client_that_stops_in_the_middle(cut: int, server: Server) -> None:
    with connect(server) as sock:
        enter_raw(sock)
        sock.sendall(frame(Kind.ALLOCATE, b'{"bytes":1}', b"")[:cut])
    assert answers(server)


def test_silent_client_is_cut_off_before_the_handshake() -> None:
    with served(handshake_seconds=0.1) as server, connect(server) as sock:
        assert is_cut_off(sock)
        assert answers(server)


def test_dripping_handshake_is_cut_off() -> None:
    auth = frame(Kind.AUTH, json.dumps({"nonce": "0" * 64, "mac": "0" * 64}).encode())
    with served(handshake_seconds=0.3) as server, connect(server) as sock:
        assert _drip(sock, auth) < len(auth)
        assert answers(server)


@pytest.mark.parametrize(
    ("at_once", "rest"),
    [
        (b"", frame(Kind.ALLOCATE, b'{"bytes":1}')),
        (frame(Kind.ALLOCATE, b" " * 500)[:20], b" " * 500),
        (frame(Kind.WRITE, b"{}", body_bytes=500), bytes(500)),
    ],
    ids=["header", "metadata", "body"],
)
def test_dripping_frame_is_cut_off(at_once: bytes, rest: bytes) -> None:
    with served(frame_seconds=0.3) as server, connect(server) as sock:
        enter_raw(sock)
        sock.sendall(at_once)
        assert _drip(sock, rest * 30) < 30 * len(rest)
        assert answers(server)


def test_large_frame_may_take_its_time() -> None:
    """The rest of a body that comes after the time of a small frame, at a fair rate."""
    with served(frame_seconds=0.2, bytes_per_second=100) as server, connect(server) as sock:
        channel = enter_raw(sock)
        assert ask(channel, Kind.ALLOCATE, {"bytes": ARENA}).kind is Kind.OK
        sock.sendall(frame(Kind.WRITE, b'{"offset":0}', bytes(400)[:10], body_bytes=400))
        time.sleep(0.5)
        sock.sendall(bytes(390))
        answer = channel.receive(10)
        assert answer is not None
        assert answer.kind is Kind.OK


def test_idle_client_is_cut_off() -> None:
    with served(idle_seconds=0.1) as server, connect(server) as sock:
        enter_raw(sock)
        assert is_cut_off(sock)


def test_client_that_does_not_take_its_answer_is_cut_off() -> None:
    """Its memory is free again, and others are served meanwhile."""
    limits = {"frame_seconds": 0.2, "bytes_per_second": 1 << 30}
    with served(memory_bytes=3 * MIB + 2 * ARENA, **limits) as server:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect((server.host, server.port))
        with sock:
            channel = enter_raw(sock)
            assert ask(channel, Kind.ALLOCATE, {"bytes": 3 * MIB}).kind is Kind.OK
            for _ in range(8):  # more than the buffers of both ends hold
                channel.send(Kind.READ, {"outputs": [[0, 3 * MIB]]})
            assert answers(server)
            wait_until(lambda: _allocates(server, 3 * MIB))


def test_client_cut_off_while_its_program_runs() -> None:
    device = GatedDevice(CoreConfig())
    with served(device, memory_bytes=2 * ARENA + SCRUB_BYTES) as server:
        with Session(double_module(), server.address) as other:
            with connect(server) as sock:
                channel = enter_raw(sock)
                assert ask(channel, Kind.ALLOCATE, {"bytes": ARENA}).kind is Kind.OK
                channel.send(Kind.RUN, {"launch": LAUNCH, "outputs": [[0, ARENA]]})
                wait_until(lambda: len(device.started) == 1)
            device.gate.set()
            other.run(None, {"x": X})
            wait_until(lambda: _allocates(server, ARENA))


def test_client_that_leaves_while_it_waits_does_not_run() -> None:
    device = GatedDevice(CoreConfig())
    with served(device) as server, Session(double_module(), server.address) as first:
        session = threading.Thread(target=first.run, args=(None, {"x": X}))
        with connect(server) as sock:
            channel = enter_raw(sock)
            assert ask(channel, Kind.ALLOCATE, {"bytes": ARENA}).kind is Kind.OK
            session.start()
            wait_until(lambda: len(device.started) == 1)
            channel.send(Kind.RUN, {"launch": LAUNCH})
            wait_until(lambda: _waiting(server) == 1)
        device.gate.set()
        session.join()
        wait_until(lambda: _waiting(server) == 0)
        assert len(device.started) == 1


def test_flood_of_silent_connections_does_not_keep_clients_out() -> None:
    with served(pending=4, handshake_seconds=60) as server:
        silent = [connect(server) for _ in range(12)]
        assert answers(server)
        for sock in silent[:4]:
            assert is_cut_off(sock)  # the oldest had to go
        for sock in silent:
            sock.close()


def test_one_client_too_many() -> None:
    with served(clients=1) as server:
        with Session(double_module(), server.address):
            with pytest.raises(DeviceError, match="has 1 clients and takes no more"):
                open_device(server.address, CoreConfig())
        wait_until(lambda: not server._clients)
        assert answers(server)


def test_device_that_stays_busy() -> None:
    """Who waits too long is told so, and so is who finds too many waiting."""
    device = GatedDevice(CoreConfig())
    with served(device, waiting=1, queue_seconds=0.3) as server:
        sessions = [Session(double_module(), server.address) for _ in range(3)]
        first = threading.Thread(target=sessions[0].run, args=(None, {"x": X}))
        first.start()
        wait_until(lambda: len(device.started) == 1)
        errors: list[str] = []

        def run() -> None:
            with pytest.raises(DeviceError) as caught:
                sessions[1].run(None, {"x": X})
            errors.append(str(caught.value))

        second = threading.Thread(target=run)
        second.start()
        wait_until(lambda: _waiting(server) == 1 or bool(errors))
        if not errors:
            with pytest.raises(DeviceError, match="device is busy: "):
                sessions[2].run(None, {"x": X})
        second.join()
        assert "the device is busy: no turn came within 0.3 seconds; try again later" in errors[0]
        device.gate.set()
        first.join()
        for session in sessions:
            session.run(None, {"x": X})
            session.close()


def test_server_s_own_failure_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    device = GatedDevice(CoreConfig())
    device.gate.set()
    with served(device) as server, Session(double_module(), server.address) as session:
        with monkeypatch.context() as patch:
            patch.setattr(device, "_simulate", lambda *_: 1 // 0)
            with pytest.raises(DeviceError, match=r"the device failed \(ZeroDivisionError\)"):
                session.run(None, {"x": X})
        session.run(None, {"x": X})


@pytest.mark.parametrize(
    "lie",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        pack_header(Kind.WELCOME, {}, 0),
        pack_header(Kind.HELLO, {"nonce": "zz", "secret": False}, 0),
        pack_header(Kind.HELLO, {"secret": False}, 0),
        pack_header(Kind.HELLO, {"nonce": "00" * 32, "secret": False}, 1 << 40),
        pack_header(Kind.ERROR, {"message": "a\nb", "type": "SystemExit"}, 0),
    ],
)
def test_server_that_is_none_is_refused_in_one_line(lie: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.sendall(lie)

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(DeviceError) as caught:
            open_device(address, CoreConfig())
        thread.join()
    assert str(caught.value).startswith(address)
    assert "\n" not in str(caught.value)


def test_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(DeviceError, match=f"{address}: the other end sent nothing in time"):
            open_device(address, CoreConfig(), connect_seconds=0.1)


def _drip(sock: socket.socket, data: bytes) -> int:
    """Bytes that could be sent one by one before the server ended it."""
    sock.settimeout(0.01)
    for count in range(len(data)):
        try:
            sock.send(data[count : count + 1])
        except OSError:
            return count
        try:
            if sock.recv(1 << 16) == b"":
                return count
        except TimeoutError:
            continue
        except OSError:
            return count
    return len(data)


def _allocates(server: Server, nbytes: int) -> bool:
    device = open_device(server.address, CoreConfig())
    try:
        device.allocate(nbytes)
    except DeviceError:
        return False
    finally:
        device.close()
    return True


def _waiting(server: Server) -> int:
    return len(server._service.device.turns._queue) - 1 if _running(server) else 0


def _running(server: Server) -> bool:
    return bool(server._service.device.turns._queue)
