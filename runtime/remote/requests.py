"""What the server does for a client that it knows: one method for each kind of request."""

from collections.abc import Callable, Iterator

from vitral.errors import DeviceError
from vitral.runtime.remote.auth import make_nonce, same
from vitral.runtime.remote.channel import Channel, LinkError
from vitral.runtime.remote.frames import Frame, Kind, ProtocolError
from vitral.runtime.remote.images import Image, ImageStore, image_proof
from vitral.runtime.remote.records import (
    outcome_record,
    relocated_launch,
    take_int,
    take_marks,
    take_pairs,
    take_seconds,
    take_text,
)
from vitral.runtime.remote.shared_device import Arena, SharedDevice

__all__ = ["Requests"]


class Requests:
    """Answers the requests of one client, each over the channel it came from.

    Parameters
    ----------
    channel : Channel
        To the client.
    device : SharedDevice
        Where its arena lies.
    store : ImageStore
        Where images are kept.
    """

    def __init__(self, channel: Channel, device: SharedDevice, store: ImageStore) -> None:
        self._channel = channel
        self._device = device
        self._store = store
        self._arena: Arena | None = None
        self._image: Image | None = None
        self._answers: dict[Kind, Callable[[Frame], None]] = {
            Kind.ALLOCATE: self._allocate,
            Kind.LOAD: self._load,
            Kind.WRITE: self._write,
            Kind.READ: self._read,
            Kind.RUN: self._run,
        }

    def answer(self, request: Frame) -> None:
        """Do what a frame asks for and send the answer.

        Raises
        ------
        DeviceError
            When it cannot be done; the client may go on with another request.
        ProtocolError, LinkError
            When the connection cannot go on.
        """
        if request.kind not in self._answers:
            raise ProtocolError(f"a client cannot ask with {request.kind.name}")
        self._answers[request.kind](request)

    def close(self) -> None:
        """Give back what the client had."""
        if self._arena is not None:
            self._device.close_arena(self._arena)
            self._arena = None
        self._hold(None)

    def _allocate(self, request: Frame) -> None:
        if self._arena is not None:
            raise DeviceError("memory is allocated already; open a second connection")
        nbytes = take_int(request.metadata, "bytes", 0, 1 << 48)
        self._arena = self._device.open_arena(nbytes, self._channel.is_open)
        self._channel.send(Kind.OK)

    def _load(self, request: Frame) -> None:
        """Make an image the arena's: at hand, proved to be the client's, or sent by it."""
        arena = self._need_arena()
        digest = take_text(request.metadata, "digest", 64)
        chunks = take_pairs(request.metadata, "chunks", arena.nbytes)
        image = self._image
        if image is None or image.digest != digest:
            image = self._prove(digest) or self._receive(digest, chunks)
            self._hold(image)
        if image.chunks != chunks:
            raise ProtocolError("the chunks are not those of the image's digest")
        arena.image, arena.epoch, arena.written = image, -1, False
        self._channel.send(Kind.OK)

    def _prove(self, digest: str) -> Image | None:
        """An image of the store, once the client has shown that it has the bytes, too."""
        image = self._store.use(digest)
        if image is None:
            return None
        try:
            nonce = make_nonce()
            self._channel.send(Kind.CHALLENGE, {"nonce": nonce.hex()})
            answer = self._next(Kind.PROOF)
            if not same(image_proof(nonce, [image.data]), take_text(answer.metadata, "mac", 64)):
                raise DeviceError("the proof that the client has the module's image is wrong")
        except BaseException:
            self._store.release(image)
            raise
        return image

    def _receive(self, digest: str, chunks: tuple[tuple[int, int], ...]) -> Image:
        nbytes = sum(size for _, size in chunks)
        with self._store.room(nbytes):
            self._channel.send(Kind.SEND)
            data = bytearray()
            for piece in self._pieces(nbytes):
                data += piece
            image = Image(digest, chunks, data)
            if image.true_digest() != digest:
                raise DeviceError("the image that was sent has another digest; send it again")
            return self._store.add(image)

    def _pieces(self, nbytes: int) -> Iterator[bytes | bytearray | memoryview]:
        while nbytes:
            body = self._next(Kind.DATA).body
            if not 0 < len(body) <= nbytes:
                raise ProtocolError(f"{len(body)} bytes of an image of which {nbytes} are left")
            nbytes -= len(body)
            yield body

    def _next(self, kind: Kind) -> Frame:
        frame = self._channel.receive(self._channel.limits.frame_seconds)
        if frame is None:
            raise LinkError("the client has gone")
        if frame.kind is not kind:
            raise ProtocolError(f"expected {kind.name}, got {frame.kind.name}")
        return frame

    def _hold(self, image: Image | None) -> None:
        if self._image is not None:
            self._store.release(self._image)
        self._image = image

    def _write(self, request: Frame) -> None:
        arena = self._need_arena()
        body = memoryview(request.body)
        offset = take_int(request.metadata, "offset", 0, arena.nbytes - len(body))
        self._device.write(arena, offset, body, self._channel.is_open)
        self._channel.send(Kind.OK)

    def _read(self, request: Frame) -> None:
        arena = self._need_arena()
        ranges = self._answerable(take_pairs(request.metadata, "outputs", arena.nbytes))
        arrays = self._device.read(arena, ranges, self._channel.is_open)
        self._channel.send(Kind.RESULT, {}, [array.data for array in arrays])

    def _run(self, request: Frame) -> None:
        arena, metadata = self._need_arena(), request.metadata
        address = self._device.address(arena)
        outcome, arrays = self._device.run(
            arena,
            relocated_launch(metadata.get("launch"), address, arena.nbytes),
            _inputs(request, take_pairs(metadata, "inputs", arena.nbytes)),
            self._answerable(take_pairs(metadata, "outputs", arena.nbytes)),
            timeout=take_seconds(metadata, "timeout"),
            marks=take_marks(metadata),
            alive=self._channel.is_open,
        )
        record = {"outcome": outcome_record(outcome)}
        self._channel.send(Kind.RESULT, record, [array.data for array in arrays])

    def _answerable(self, ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        size, limit = sum(size for _, size in ranges), self._channel.limits.frame_bytes
        if size > limit:
            raise DeviceError(f"asked for {size} bytes at once, at most {limit} go; read in parts")
        return ranges

    def _need_arena(self) -> Arena:
        if self._arena is None:
            raise DeviceError("no memory; allocate some first")
        return self._arena


def _inputs(request: Frame, ranges: tuple[tuple[int, int], ...]) -> list[tuple[int, memoryview]]:
    body = memoryview(request.body)
    if sum(size for _, size in ranges) != len(body):
        raise ProtocolError(f"the inputs' sizes do not add up to the {len(body)} bytes sent")
    parts, start = [], 0
    for offset, size in ranges:
        parts.append((offset, body[start : start + size]))
        start += size
    return parts
