"""The one DRAM region of a compiled network: constants, tensors, and scratch that is used again."""

import numpy as np
import numpy.typing as npt

from vitral.errors import CompileError

__all__ = ["ALIGN", "Arena"]

ALIGN = 4096
"""Every block starts at a multiple of this many bytes: a page, and a multiple of any element."""

Bytes = npt.NDArray[np.uint8]


class Arena:
    """Hands out blocks of one DRAM region, as byte offsets from its start.

    Three kinds of blocks: constants (`place`), which are part of `image`; blocks of their own
    (`reserve`); and blocks that are `borrow`-ed and given back with `release`, so that later
    tensors, also those of later segments, lie where earlier ones are dead.

    Attributes
    ----------
    image : dict from byte offset to uint8 array
        Initial contents.
    """

    def __init__(self) -> None:
        self.image: dict[int, Bytes] = {}
        self._end = 0
        self._free: list[tuple[int, int]] = []  # (offset, bytes), by offset, never adjacent
        self._lent: dict[int, int] = {}

    @property
    def size(self) -> int:
        """Bytes of the region so far, a multiple of `ALIGN`."""
        return self._end

    def reserve(self, size: int) -> int:
        """A block of `size` bytes that nothing else ever uses; its offset."""
        offset = self._end
        self._end += _round_up(size)
        return offset

    def place(self, data: npt.NDArray[np.generic]) -> int:
        """A block that holds the bytes of `data` from the start; its offset."""
        raw = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        offset = self.reserve(raw.size)
        self.image[offset] = raw
        return offset

    def borrow(self, size: int) -> int:
        """A block of `size` bytes until `release`; the smallest free one that is large enough."""
        need = _round_up(size)
        fitting = [(room, offset) for offset, room in self._free if room >= need]
        if not fitting:
            offset = self.reserve(need)
        else:
            room, offset = min(fitting)
            self._free.remove((offset, room))
            if room > need:
                self._free.append((offset + need, room - need))
                self._free.sort()
        self._lent[offset] = need
        return offset

    def release(self, offset: int) -> None:
        """Give a borrowed block back.

        Raises
        ------
        CompileError
            When no block was borrowed at that offset.
        """
        if offset not in self._lent:
            raise CompileError(f"arena: no block is borrowed at {offset:#x}; borrow it first")
        self._free = _merge([*self._free, (offset, self._lent.pop(offset))])


def _round_up(size: int) -> int:
    return max(1, -(-size // ALIGN)) * ALIGN


def _merge(blocks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same blocks by offset, abutting ones joined."""
    merged: list[tuple[int, int]] = []
    for offset, size in sorted(blocks):
        if merged and sum(merged[-1]) == offset:
            merged[-1] = (merged[-1][0], merged[-1][1] + size)
        else:
            merged.append((offset, size))
    return merged
