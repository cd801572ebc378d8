"""Which requantisation parameters are in the parameter memory, and the LOADs that bring them in."""

from vitral.isa import Load, Memory

__all__ = ["ParamRing"]


class ParamRing:
    """The parameter memory as two halves that layers, or parts of a large layer, take in turn.

    LOADs and STOREs of the store queue are in order, so nothing has to wait.

    Parameters
    ----------
    depth : int
        Entries of the memory; an entry belongs to one output channel block.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._halves: list[tuple[int, int] | None] = [None, None]
        self._next = 0

    def _group(self, blocks: int) -> int:
        """Entries that are loaded at once for a layer of that many blocks."""
        return blocks if blocks <= self._depth else self._depth // 2

    def holds(self, first: int, count: int, blocks: int) -> bool:
        """Whether entries of consecutive blocks are ever on chip together, in order."""
        size = self._group(blocks)
        return first // size == (first + count - 1) // size

    def request(self, layer: int, block: int, blocks: int, dram: int) -> tuple[int, Load | None]:
        """Position of a block's entry, and the LOAD that must come first, if any.

        `dram` is the DRAM element of the layer's first entry.
        """
        size = self._group(blocks)
        key = (layer, block // size)
        within = block % size
        if key in self._halves:
            return self._halves.index(key) * (self._depth // 2) + within, None
        if size > self._depth // 2:
            half = 0
            self._halves = [key, None]
            self._next = 0
        else:
            half = self._next
            self._halves[half] = key
            self._next = 1 - half
        base, first = half * (self._depth // 2), block - within
        count = min(size, blocks - first)
        insn = Load(
            memory=Memory.PARAM,
            sram_base=base,
            dram_base=dram + first,
            y_size=1,
            x_size=count,
            x_stride=count,
        )
        return base + within, insn
