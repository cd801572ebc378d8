"""A processor's memory with a write-back cache in front of it, modelled line by line."""

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError

__all__ = ["CachedMemory"]

Bytes = npt.NDArray[np.uint8]
EVICTED_SHARE = 0.1
"""Part of the lines that fall out of the cache at each `evict`."""


class CachedMemory:
    """One region of memory, as the processor sees it (`data`) and as devices see it (`dram`).

    A program writes `data` as it likes: a line of which it changed a byte is dirty. Nothing else
    passes between the two views than:

    * `flush`: dirty lines are written to memory and stay in the cache, clean;
    * `invalidate`: lines are forgotten, dirty ones with what was written to them, and read again;
    * `evict`, at moments that no program chooses: lines drawn by chance fall out of the cache,
      dirty ones are written to memory whole, over whatever a device had put there.

    A line that was not evicted or invalidated keeps its old contents whatever devices write: also
    one that was invalidated before the device wrote, since processors fetch ahead.

    Parameters
    ----------
    dram : numpy.ndarray
        uint8 (n,), a whole number of lines; shared with the devices.
    line_bytes : int
        Bytes of a cache line, a power of two.
    seed : int or None
        Draws evictions; None: the cache is so large that there are none.
    view : numpy.ndarray or None
        uint8 (n,) to use as `data`: a mapped file, say; a new array when None.

    Attributes
    ----------
    flushes, invalidates : list of (int, int)
        Offset and bytes of the calls so far.
    """

    def __init__(
        self,
        dram: Bytes,
        line_bytes: int = 32,
        *,
        seed: int | None = None,
        view: Bytes | None = None,
    ) -> None:
        if line_bytes < 1 or line_bytes & (line_bytes - 1) or dram.size % line_bytes:
            raise DeviceError(
                f"a region of {dram.size} bytes has no whole number of lines of {line_bytes} bytes"
            )
        self.dram = dram
        self.line_bytes = line_bytes
        self.data: Bytes = np.empty_like(dram) if view is None else view
        self.data[:] = dram
        self.flushes: list[tuple[int, int]] = []
        self.invalidates: list[tuple[int, int]] = []
        self._clean: Bytes = dram.copy()
        self._random = None if seed is None else np.random.default_rng(seed)

    def flush(self, offset: int, nbytes: int) -> None:
        self.flushes.append((offset, nbytes))
        self._write_back(self._lines(offset, nbytes))

    def invalidate(self, offset: int, nbytes: int) -> None:
        self.invalidates.append((offset, nbytes))
        self._fetch(self._lines(offset, nbytes))

    def evict(self) -> None:
        """Let some lines fall out; what the processor reads there next comes from memory."""
        if self._random is None:
            return
        count = self.dram.size // self.line_bytes
        lines = np.flatnonzero(self._random.random(count) < EVICTED_SHARE)
        self._write_back(lines)
        self._fetch(lines)

    @property
    def dirty_lines(self) -> int:
        """Lines that the processor wrote and that memory does not have."""
        return int(self._is_dirty(np.arange(self.dram.size // self.line_bytes)).sum())

    def _lines(self, offset: int, nbytes: int) -> npt.NDArray[np.intp]:
        if offset < 0 or nbytes < 0 or offset + nbytes > self.dram.size:
            raise DeviceError(
                f"cache operation on {nbytes} bytes at {offset} of {self.dram.size} bytes"
            )
        end = -(-(offset + nbytes) // self.line_bytes)
        return np.arange(offset // self.line_bytes, end)

    def _is_dirty(self, lines: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        return (self._rows(self.data)[lines] != self._rows(self._clean)[lines]).any(axis=1)

    def _write_back(self, lines: npt.NDArray[np.intp]) -> None:
        dirty = lines[self._is_dirty(lines)]
        self._rows(self.dram)[dirty] = self._rows(self.data)[dirty]
        self._rows(self._clean)[dirty] = self._rows(self.data)[dirty]

    def _fetch(self, lines: npt.NDArray[np.intp]) -> None:
        self._rows(self.data)[lines] = self._rows(self.dram)[lines]
        self._rows(self._clean)[lines] = self._rows(self.dram)[lines]

    def _rows(self, array: Bytes) -> Bytes:
        return array.reshape(-1, self.line_bytes)
