"""A device of another machine, or another process, served by `vitral serve`."""

import os
import socket
import ssl
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import ConfigError, DeviceError
from vitral.program import Launch, Outcome
from vitral.runtime.remote.address import (
    CA_VARIABLE,
    client_tls,
    is_loopback,
    parse_address,
    show_address,
)
from vitral.runtime.remote.auth import NONCE_BYTES, read_secret
from vitral.runtime.remote.channel import Channel, LinkError, Part
from vitral.runtime.remote.frames import Frame, Kind, ProtocolError
from vitral.runtime.remote.handshake import enter
from vitral.runtime.remote.images import image_digest, image_proof
from vitral.runtime.remote.limits import Limits
from vitral.runtime.remote.records import (
    error_from,
    launch_record,
    outcome_from,
    take_int,
    take_seconds,
    take_text,
)

__all__ = ["RemoteDevice"]

Array = npt.NDArray[np.uint8]
_GRACE_SECONDS = 10.0


class RemoteDevice:
    """The device behind a server, as if it were here.

    Programs and tensors travel, steps on the CPU do not: they run on this side. A connection that
    is lost is made again by `reset`, or by `load`.

    Parameters
    ----------
    address : str
        tcp://host:port.
    config : CoreConfig
        The core that is wanted; `config` of the device is the server's own.
    secret : bytes or None
        What server and clients share.
    secret_file : path or None
        File with it, in place of `secret`; the environment's VITRAL_SECRET_FILE or VITRAL_SECRET
        when neither is given.
    ca_file : path or None
        Certificate of the server or of who signed it; the environment's VITRAL_CA_FILE when None.
        With one, the connection is encrypted; without, it may not leave this machine.
    connect_seconds : float
        For the connection and the handshake, each.

    Raises
    ------
    DeviceError
        When the server is not there, is not the right one, or does not let this client in.
    """

    OPTIONS = ("secret", "secret_file", "ca_file", "connect_seconds")

    def __init__(
        self,
        address: str,
        config: CoreConfig,
        *,
        secret: bytes | None = None,
        secret_file: str | PathLike[str] | None = None,
        ca_file: str | PathLike[str] | None = None,
        connect_seconds: float = 10.0,
    ) -> None:
        self._place = parse_address(address)
        self.address = show_address(*self._place)
        self._secret = read_secret(secret_file) if secret is None else secret
        ca_file = ca_file or os.environ.get(CA_VARIABLE)
        self._tls = client_tls(ca_file) if ca_file else None
        self._seconds = connect_seconds
        self._arena_bytes: int | None = None
        self._closed = False
        self.config = config
        self._limits = Limits()
        self._channel: Channel | None = self._connect()

    def allocate(self, nbytes: int) -> int:
        """Always 0: the server moves addresses to where the memory is."""
        if self._arena_bytes is not None:
            raise DeviceError(f"{self.name}: memory is allocated already; open a second device")
        self._ask(Kind.ALLOCATE, {"bytes": nbytes})
        self._arena_bytes = nbytes
        return 0

    def load(self, image: Mapping[int, Array]) -> None:
        """Make the memory a module's image, zeros elsewhere; sent only if the server has it not."""
        if self._channel is None:
            self.reset()
        parts = [np.ascontiguousarray(chunk).data for chunk in image.values()]
        chunks = [(int(offset), part.nbytes) for offset, part in zip(image, parts, strict=True)]
        digest = image_digest(chunks, parts)
        answer = self._ask(
            Kind.LOAD,
            {"digest": digest, "chunks": chunks},
            expect=(Kind.OK, Kind.SEND, Kind.CHALLENGE),
        )
        if answer.kind is Kind.CHALLENGE:
            nonce = bytes.fromhex(take_text(answer.metadata, "nonce", 2 * NONCE_BYTES))
            self._ask(Kind.PROOF, {"mac": image_proof(nonce, parts)})
        elif answer.kind is Kind.SEND:
            self._upload(parts)

    def write(self, offset: int, array: npt.NDArray) -> None:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        for start in range(0, data.nbytes, self._limits.frame_bytes):
            part = data[start : start + self._limits.frame_bytes]
            self._ask(Kind.WRITE, {"offset": offset + start}, [part], seconds=self._queue())

    def read(self, offset: int, nbytes: int) -> Array:
        array, step = np.empty(nbytes, np.uint8), self._limits.frame_bytes
        for start in range(0, nbytes, step):
            size = min(step, nbytes - start)
            answer = self._ask(
                Kind.READ,
                {"outputs": [(offset + start, size)]},
                expect=(Kind.RESULT,),
                seconds=self._queue(),
            )
            array[start : start + size] = self._split(answer, [size])[0]
        return array

    def run(
        self, launch: Launch, *, timeout: float | None = None, marks: Collection[int] = ()
    ) -> Outcome:
        return self.execute(launch, (), (), timeout=timeout, marks=marks)[0]

    def execute(
        self,
        launch: Launch,
        inputs: Sequence[tuple[int, npt.NDArray]],
        outputs: Sequence[tuple[int, int]],
        *,
        timeout: float | None = None,
        marks: Collection[int] = (),
    ) -> tuple[Outcome, list[Array]]:
        """Write inputs (offset, array), run, and read outputs (offset, bytes) in one exchange.

        What is more than a frame holds goes by `write` and `read`. No outputs after a fault.
        """
        arrays = [np.ascontiguousarray(array) for _, array in inputs]
        parts = [array.reshape(-1).view(np.uint8).data for array in arrays]
        places = [(int(at), len(part)) for (at, _), part in zip(inputs, parts, strict=True)]
        if sum(size for _, size in places) > self._limits.frame_bytes:
            for (offset, _), array in zip(places, arrays, strict=True):
                self.write(offset, array)
            parts, places = [], []
        fits = sum(size for _, size in outputs) <= self._limits.frame_bytes
        answer = self._ask(
            Kind.RUN,
            {
                "launch": launch_record(launch),
                "timeout": timeout,
                "marks": sorted(marks),
                "inputs": places,
                "outputs": [*outputs] if fits else [],
            },
            parts,
            expect=(Kind.RESULT,),
            seconds=self._queue() + min(timeout or np.inf, self._limits.run_seconds),
        )
        outcome = outcome_from(answer.metadata.get("outcome"))
        if not outcome.ok:
            return outcome, []
        if fits:
            return outcome, self._split(answer, [size for _, size in outputs])
        return outcome, [self.read(offset, size) for offset, size in outputs]

    def reset(self) -> None:
        """Connect again if the connection is lost; the server resets the device itself."""
        if self._channel is None and not self._closed:
            config = self.config
            self._channel = self._connect()
            if self.config.digest != config.digest:
                raise DeviceError(f"{self.address}: the server has another core since; start again")
            if self._arena_bytes is not None:
                self._ask(Kind.ALLOCATE, {"bytes": self._arena_bytes})

    def close(self) -> None:
        self._closed = True
        self._drop()

    def _connect(self) -> Channel:
        channel = Channel(self._dial(), Limits(frame_seconds=self._seconds))
        try:
            welcome = enter(channel, self._secret, self._seconds, self.address)
            self._learn(welcome)
        except BaseException as error:
            channel.close()
            if isinstance(error, LinkError) and self._tls is None:
                hint = f"; a server with TLS needs its certificate in {CA_VARIABLE}"
                raise DeviceError(f"{_at(self.address, error)}{hint}") from None
            if isinstance(error, LinkError | ProtocolError):
                raise _at(self.address, error) from None
            raise
        channel.limits = self._limits
        return channel

    def _dial(self) -> socket.socket:
        try:
            sock = socket.create_connection(self._place, self._seconds)
        except OSError as error:
            reason = error.strerror or "no answer"
            raise DeviceError(
                f"{self.address}: cannot connect: {reason}; is `vitral serve` running there?"
            ) from None
        try:
            if self._tls is None and not is_loopback(sock.getpeername()[0]):
                raise DeviceError(
                    f"{self.address} is another machine: that needs TLS; name the server's"
                    f" certificate in {CA_VARIABLE} or the option ca_file"
                )
            if self._tls is None:
                return sock
            return self._tls.wrap_socket(sock, server_hostname=self._place[0])
        except BaseException as error:
            sock.close()
            if isinstance(error, OSError):
                reason = getattr(error, "verify_message", None) or error.strerror or str(error)
                kind = (
                    "not trusted" if isinstance(error, ssl.SSLCertVerificationError) else "no TLS"
                )
                raise DeviceError(f"{self.address}: {kind}: {reason}") from None
            raise

    def _learn(self, welcome: Mapping[str, Any]) -> None:
        """What the server says about itself."""
        limits = welcome.get("limits")
        if not isinstance(limits, Mapping):
            raise ProtocolError("the server names no limits")
        try:
            self.config = CoreConfig(**welcome["config"])
        except (KeyError, TypeError, ConfigError):
            raise DeviceError(
                f"{self.address}: the server has a core that this Vitral does not know;"
                " use the same Vitral at both ends"
            ) from None
        self._limits = Limits(
            frame_bytes=take_int(limits, "frame_bytes", 1, 1 << 40),
            queue_seconds=take_seconds(limits, "queue_seconds") or 1.0,
            run_seconds=take_seconds(limits, "run_seconds") or 1.0,
        )
        self.name = f"{take_text(welcome, 'device', 100)}@{self.address.removeprefix('tcp://')}"

    def _queue(self) -> float:
        """How long an answer may take that must wait for the device."""
        return self._limits.queue_seconds + _GRACE_SECONDS

    def _ask(
        self,
        kind: Kind,
        metadata: Mapping[str, Any],
        arrays: Sequence[Part] = (),
        *,
        expect: tuple[Kind, ...] = (Kind.OK,),
        seconds: float | None = None,
    ) -> Frame:
        """Send a request and take its answer; the connection is dropped when that goes wrong."""
        channel = self._need_channel()
        try:
            channel.send(kind, metadata, arrays)
            return self._answer(channel, expect, seconds or self._queue())
        except (LinkError, ProtocolError) as error:
            self._drop()
            raise _at(self.address, error) from None
        except BaseException as error:  # half an exchange is none
            if not isinstance(error, DeviceError):
                self._drop()
            raise

    def _answer(self, channel: Channel, expect: tuple[Kind, ...], seconds: float) -> Frame:
        frame = channel.receive(seconds)
        if frame is None:
            raise LinkError("the server closed the connection")
        if frame.kind is Kind.ERROR:
            raise error_from(frame.metadata, self.address)
        if frame.kind not in expect:
            raise ProtocolError(f"expected {expect[0].name}, got {frame.kind.name}")
        return frame

    def _upload(self, parts: Sequence[memoryview]) -> None:
        channel = self._need_channel()
        step = self._limits.frame_bytes
        pieces = [part[at : at + step] for part in parts for at in range(0, part.nbytes, step)]
        try:
            for piece in pieces:
                channel.send(Kind.DATA, {}, [piece])
            self._answer(channel, (Kind.OK,), self._queue())
        except (LinkError, ProtocolError) as error:
            self._drop()
            raise _at(self.address, error) from None

    def _split(self, answer: Frame, sizes: Sequence[int]) -> list[Array]:
        if len(answer.body) != sum(sizes):
            self._drop()
            raise DeviceError(
                f"{self.address}: asked for {sum(sizes)} bytes, {len(answer.body)} came"
            )
        data = np.frombuffer(answer.body, np.uint8)
        ends = np.cumsum([0, *sizes])
        return [data[start:end] for start, end in pairwise(ends.tolist())]

    def _need_channel(self) -> Channel:
        if self._channel is None:
            what = "the device is closed" if self._closed else "the connection is lost; reset it"
            raise DeviceError(f"{self.address}: {what}")
        return self._channel

    def _drop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _at(address: str, error: DeviceError) -> DeviceError:
    text = str(error)
    return DeviceError(text if text.startswith(address) else f"{address}: {text}")
