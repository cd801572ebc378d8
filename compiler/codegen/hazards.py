"""Who last wrote and read each element of an on-chip memory or tensor, by instruction handle."""

import numpy as np

__all__ = ["Hazards"]

Index = slice | tuple[int | slice, ...]


class Hazards:
    """Last writer and last reader of every element, as handles; -1 before the first.

    Handles rise in program order, so of several readers the last one stands for all: it is in the
    same queue and ends after them.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the memory in elements, or of whatever else is tracked (rows of a tensor).
    """

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        self._writer = np.full(shape, -1, np.int64)
        self._reader = np.full(shape, -1, np.int64)

    def before_read(self, where: Index) -> int:
        """The handle that a read of these elements has to wait for."""
        return _latest(self._writer[where])

    def before_write(self, where: Index) -> int:
        """The handle that a write of these elements has to wait for.

        Writers all share one queue here, so only the readers matter.
        """
        return _latest(self._reader[where])

    def read(self, where: Index, handle: int) -> None:
        self._reader[where] = handle

    def write(self, where: Index, handle: int) -> None:
        self._writer[where] = handle


def _latest(handles: np.ndarray) -> int:
    return int(np.maximum.reduce(handles, axis=None, initial=-1))
