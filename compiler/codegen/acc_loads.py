"""LOADs into ACC of what the ALU adds to sums or compares with them."""

from collections.abc import Iterator
from dataclasses import dataclass

from vitral.compiler.codegen.changed import changed
from vitral.compiler.codegen.input_loads import block_load, merged_load
from vitral.compiler.codegen.tensors import TensorView
from vitral.compiler.schedule.steps import InputChunk, Run, Tile
from vitral.isa import Load, Memory

__all__ = ["AccLoad", "LoadBias", "LoadChunk", "LoadTile", "acc_loads"]

_FIELD_LIMIT = 65535  # sizes and strides have 16 bits


@dataclass(frozen=True)
class LoadBias:
    """Biases of output channel blocks, one element each, to ACC element `acc` on."""

    blocks: Run
    acc: int


@dataclass(frozen=True)
class LoadTile:
    """A tile of channel blocks of the layer's source of that number, to ACC element `acc` on."""

    source: int
    tile: Tile
    blocks: Run
    acc: int


@dataclass(frozen=True)
class LoadChunk:
    """The input of a step as INP would have it, `acc` elements further on in ACC."""

    chunk: InputChunk
    blocks: int
    acc: int


AccLoad = LoadBias | LoadTile | LoadChunk

Read = tuple[int, slice, slice]
"""Sample, channel blocks and rows of a tensor."""


def acc_loads(
    load: AccLoad, sources: tuple[TensorView, ...], biases: int, name: str
) -> Iterator[tuple[Load, TensorView | None, Read]]:
    """The instructions, each with the tensor that it reads, if any, and what of it.

    `biases` is the ACC element in DRAM of the layer's first bias.
    """
    match load:
        case LoadBias(blocks=(first, count), acc=acc):
            insn = Load(
                memory=Memory.ACC,
                sram_base=acc,
                dram_base=biases + first,
                y_size=1,
                x_size=count,
                x_stride=count,
            )
            yield insn, None, (0, slice(0), slice(0))
        case LoadTile():
            view = sources[load.source]
            for insn, blocks in _tile_loads(load, view):
                where = (load.tile.batch, view.channels(*blocks), view.rows(*load.tile.rows))
                yield insn, view, where
        case LoadChunk():
            yield from _chunk_loads(load, sources[load.chunk.source], name)


def _tile_loads(load: LoadTile, view: TensorView) -> Iterator[tuple[Load, Run]]:
    """One for all blocks when the tile is a whole plane, else one each."""
    tile, (first, count) = load.tile, load.blocks
    plane = tile.positions
    if count > 1 and plane == view.height * view.width and plane <= _FIELD_LIMIT:
        yield _tile_load(load, view, first, load.acc, (count, plane, plane)), load.blocks
        return
    shape = (tile.rows[1], tile.cols[1], view.width)
    for n in range(count):
        insn = _tile_load(load, view, first + n, load.acc + n * plane, shape)
        yield insn, (first + n, 1)


def _tile_load(
    load: LoadTile, view: TensorView, block: int, acc: int, shape: tuple[int, int, int]
) -> Load:
    tile = load.tile
    return Load(
        memory=Memory.ACC_8BIT,
        sram_base=acc,
        dram_base=view.element(tile.batch, block, tile.rows[0], tile.cols[0]),
        y_size=shape[0],
        x_size=shape[1],
        x_stride=shape[2],
    )


def _chunk_loads(
    load: LoadChunk, view: TensorView, name: str
) -> Iterator[tuple[Load, TensorView, Read]]:
    chunk = load.chunk._replace(base=load.chunk.base + load.acc)
    rows = view.rows(chunk.rows.first, chunk.rows.real, chunk.step)
    merged = merged_load(chunk, view, 0, load.blocks)
    pieces = (
        [(0, load.blocks, merged)]
        if merged is not None
        else [(n, 1, block_load(chunk, view, n, name, 0)) for n in range(load.blocks)]
    )
    for first, count, insn in pieces:
        where = (chunk.batch, view.channels(chunk.ins[0] + first, count), rows)
        yield changed(insn, memory=Memory.ACC_8BIT), view, where
