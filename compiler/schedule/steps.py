"""Steps: one chunk of the reduction of some output channel blocks of a tile, as data.

`unroll` and `unroll_window` make them of tiled layers; codegen turns them into LOADs, products or
windows, and STOREs. They are named tuples: a network has a hundred thousand of them, and these are
made several times as fast as frozen dataclasses.
"""

from typing import NamedTuple

from vitral.compiler.schedule.geometry import Span

__all__ = ["Chunk", "InputChunk", "Run", "Step", "Tile", "WeightChunk"]

Run = tuple[int, int]
"""First and number of consecutive positions."""


class Tile(NamedTuple):
    """Output positions: element `batch` along N, runs of rows and columns."""

    batch: int
    rows: Run
    cols: Run

    @property
    def positions(self) -> int:
        return self.rows[1] * self.cols[1]


class Chunk(NamedTuple):
    """A part of a task's reduction: input channel blocks and kernel rows; `first` weight element
    among those of an output channel block."""

    ins: Run
    taps: Run
    first: int


class InputChunk(NamedTuple):
    """Input of a tile and chunk, and where it lies in INP.

    Channel block n of the chunk starts at element `base` + n · `plane`; its rows are `pitch`
    elements apart and `step` rows apart in the tensor. `source` numbers the layer's sources.
    """

    batch: int
    ins: Run
    rows: Span
    cols: Span
    step: int
    base: int
    plane: int
    source: int = 0

    @property
    def pitch(self) -> int:
        return self.cols.loaded

    @property
    def first(self) -> int:
        """INP element of the first wanted position of the first channel block."""
        return self.base + self.rows.skip * self.pitch + self.cols.skip

    def elements(self, first: int, count: int) -> slice:
        """INP elements of some of the channel blocks."""
        return slice(self.base + first * self.plane, self.base + (first + count) * self.plane)


class WeightChunk(NamedTuple):
    """`count` packed weight elements from `first` of the layer's on, at `base` in WGT."""

    first: int
    count: int
    base: int


class Step(NamedTuple):
    """Sums one chunk of the reduction into output channel blocks of a tile.

    The blocks are `blocks` from `out_block` on; those of a window layer read the input channel
    block of the same number each, one of an addition reads it in `input` and in `other`.

    `load_input` and `load_weight` tell that the operands are not in place yet. `acc` is the first
    ACC element. With `first`, sums start here; with `store_blocks`, that many output channel
    blocks, ending with the last one here, are complete. `cold` asks for operands in small pieces,
    because nothing else can run meanwhile.
    """

    layer: int
    tile: Tile
    chunk: Chunk
    out_block: int
    input: InputChunk
    weight: WeightChunk
    acc: int
    load_input: bool
    load_weight: bool
    first: bool
    store_blocks: int
    cold: bool
    blocks: int = 1
    other: InputChunk | None = None

    @property
    def inputs(self) -> tuple[InputChunk, ...]:
        return (self.input,) if self.other is None else (self.input, self.other)

    @property
    def stored(self) -> Run:
        """The output channel blocks that are complete after this step."""
        return self.out_block + self.blocks - self.store_blocks, self.store_blocks

    @property
    def stored_acc(self) -> int:
        """The first ACC element of those blocks."""
        return self.acc + (self.blocks - self.store_blocks) * self.tile.positions

    @property
    def summed(self) -> slice:
        """The ACC elements of the blocks."""
        return slice(self.acc, self.acc + self.blocks * self.tile.positions)
