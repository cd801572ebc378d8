"""Servers for tests, and raw connections to them."""

import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from hand_made import double_module

from vitral.config import CoreConfig
from vitral.isa import Cause
from vitral.program import Dram, Launch, Outcome
from vitral.runtime.device import open_device
from vitral.runtime.devices.simulated import SimulatedDevice
from vitral.runtime.module import Module
from vitral.runtime.remote import Limits, Server
from vitral.runtime.remote.auth import CLIENT, make_nonce, proof
from vitral.runtime.remote.channel import Channel
from vitral.runtime.remote.frames import Frame, Kind
from vitral.runtime.remote.scrub import SCRUB_BYTES
from vitral.runtime.session import Session

__all__ = [
    "PATIENCE",
    "X",
    "GatedDevice",
    "answers",
    "ask",
    "connect",
    "doubled",
    "enter_raw",
    "is_cut_off",
    "receive",
    "served",
    "wait_until",
]

X = np.arange(96, dtype=np.int8).reshape(1, 16, 2, 3) - 40
MIB = 1 << 20
PATIENCE = 10.0
"""Seconds after which a test gives up; nothing that passes waits so long."""


class GatedDevice(SimulatedDevice):
    """Runs nothing, and ends clients' programs when `gate` is set; `started` has their launches."""

    name = "gated"

    def _open(self) -> None:
        self.gate = getattr(self, "gate", None) or threading.Event()
        self.started: list[Launch] = getattr(self, "started", [])

    def _simulate(self, launch: Launch, dram: Dram, marks: Collection[int]) -> Outcome:
        if launch.limit_high - launch.limit_low != SCRUB_BYTES:  # a client's
            self.started.append(launch)
            self.gate.wait(PATIENCE)
        return Outcome(Cause.NONE, 0)


@contextmanager
def served(device: str | SimulatedDevice = "fsim", **options: Any) -> Iterator[Server]:
    """A server of a device with the default core; limits and the server's options by name."""
    names = Limits.__dataclass_fields__
    limits = {name: options.pop(name) for name in [*options] if name in names}
    limits = {"memory_bytes": 4 * MIB, **limits}
    opened: Any = open_device(device, CoreConfig()) if isinstance(device, str) else device
    with Server(opened, limits=Limits(**limits), **options) as server:
        yield server


def doubled(session: Session, x: np.ndarray = X) -> bool:
    """Whether a session of `hand_made.double_module` gives 2 * x, modulo 256."""
    (y,) = session.run(None, {"x": x})
    return bool(np.array_equal(y, (2 * x.astype(int)).astype(np.int8)))


def answers(server: Server, module: Module | None = None) -> bool:
    """Whether a new client is served."""
    with Session(module or double_module(), server.address) as session:
        return doubled(session)


def connect(server: Server) -> socket.socket:
    return socket.create_connection((server.host, server.port), PATIENCE)


def enter_raw(sock: socket.socket, secret: bytes = b"") -> Channel:
    """Go through the handshake by hand; the channel it leaves is a known client's."""
    channel = Channel(sock, Limits())
    hello = receive(channel)
    assert hello.kind is Kind.HELLO
    ours = make_nonce()
    mac = proof(secret, CLIENT, bytes.fromhex(hello.metadata["nonce"]), ours)
    channel.send(Kind.AUTH, {"nonce": ours.hex(), "mac": mac})
    assert receive(channel).kind is Kind.WELCOME
    return channel


def receive(channel: Channel) -> Frame:
    frame = channel.receive(PATIENCE)
    assert frame is not None
    return frame


def is_cut_off(sock: socket.socket) -> bool:
    """Whether the server ends the connection, after whatever it still has to say."""
    sock.settimeout(PATIENCE)
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread does; an error when it does not come."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.002)


def ask(
    channel: Channel, kind: Kind, metadata: dict[str, Any], arrays: tuple[bytes, ...] = ()
) -> Frame:
    """The answer to a request."""
    channel.send(kind, metadata, arrays)
    return receive(channel)
