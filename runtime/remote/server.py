"""The server: accepts connections, and ends in good order."""

import contextlib
import logging
import selectors
import socket
import ssl
import threading
import time
from types import TracebackType

from vitral.errors import DeviceError
from vitral.runtime.device import Device
from vitral.runtime.remote.address import is_loopback, show_address
from vitral.runtime.remote.connection import Connection, Service
from vitral.runtime.remote.images import ImageStore
from vitral.runtime.remote.limits import Limits
from vitral.runtime.remote.shared_device import SharedDevice

__all__ = ["Server"]

_log = logging.getLogger("vitral.serve")

_GRACE_SECONDS = 5.0
_BACKLOG = 64
_PAUSE_SECONDS = 0.1


class Server:
    """Serves a device to clients over TCP.

    It listens from the start, and accepts in `serve`. Each connection has a thread; the device
    has one user at a time, in the order of asking.

    Parameters
    ----------
    device : Device
        Open, without memory; owned by the server.
    host, port : str, int
        Where to listen; port 0 takes a free one, see `address`.
    secret : bytes or None
        What clients must know; needed when `host` is not this machine's loopback.
    tls : ssl.SSLContext or None
        Encrypts connections; needed likewise.
    limits : Limits or None
        The defaults when None.
    once : bool
        Whether to end after the first client that was let in.

    Raises
    ------
    DeviceError
        When it would leave the machine without secret and TLS, the memory is not to be had, or it
        cannot listen there.
    """

    def __init__(
        self,
        device: Device,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        secret: bytes | None = None,
        tls: ssl.SSLContext | None = None,
        limits: Limits | None = None,
        once: bool = False,
    ) -> None:
        if not is_loopback(host) and (secret is None or tls is None):
            raise DeviceError(
                f"{host} is reached from other machines: that needs a secret and a certificate;"
                " give both, or listen on 127.0.0.1"
            )
        limits = limits or Limits()
        self._service = Service(
            device=SharedDevice(device, limits),
            store=ImageStore(limits.store_bytes),
            limits=limits,
            secret=secret,
            tls=tls,
        )
        self._once = once
        self._lock = threading.Lock()
        self._pending: dict[Connection, None] = {}  # in the order of coming
        self._clients: dict[Connection, None] = {}
        self._stopped = threading.Event()
        self._listener = _listen(host, port)
        self._wake, self._woken = socket.socketpair()
        self.host, self.port = self._listener.getsockname()[:2]

    @property
    def address(self) -> str:
        """The device's name for clients, such as tcp://127.0.0.1:7421."""
        return show_address(self.host, self.port)

    def serve(self) -> None:
        """Accept connections until `stop`, then let requests that run end, and close the device."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._stopped.is_set():
                for key, _ in selector.select():
                    if key.fileobj is self._listener:
                        self._accept()
        self._end()

    def stop(self) -> None:
        """Make `serve` return. From any thread, or a signal handler; again does nothing."""
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._wake.send(b"x")

    def __enter__(self) -> "Server":
        """Serve in a thread until the end of the `with`."""
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._thread.join(self._service.limits.run_seconds + 2 * _GRACE_SECONDS)

    def _accept(self) -> None:
        try:
            sock, peer = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:  # out of files, or the client left meanwhile
            _log.warning("cannot accept a connection: %s", error.strerror)
            time.sleep(_PAUSE_SECONDS)
            return
        name = show_address(*peer[:2]).removeprefix("tcp://")
        connection = Connection(sock, name, self._service, self._admit, self._leave)
        with self._lock:
            if len(self._pending) >= self._service.limits.pending:
                oldest = next(iter(self._pending))
                del self._pending[oldest]
                oldest.abort()
            self._pending[connection] = None
        connection.thread.start()

    def _admit(self, connection: Connection) -> None:
        with self._lock:
            if self._stopped.is_set() or connection not in self._pending:
                raise DeviceError("the server is being stopped, or has no time; try again later")
            limit = self._service.limits.clients
            if len(self._clients) >= limit:
                raise DeviceError(f"the server has {limit} clients and takes no more; try later")
            del self._pending[connection]
            self._clients[connection] = None

    def _leave(self, connection: Connection) -> None:
        with self._lock:
            self._pending.pop(connection, None)
            was_client = connection in self._clients
            self._clients.pop(connection, None)
        if was_client and self._once:
            self.stop()

    def _end(self) -> None:
        self._listener.close()
        self._service.device.turns.stop()
        with self._lock:
            pending, clients = list(self._pending), list(self._clients)
        for connection in pending:
            connection.abort()
        for connection in clients:
            connection.finish()
        deadline = time.monotonic() + self._service.limits.run_seconds + _GRACE_SECONDS
        for connection in (*clients, *pending):
            connection.thread.join(max(0.0, deadline - time.monotonic()))
            connection.abort()
        self._service.device.close()
        self._wake.close()
        self._woken.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except BaseException:
            listener.close()
            raise
        return listener
    except OSError as error:
        raise DeviceError(f"cannot listen on {host}:{port}: {error.strerror}") from None
