"""Steps: one chunk of the reduction of one output channel block of a tile, as data.

`unroll` makes them of a tiled convolution; codegen turns them into LOADs, GEMMs and STOREs.
"""

from dataclasses import dataclass

from vitral.compiler.schedule.geometry import Span

__all__ = ["Chunk", "InputChunk", "Run", "Step", "Tile", "WeightChunk"]

Run = tuple[int, int]
"""First and number of consecutive positions."""


@dataclass(frozen=True)
class Tile:
    """Output positions: element `batch` along N, runs of rows and columns."""

    batch: int
    rows: Run
    cols: Run

    @property
    def positions(self) -> int:
        return self.rows[1] * self.cols[1]


@dataclass(frozen=True)
class Chunk:
    """A part of a task's reduction: input channel blocks and kernel rows; `first` weight element
    among those of an output channel block."""

    ins: Run
    taps: Run
    first: int


@dataclass(frozen=True)
class InputChunk:
    """Input of a tile and chunk, and where it lies in INP.

    Channel block n of the chunk starts at element `base` + n · `plane`; its rows are `pitch`
    elements apart and `step` rows apart in the tensor.
    """

    batch: int
    ins: Run
    rows: Span
    cols: Span
    step: int
    base: int
    plane: int

    @property
    def pitch(self) -> int:
        return self.cols.loaded

    def elements(self, first: int, count: int) -> slice:
        """INP elements of some of the channel blocks."""
        return slice(self.base + first * self.plane, self.base + (first + count) * self.plane)


@dataclass(frozen=True)
class WeightChunk:
    """`count` packed weight elements from `first` of the layer's on, at `base` in WGT."""

    first: int
    count: int
    base: int


@dataclass(frozen=True)
class Step:
    """Sums one chunk of the reduction into one output channel block of a tile.

    `load_input` and `load_weight` tell that the operands are not in place yet. `acc` is the first
    ACC element. With `first`, sums start here; with `store_blocks`, that many output channel
    blocks, ending with this one, are complete. `cold` asks for operands in small pieces, because
    nothing else can run meanwhile.
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
