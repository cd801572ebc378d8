"""What the memory is known to hold before a program starts."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from vitral.verify.intervals import IntervalSet

__all__ = ["Image"]

Bytes = npt.NDArray[np.uint8]


class Image:
    """Bytes by address, and ranges that hold data of unknown value, such as inputs.

    Parameters
    ----------
    chunks : mapping from byte address to uint8 array
        Known contents; they do not overlap.
    filled : iterable of (address, size)
        Ranges that hold something, known or not.
    """

    def __init__(self, chunks: Mapping[int, Bytes], filled: Iterable[tuple[int, int]] = ()) -> None:
        self._addresses = sorted(chunks)
        self._chunks = [chunks[address] for address in self._addresses]
        self.known = IntervalSet.of((a, chunks[a].size) for a in self._addresses)
        self.filled = self.known | IntervalSet.of(filled)

    def read(self, address: int, size: int) -> Bytes | None:
        """The bytes, or None when not all of them are known."""
        if not self.known.covers([address], [address + size])[0]:
            return None
        out = np.empty(size, np.uint8)
        place = max(0, bisect_right(self._addresses, address) - 1)
        for start, chunk in zip(self._addresses[place:], self._chunks[place:], strict=True):
            if start >= address + size:
                break
            low, high = max(address, start), min(address + size, start + chunk.size)
            out[low - address : high - address] = chunk[low - start : high - start]
        return out
