"""The server's side of one connection, in a thread of its own."""

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from vitral.errors import DeviceError, VitralError
from vitral.runtime.remote.channel import Channel, LinkError
from vitral.runtime.remote.frames import Kind, ProtocolError
from vitral.runtime.remote.handshake import admit
from vitral.runtime.remote.images import ImageStore
from vitral.runtime.remote.limits import Limits
from vitral.runtime.remote.records import error_record
from vitral.runtime.remote.requests import Requests
from vitral.runtime.remote.shared_device import SharedDevice

__all__ = ["Connection", "Service"]

_log = logging.getLogger("vitral.serve")


@dataclass(frozen=True, kw_only=True)
class Service:
    """What all connections of a server share."""

    device: SharedDevice
    store: ImageStore
    limits: Limits
    secret: bytes | None
    tls: ssl.SSLContext | None


class Connection:
    """A thread that serves one client, from the handshake to its end.

    Parameters
    ----------
    sock : socket
        Accepted, plain; owned by the connection.
    peer : str
        Its address, for the log.
    service : Service
        What it serves.
    welcome : function
        Called with the connection once the client has shown that it knows the secret; raises
        DeviceError when there is no place for it.
    leave : function
        Called with the connection at its end.
    """

    def __init__(
        self,
        sock: socket.socket,
        peer: str,
        service: Service,
        welcome: Callable[["Connection"], None],
        leave: Callable[["Connection"], None],
    ) -> None:
        self.peer = peer
        self._socket = sock
        self._service = service
        self._welcome, self._leave = welcome, leave
        self._channel = Channel(sock, service.limits)
        self._stopping = False
        self.thread = threading.Thread(target=self._serve, name=f"vitral {peer}", daemon=True)

    def finish(self) -> None:
        """End after the answer to the request that is being served. Any thread."""
        self._stopping = True
        self._channel.end_input()

    def abort(self) -> None:
        """End at once. Any thread."""
        self._stopping = True
        self._channel.abort()

    def _serve(self) -> None:
        try:
            self._talk()
        except (LinkError, ProtocolError) as error:
            _log.warning("%s: %s", self.peer, error)
        except Exception as error:  # a client must not end the server
            _log.exception("%s: %s", self.peer, error)
        finally:
            self._channel.close()
            self._leave(self)

    def _talk(self) -> None:
        deadline = time.monotonic() + self._service.limits.handshake_seconds
        self._secure(deadline)
        try:
            mac = admit(self._channel, self._service.secret, deadline - time.monotonic())
            self._welcome(self)
        except LinkError:
            raise
        except DeviceError as error:
            _log.warning("%s: not let in: %s", self.peer, error)
            self._channel.send(Kind.ERROR, error_record(error))
            return
        _log.info("%s: client let in", self.peer)
        self._channel.send(Kind.WELCOME, {"mac": mac, **self._description()})
        self._answer_all()
        _log.info("%s: client left", self.peer)

    def _secure(self, deadline: float) -> None:
        tls = self._service.tls
        if tls is None:
            return
        sock = tls.wrap_socket(self._socket, server_side=True, do_handshake_on_connect=False)
        self._channel = Channel(sock, self._service.limits)
        try:
            sock.settimeout(max(deadline - time.monotonic(), 0.001))
            sock.do_handshake()
        except OSError as error:
            raise LinkError(f"no TLS: {error.strerror or error}") from None

    def _description(self) -> dict[str, object]:
        device = self._service.device.device
        return {
            "device": device.name,
            "config": device.config.to_dict(),
            "limits": asdict(self._service.limits),
        }

    def _answer_all(self) -> None:
        requests = Requests(self._channel, self._service.device, self._service.store)
        try:
            while not self._stopping and self._answer_one(requests):
                pass
        finally:
            requests.close()

    def _answer_one(self, requests: Requests) -> bool:
        """Whether the client goes on."""
        try:
            request = self._channel.receive(self._service.limits.idle_seconds)
            if request is None:
                return False
            requests.answer(request)
        except LinkError:
            raise
        except ProtocolError as error:
            self._channel.send(Kind.ERROR, error_record(error))
            raise
        except VitralError as error:
            _log.info("%s: %s", self.peer, error)
            self._channel.send(Kind.ERROR, error_record(error))
        except Exception as error:  # of the device: its next user resets it
            _log.exception("%s: %s", self.peer, error)
            failure = DeviceError(
                f"the device failed ({type(error).__name__}); see the server's log"
            )
            self._channel.send(Kind.ERROR, error_record(failure))
        return True
