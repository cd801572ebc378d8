"""Concatenations along channels by address: parts that are runs of channel blocks of the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vitral.compiler.schedule.geometry import blocks_of

__all__ = ["Join", "Region", "region_of", "regions_of"]

Shape = tuple[int, int, int, int]


@dataclass(frozen=True)
class Join:
    """A concatenation along the channels: value `result` (N, C, H, W) of values `parts`, each
    with its number of channels. All but the last are whole channel blocks."""

    result: str
    shape: Shape
    parts: tuple[tuple[str, int], ...]

    @property
    def part_shapes(self) -> tuple[tuple[str, Shape], ...]:
        """Each part and its shape."""
        n, _, h, w = self.shape
        return tuple((part, (n, channels, h, w)) for part, channels in self.parts)


@dataclass(frozen=True)
class Region:
    """Where a value lies: from channel block `first` on in the value `root`."""

    root: str
    first: int = 0


def region_of(regions: Mapping[str, Region], value: str) -> Region:
    """A value that is no part of another one is its own root."""
    return regions.get(value) or Region(value)


def regions_of(joins: Sequence[Join], block: int) -> dict[str, Region] | None:
    """The place of every value that `joins`, in the order of execution, puts into another one.

    A result may be part of a later one. Its parts may also be a run of the parts of a later one, as
    where each layer of a network reads all values before it. None when a value would have to
    lie in two places.
    """
    regions: dict[str, Region] = {}
    for join in reversed(joins):
        starts = _starts(join, block)
        placed = [regions.get(part) for part, _ in join.parts]
        if join.result not in regions and placed[0] is not None:
            if None in placed:
                return None
            regions[join.result] = placed[0]
        base = region_of(regions, join.result)
        for (part, _), start in zip(join.parts, starts, strict=True):
            wanted = Region(base.root, base.first + start)
            if part == base.root or regions.setdefault(part, wanted) != wanted:
                return None
        if len(set(dict(join.parts))) < len(join.parts):
            return None
    return regions


def _starts(join: Join, block: int) -> list[int]:
    """First channel block of each part."""
    starts = [0]
    for _, channels in join.parts[:-1]:
        starts.append(starts[-1] + blocks_of(channels, block))
    return starts
