"""Emits the instructions of steps, each with the waits that its on-chip and DRAM ranges need."""

from dataclasses import dataclass

from vitral.compiler.codegen.gemm import GemmCall
from vitral.compiler.codegen.hazards import Hazards
from vitral.compiler.codegen.params import ParamRing
from vitral.compiler.codegen.tensors import TensorView
from vitral.compiler.codegen.tokens import TokenStream
from vitral.compiler.schedule.steps import InputChunk, Step
from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.isa import (
    Advance,
    Config,
    ConfigRegister,
    Load,
    Memory,
    Rounding,
    Stage,
    Store,
)

__all__ = ["Emitter", "Operands"]

_REGISTERS_PER_STAGE = 128
_FIELD_LIMIT = 65535  # sizes and strides have 16 bits


@dataclass(frozen=True)
class Operands:
    """What the steps of a layer read and write: element positions in DRAM and constants."""

    name: str
    source: TensorView
    result: TensorView
    weights: int
    params: int
    blocks: int
    pad_value: int
    rounding: Rounding


class Emitter:
    """Appends instructions to a token stream, keeping track of who uses what.

    On-chip memories are tracked by element, tensors by row. A STORE that overwrites a dead tensor
    needs no wait for the LOADs of that tensor: its own GEMM comes, in the compute queue, after
    those that waited for these LOADs.
    """

    def __init__(self, config: CoreConfig) -> None:
        layout = config.layout
        self.stream = TokenStream(config.token_capacity)
        self._inp = Hazards(layout.inp_depth)
        self._wgt = Hazards(layout.wgt_depth)
        self._acc = Hazards(layout.acc_depth)
        self._tensors: dict[str, Hazards] = {}
        self._params = ParamRing(layout.param_depth)
        self._inp_pad = 0

    def load_operands(self, step: Step, operands: Operands) -> None:
        """The LOADs of a step's input and weights; by channel block when it is a cold start."""
        blocks = step.chunk.ins[1]
        pieces = [(n, 1) for n in range(blocks)] if step.cold else [(0, blocks)]
        for first, count in pieces:
            if step.load_weight:
                self._load_weight(step, operands, first, count)
            if step.load_input:
                self._load_input(step.input, operands, first, count)

    def _load_weight(self, step: Step, operands: Operands, first: int, count: int) -> None:
        per_block = step.weight.count // step.chunk.ins[1]
        start, size = first * per_block, count * per_block
        base = step.weight.base + start
        insn = Load(
            memory=Memory.WGT,
            sram_base=base,
            dram_base=operands.weights + step.weight.first + start,
            y_size=1,
            x_size=size,
            x_stride=size,
        )
        where = slice(base, base + size)
        self._wgt.write(where, self.stream.append(insn, [self._wgt.before_write(where)]))

    def _load_input(self, chunk: InputChunk, operands: Operands, first: int, count: int) -> None:
        if chunk.rows.loaded != chunk.rows.real or chunk.cols.loaded != chunk.cols.real:
            self._set_pad(operands.pad_value)
        rows = operands.source.rows(chunk.rows.first, chunk.rows.real, chunk.step)
        merged = _merged_load(chunk, operands.source, first, count)
        for block, blocks, insn in (
            [(first, count, merged)]
            if merged is not None
            else [(n, 1, _block_load(chunk, operands, n)) for n in range(first, first + count)]
        ):
            where = chunk.elements(block, blocks)
            waits = [self._inp.before_write(where)]
            tensor = self._tensors.get(operands.source.tensor.name)
            if tensor is not None:
                low = chunk.ins[0] + block
                waits.append(tensor.before_read((chunk.batch, slice(low, low + blocks), rows)))
            self._inp.write(where, self.stream.append(insn, waits))

    def _set_pad(self, value: int) -> None:
        if value not in (0, self._inp_pad):
            stage, register = divmod(ConfigRegister.INP_PAD, _REGISTERS_PER_STAGE)
            self.stream.append(Config(stage=Stage(stage), register=register, value=value))
            self._inp_pad = value

    def load_uop(self, insn: Load) -> None:
        """A LOAD of micro-ops: in order with the GEMMs that use them, in the same queue."""
        self.stream.append(insn)

    def gemm(self, call: GemmCall, uop_base: int) -> int:
        """A GEMM whose sequence of micro-ops lies at `uop_base` of the UOP memory; its handle."""
        insn = call.with_uops(uop_base)
        waits = (
            self._inp.before_read(call.inp),
            self._wgt.before_read(call.wgt),
            self._acc.before_write(call.acc),
        )
        handle = self.stream.append(insn, waits)
        self._inp.read(call.inp, handle)
        self._wgt.read(call.wgt, handle)
        self._acc.write(call.acc, handle)
        return handle

    def load_params(self, layer: int, block: int, operands: Operands, after: int = -1) -> int:
        """Position in PARAM of an output channel block's entry, loaded if it is not there.

        The LOAD waits for the instruction of the handle `after`, so that it does not take the
        read channel from operands that are needed earlier.
        """
        place, insn = self._params.request(layer, block, operands.blocks, operands.params)
        if insn is not None:
            self.stream.append(insn, [after])
        return place

    def store(self, step: Step, operands: Operands) -> None:
        """The STOREs of the output channel blocks that a step completes."""
        count = step.store_blocks
        first = step.out_block - count + 1
        acc = step.acc - (count - 1) * step.tile.positions
        view = operands.result
        plane = step.tile.positions
        together = plane == view.height * view.width and self._params.holds(
            first, count, operands.blocks
        )
        if count > 1 and together and plane <= _FIELD_LIMIT:
            self._store(step, operands, (first, count), acc, (count, plane, plane))
            return
        shape = (step.tile.rows[1], step.tile.cols[1], view.width)
        for n in range(count):
            self._store(step, operands, (first + n, 1), acc + n * plane, shape)

    def _store(
        self,
        step: Step,
        operands: Operands,
        blocks: tuple[int, int],
        acc: int,
        shape: tuple[int, int, int],
    ) -> None:
        tile, view = step.tile, operands.result
        where = slice(acc, acc + blocks[1] * tile.positions)
        insn = Store(
            memory=Memory.OUT,
            sram_base=acc,
            dram_base=view.element(tile.batch, blocks[0], tile.rows[0], tile.cols[0]),
            y_size=shape[0],
            x_size=shape[1],
            x_stride=shape[2],
            requant=True,
            rounding=operands.rounding,
            advance=Advance.ROW if blocks[1] > 1 else Advance.NONE,
            param_base=self.load_params(step.layer, blocks[0], operands),
        )
        handle = self.stream.append(insn, [self._acc.before_read(where)])
        self._acc.read(where, handle)
        self._written(
            view, (tile.batch, slice(blocks[0], sum(blocks)), view.rows(*tile.rows)), handle
        )

    def _written(self, view: TensorView, where: tuple[int, slice, slice], handle: int) -> None:
        name = view.tensor.name
        if name not in self._tensors:
            self._tensors[name] = Hazards((view.tensor.shape[0], view.blocks, view.height))
        self._tensors[name].write(where, handle)


def _block_load(chunk: InputChunk, operands: Operands, block: int) -> Load:
    """LOAD of one channel block, with its padding."""
    view, rows, cols = operands.source, chunk.rows, chunk.cols
    stride = chunk.step * view.width if rows.real > 1 else cols.real
    if stride > _FIELD_LIMIT:
        raise CompileError(
            f"{operands.name}: rows of {view.width} elements, a LOAD steps over at most"
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
        pad_value=padded and operands.pad_value != 0,
    )


def _merged_load(chunk: InputChunk, view: TensorView, first: int, count: int) -> Load | None:
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
