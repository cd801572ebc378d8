"""Moves on-chip contents between `OnChip` and the memory arrays of the verilated model.

How elements lie in the arrays is documented where the memories are built: `hw.core.scratchpad`
(`memory`, or `lane<i>` with element e in lane e % lanes, row e // lanes) and `hw.core.acc`
(`bank_<i>`, chosen by the top address bits). An entry's first byte is its lowest eight bits.
"""

import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError
from vitral.program import OnChip

__all__ = ["load_arrays", "store_arrays"]

Bytes = npt.NDArray[np.uint8]
MEMORIES = ("uop", "inp", "wgt", "acc", "param")
_NAME = r"\.{}(_\w+)?\.(?:memory|(lane|bank_)(\d+))$"


def store_arrays(arrays: Mapping[str, Bytes], onchip: OnChip) -> None:
    """Fill the model's memories; `arrays` are its memories by hierarchical name.

    Raises
    ------
    DeviceError
        When the model has not the memories that `onchip` describes.
    """
    for name in MEMORIES:
        elements = _elements(getattr(onchip, name))
        for part, window in _parts(arrays, name, elements):
            part[:] = window


def load_arrays(arrays: Mapping[str, Bytes], onchip: OnChip) -> None:
    """Copy the model's memories into `onchip`, in place; DeviceError as in `store_arrays`."""
    for name in MEMORIES:
        elements = _elements(getattr(onchip, name))
        for part, window in _parts(arrays, name, elements):
            window[:] = part


def _elements(array: npt.NDArray[np.generic]) -> Bytes:
    """The array's own bytes, uint8 (depth, element bytes)."""
    return array.reshape(array.shape[0], -1).view(np.uint8)


def _parts(arrays: Mapping[str, Bytes], name: str, elements: Bytes) -> list[tuple[Bytes, Bytes]]:
    """Pairs of a model array and the elements that it holds, both (rows, element bytes)."""
    pattern = re.compile(_NAME.format(name))
    found: dict[int, Bytes] = {}
    kind = ""
    for full, array in arrays.items():
        match = pattern.search(full)
        if match:
            kind = match[2] or ""
            found[int(match[3] or 0)] = array
    count = len(found)
    if not count or sum(array.size for array in found.values()) != elements.size:
        held = {full: array.shape for full, array in arrays.items() if pattern.search(full)}
        raise DeviceError(
            f"on-chip {name} holds {elements.shape[0]} elements of {elements.shape[1]} bytes,"
            f" the model has {held or 'no such memory'}; its instance names changed"
        )
    rows = elements.shape[0] // count
    if kind == "lane":
        return [(found[lane], elements[lane::count]) for lane in range(count)]
    parts = [(found[bank], elements[bank * rows : (bank + 1) * rows]) for bank in range(count)]
    # An element may lie in several rows of its memory.
    return [(array, window.reshape(array.shape)) for array, window in parts]
