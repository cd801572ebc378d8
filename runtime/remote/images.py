"""Images of modules: known by digest, kept while there is room, usable by those who have them."""

import hashlib
import hmac
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError

__all__ = ["Image", "ImageStore", "image_digest", "image_proof"]

Part = bytes | bytearray | memoryview
Chunks = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Image:
    """What an arena holds before its first run.

    Parameters
    ----------
    digest : str
        SHA-256 (hex) as `image_digest` makes it.
    chunks : tuple of (offset, bytes)
        Where the parts of `data` go in the arena, in order.
    data : bytes
        All parts one after another.
    """

    digest: str
    chunks: Chunks
    data: bytes | bytearray

    def true_digest(self) -> str:
        """What `digest` must be."""
        return image_digest(self.chunks, [self.data])

    def items(self) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
        """Offset and bytes of each part, not copied."""
        start = 0
        for offset, size in self.chunks:
            yield offset, np.frombuffer(self.data, np.uint8, size, start)
            start += size


def image_digest(chunks: Iterable[tuple[int, int]], parts: Iterable[Part]) -> str:
    """SHA-256 (hex) of the table of chunks, two 64-bit numbers each, and of all data."""
    digest = hashlib.sha256(np.array([*chunks], "<u8").tobytes())
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def image_proof(nonce: bytes, parts: Iterable[Part]) -> str:
    """What only someone who has an image's data can answer to a nonce."""
    mac = hmac.new(nonce, digestmod=hashlib.sha256)
    for part in parts:
        mac.update(part)
    return mac.hexdigest()


class ImageStore:
    """Images by digest. Those that nobody uses go, the longest unused first, when room is needed.

    Parameters
    ----------
    nbytes : int
        Room for all images, those on their way included.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._images: OrderedDict[str, Image] = OrderedDict()
        self._users: dict[str, int] = {}
        self._coming = 0
        self._lock = threading.Lock()

    def __contains__(self, digest: str) -> bool:
        with self._lock:
            return digest in self._images

    def use(self, digest: str) -> Image | None:
        """The image, kept until `release`, or None."""
        with self._lock:
            if digest not in self._images:
                return None
            self._images.move_to_end(digest)
            self._users[digest] = self._users.get(digest, 0) + 1
            return self._images[digest]

    def release(self, image: Image) -> None:
        with self._lock:
            self._users[image.digest] -= 1

    @contextmanager
    def room(self, nbytes: int) -> Iterator[None]:
        """Keep room for an image on its way; DeviceError when those in use leave none."""
        with self._lock:
            self._make_room(nbytes)
            self._coming += nbytes
        try:
            yield
        finally:
            with self._lock:
                self._coming -= nbytes

    def add(self, image: Image) -> Image:
        """Take an image into the room kept for it, in use; the one that is there if there is."""
        with self._lock:
            kept = self._images.setdefault(image.digest, image)
            self._images.move_to_end(image.digest)
            self._users[image.digest] = self._users.get(image.digest, 0) + 1
            return kept

    def _make_room(self, nbytes: int) -> None:
        used = self._coming + sum(
            len(image.data) for image in self._images.values() if self._users.get(image.digest)
        )
        if used + nbytes > self.nbytes:
            raise DeviceError(
                f"the module's image has {nbytes} bytes, the server keeps {self.nbytes} of which"
                f" {used} are in use; wait for other clients, or give it more"
            )
        total = self._coming + sum(len(image.data) for image in self._images.values())
        for digest in [name for name in self._images if not self._users.get(name)]:
            if total + nbytes <= self.nbytes:
                break
            total -= len(self._images.pop(digest).data)
            self._users.pop(digest, None)
