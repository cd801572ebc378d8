"""LOADs of input: a channel block with its padding, or several blocks in one."""

from vitral.compiler.codegen.tensors import TensorView
from vitral.compiler.schedule.steps import InputChunk
from vitral.errors import CompileError
from vitral.isa import Load, Memory

__all__ = ["block_load", "merged_load"]

_FIELD_LIMIT = 65535  # sizes and strides have 16 bits


def block_load(chunk: InputChunk, view: TensorView, block: int, name: str, pad_value: int) -> Load:
    """The LOAD of one channel block, with its padding."""
    rows, cols = chunk.rows, chunk.cols
    stride = chunk.step * view.width if rows.real > 1 else cols.real
    if stride > _FIELD_LIMIT:
        raise CompileError(
            f"{name}: rows of {view.width} elements, a LOAD steps over at most"
            f" {_FIELD_LIMIT}; split the input along its width"
        )
    padded = rows.loaded != rows.real or cols.loaded != cols.real
    return Load(
        memory=Memory.INP,
        sram_base=chunk.elements(block, 1).start,
        dram_base=view.element(chunk.batch, chunk.ins[0] + block, rows.first, cols.first),
        y_size=rows.real,
        x_size=cols.real,
        x_stride=stride,
        y_pad_0=rows.before,
        y_pad_1=rows.after,
        x_pad_0=cols.before,
        x_pad_1=cols.after,
        pad_value=padded and pad_value != 0,
    )


def merged_load(chunk: InputChunk, view: TensorView, first: int, count: int) -> Load | None:
    """One LOAD of several channel blocks, when each is one run in DRAM and they abut on chip."""
    rows, cols = chunk.rows, chunk.cols
    size, stride = rows.real * view.width, view.height * view.width
    whole_rows = cols.loaded == cols.real == view.width and (chunk.step == 1 or rows.real == 1)
    if count == 1 or not whole_rows or chunk.plane != size or stride > _FIELD_LIMIT:
        return None
    if rows.loaded != rows.real:
        return None
    return Load(
        memory=Memory.INP,
        sram_base=chunk.elements(first, count).start,
        dram_base=view.element(chunk.batch, chunk.ins[0] + first, rows.first, cols.first),
        y_size=count,
        x_size=size,
        x_stride=stride,
    )
