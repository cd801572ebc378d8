"""Frames over a socket, each within its time."""

import contextlib
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from vitral.errors import DeviceError
from vitral.runtime.remote.frames import (
    HEADER_BYTES,
    Frame,
    Kind,
    pack_header,
    parse_metadata,
    unpack_header,
)
from vitral.runtime.remote.limits import Limits

__all__ = ["Channel", "LinkError", "Part"]

Part = bytes | bytearray | memoryview

_PIECE = 256 << 10
_FIRST_ROOM = 1 << 20
_SMALL = 64 << 10


class LinkError(DeviceError):
    """The connection ended, or the other end was too slow."""


class Channel:
    """A connected socket that sends and receives frames. One thread at a time.

    Waits are measured over the whole frame, so an end that sends or takes single bytes now and
    then runs out of time like one that does nothing.

    Parameters
    ----------
    sock : socket
        Connected, plain or TLS. The channel owns it.
    limits : Limits
        Sizes and times of frames.
    """

    def __init__(self, sock: socket.socket, limits: Limits) -> None:
        self.limits = limits
        self._socket = sock
        with contextlib.suppress(OSError):  # answers are small, and waited for
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(
        self,
        kind: Kind,
        metadata: Mapping[str, Any] | None = None,
        arrays: Sequence[Part] = (),
    ) -> None:
        """Send a frame; LinkError when the other end does not take it in time."""
        parts = [memoryview(array).cast("B") for array in arrays if len(array)]
        nbytes = sum(part.nbytes for part in parts)
        head = memoryview(pack_header(kind, metadata or {}, nbytes))
        deadline = time.monotonic() + self.limits.body_seconds(nbytes)
        small = nbytes <= _SMALL  # wakes the other end once instead of for every part
        for part in [memoryview(b"".join((head, *parts)))] if small else [head, *parts]:
            self._send_all(part, deadline)

    def receive(
        self,
        seconds: float,
        *,
        metadata_bytes: int | None = None,
        body_bytes: int | None = None,
        whole: bool = False,
    ) -> Frame | None:
        """The next frame, or None when the other end closed the connection before it.

        Parameters
        ----------
        seconds : float
            Until its first byte.
        metadata_bytes, body_bytes : int or None
            Limits in place of the channel's.
        whole : bool
            Whether all of it must come within `seconds`.

        Raises
        ------
        LinkError
            When it does not come in time, or ends in the middle.
        ProtocolError
            When it is no frame, or larger than a limit.
        """
        limits = self.limits
        header = bytearray(HEADER_BYTES)
        end = time.monotonic() + seconds
        count = self._receive_some(memoryview(header), end)
        if not count:
            return None
        deadline = end if whole else time.monotonic() + limits.frame_seconds
        header[count:] = self._receive_all(HEADER_BYTES - count, deadline)
        kind, metadata_size, body_size = unpack_header(
            header,
            limits.metadata_bytes if metadata_bytes is None else metadata_bytes,
            limits.frame_bytes if body_bytes is None else body_bytes,
        )
        metadata = parse_metadata(self._receive_all(metadata_size, deadline))
        if not whole:
            deadline = time.monotonic() + limits.body_seconds(body_size)
        return Frame(kind, metadata, self._receive_all(body_size, deadline))

    def is_open(self) -> bool:
        """Whether the other end has not closed the connection, as far as one can see."""
        try:  # below TLS, whose sockets cannot peek
            self._socket.setblocking(False)
            return socket.socket.recv(self._socket, 1, socket.MSG_PEEK) != b""
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False

    def end_input(self) -> None:
        """Make `receive` see the end of the connection; what is being sent still goes. Any thread.

        A TLS socket's own `shutdown` would drop its encryption, so this goes below it.
        """
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RD)

    def abort(self) -> None:
        """End the connection in both directions, whatever goes on there. Any thread."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        self.abort()
        self._socket.close()

    def _send_all(self, data: memoryview, deadline: float) -> None:
        done = 0
        while done < data.nbytes:
            try:
                self._socket.settimeout(_left(deadline))
                done += self._socket.send(data[done : done + _PIECE])
            except TimeoutError:
                raise LinkError("the other end does not take what it asked for") from None
            except (OSError, ValueError) as error:
                raise LinkError(f"the connection is lost ({_reason(error)})") from None

    def _receive_all(self, size: int, deadline: float) -> bytearray:
        """Exactly `size` bytes; room for them is made as they come."""
        data = bytearray(min(size, _FIRST_ROOM))
        done = 0
        while done < size:
            if done == len(data):
                data.extend(bytes(min(size - done, done)))
            with memoryview(data) as view, view[done : done + _PIECE] as room:
                count = self._receive_some(room, deadline)
            if not count:
                raise LinkError("the connection ended in the middle of a frame")
            done += count
        return data

    def _receive_some(self, room: memoryview, deadline: float) -> int:
        """How many bytes of `room` were filled; 0 at the end of the connection."""
        try:
            self._socket.settimeout(_left(deadline))
            return self._socket.recv_into(room)
        except TimeoutError:
            raise LinkError("the other end sent nothing in time") from None
        except (OSError, ValueError) as error:
            raise LinkError(f"the connection is lost ({_reason(error)})") from None


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__
