"""Emits the instructions of steps, each with the waits that its on-chip and DRAM ranges need."""

from dataclasses import dataclass

from vitral.compiler.codegen.acc_loads import AccLoad, acc_loads
from vitral.compiler.codegen.calls import Call
from vitral.compiler.codegen.hazards import Hazards
from vitral.compiler.codegen.input_loads import block_load, merged_load
from vitral.compiler.codegen.params import ParamRing
from vitral.compiler.codegen.tensors import TensorView
from vitral.compiler.codegen.tokens import TokenStream
from vitral.compiler.schedule.steps import InputChunk, Step, WeightChunk
from vitral.config import CoreConfig
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
    """What the steps of a layer read and write: element positions in DRAM and constants.

    Without `params` results are stored as they are. `biases` is the ACC element in DRAM of the
    first bias that the ALU adds.
    """

    name: str
    sources: tuple[TensorView, ...]
    result: TensorView
    weights: int
    params: int | None
    blocks: int
    pad_value: int
    rounding: Rounding
    biases: int = 0


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
        self._window = 0

    def load_operands(self, step: Step, operands: Operands) -> None:
        """The LOADs of a step's input and weights; by channel block when it is a cold start."""
        blocks = step.chunk.ins[1]
        pieces = [(n, 1) for n in range(blocks)] if step.cold else [(0, blocks)]
        per_piece = step.weight.count // len(pieces)
        for number, (first, count) in enumerate(pieces):
            if step.load_weight:
                self._load_weight(step.weight, operands, number * per_piece, per_piece)
            if step.load_input:
                for chunk in step.inputs:
                    self._load_input(chunk, operands, first, count)

    def _load_weight(self, weight: WeightChunk, operands: Operands, first: int, count: int) -> None:
        base = weight.base + first
        insn = Load(
            memory=Memory.WGT,
            sram_base=base,
            dram_base=operands.weights + weight.first + first,
            y_size=1,
            x_size=count,
            x_stride=count,
        )
        where = slice(base, base + count)
        self._wgt.write(where, self.stream.append(insn, [self._wgt.before_write(where)]))

    def _load_input(self, chunk: InputChunk, operands: Operands, first: int, count: int) -> None:
        if chunk.rows.loaded != chunk.rows.real or chunk.cols.loaded != chunk.cols.real:
            self._set_pad(operands.pad_value)
        source = operands.sources[chunk.source]
        rows = source.rows(chunk.rows.first, chunk.rows.real, chunk.step)
        merged = merged_load(chunk, source, first, count)
        for block, blocks, insn in (
            [(first, count, merged)]
            if merged is not None
            else [
                (n, 1, block_load(chunk, source, n, operands.name, operands.pad_value))
                for n in range(first, first + count)
            ]
        ):
            where = chunk.elements(block, blocks)
            waits = [self._inp.before_write(where)]
            tensor = self._tensors.get(source.root)
            if tensor is not None:
                channels = source.channels(chunk.ins[0] + block, blocks)
                waits.append(tensor.before_read((chunk.batch, channels, rows)))
            self._inp.write(where, self.stream.append(insn, waits))

    def _set_pad(self, value: int) -> None:
        if value not in (0, self._inp_pad):
            self.stream.append(_config(ConfigRegister.INP_PAD, value))
            self._inp_pad = value

    def load_uop(self, insn: Load) -> None:
        """A LOAD of micro-ops: in order with the GEMMs that use them, in the same queue."""
        self.stream.append(insn)

    def load_acc(self, load: AccLoad, operands: Operands) -> None:
        """LOADs into ACC: in order with the ALU that reads them, in the same queue."""
        for insn, view, read in acc_loads(load, operands.sources, operands.biases, operands.name):
            rows = insn.y_pad_0 + insn.y_size + insn.y_pad_1
            cols = insn.x_pad_0 + insn.x_size + insn.x_pad_1
            where = slice(insn.sram_base, insn.sram_base + rows * cols)
            waits = [self._acc.before_write(where)]
            tensor = None if view is None else self._tensors.get(view.root)
            if tensor is not None:
                waits.append(tensor.before_read(read))
            self._acc.write(where, self.stream.append(insn, waits))

    def compute(self, call: Call, uop_base: int) -> int:
        """An instruction whose sequence of micro-ops lies at `uop_base` of the UOP memory; its
        handle."""
        self._set_window(call.window)
        waits = (
            self._inp.before_read(call.inp),
            self._wgt.before_read(call.wgt),
            self._acc.before_write(call.acc),
        )
        handle = self.stream.append(call.with_uops(uop_base), waits)
        self._inp.read(call.inp, handle)
        self._wgt.read(call.wgt, handle)
        self._acc.write(call.acc, handle)
        return handle

    def _set_window(self, value: int | None) -> None:
        if value not in (None, self._window):
            self.stream.append(_config(ConfigRegister.WINDOW, value))
            self._window = value

    def load_params(self, layer: int, block: int, operands: Operands, after: int = -1) -> int:
        """Position in PARAM of an output channel block's entry, loaded if it is not there; 0 for
        layers without parameters.

        The LOAD waits for the instruction of the handle `after`, so that it does not take the
        read channel from operands that are needed earlier.
        """
        if operands.params is None:
            return 0
        place, insn = self._params.request(layer, block, operands.blocks, operands.params)
        if insn is not None:
            self.stream.append(insn, [after])
        return place

    def store(self, step: Step, operands: Operands) -> None:
        """The STOREs of the output channel blocks that a step completes."""
        (first, count), acc = step.stored, step.stored_acc
        view = operands.result
        plane = step.tile.positions
        together = plane == view.height * view.width and (
            operands.params is None or self._params.holds(first, count, operands.blocks)
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
            requant=operands.params is not None,
            rounding=operands.rounding,
            advance=Advance.ROW if operands.params is not None and blocks[1] > 1 else Advance.NONE,
            param_base=self.load_params(step.layer, blocks[0], operands),
        )
        handle = self.stream.append(insn, [self._acc.before_read(where)])
        self._acc.read(where, handle)
        self._written(view, (tile.batch, view.channels(*blocks), view.rows(*tile.rows)), handle)

    def _written(self, view: TensorView, where: tuple[int, slice, slice], handle: int) -> None:
        if view.root not in self._tensors:
            shape = (view.tensor.shape[0], view.root_blocks, view.height)
            self._tensors[view.root] = Hazards(shape)
        self._tensors[view.root].write(where, handle)


def _config(register: ConfigRegister, value: int) -> Config:
    stage, number = divmod(register, _REGISTERS_PER_STAGE)
    return Config(stage=Stage(stage), register=number, value=value)
