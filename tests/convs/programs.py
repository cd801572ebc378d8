"""Compiled segments in a memory of their own, with guards around it and random contents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.compiler.codegen.arena import Arena
from vitral.compiler.codegen.tensors import tensor_bytes
from vitral.compiler.schedule.layer import AccelLayer
from vitral.compiler.schedule.segment import schedule_segment
from vitral.config import INSN_BYTES, CoreConfig
from vitral.isa import Instruction, InstructionSet, Memory, Store
from vitral.program import GUARD, PAGE, Dram, Launch, OnChip, Outcome
from vitral.runtime.module import ArenaTensor, Segment
from vitral.verify import Image, Report, verify_program

__all__ = ["Compiled", "compile_layers", "pack", "unpack"]

Int8 = npt.NDArray[np.int8]
Run = Callable[[Launch, Dram, OnChip], Outcome]
_BASE = 0x1234_5000


def pack(x: Int8, tensor: ArenaTensor, config: CoreConfig) -> bytes:
    """An int8 (N, C, H, W) array as it lies in the arena."""
    assert x.shape == tensor.shape
    top, left, bottom, right = tensor.pads
    n, c = x.shape[:2]
    padded = np.pad(
        x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=tensor.pad_value
    )
    lanes = ((0, -n % config.batch), (0, -c % config.block), (0, 0), (0, 0))
    whole = np.pad(padded, lanes)
    shaped = whole.reshape(
        -1, config.batch, whole.shape[1] // config.block, config.block, *whole.shape[2:]
    )
    return shaped.transpose(0, 2, 4, 5, 1, 3).tobytes()


def unpack(data: bytes, tensor: ArenaTensor, config: CoreConfig) -> tuple[Int8, Int8]:
    """The (N, C, H, W) array, and the lanes of channels that do not exist."""
    n, c, h, w = tensor.shape
    top, left, bottom, right = tensor.pads
    batches, blocks = -(-n // config.batch), -(-c // config.block)
    shape = (batches, blocks, h + top + bottom, w + left + right, config.batch, config.block)
    blocked = np.frombuffer(data, np.int8)[: int(np.prod(shape))].reshape(shape)
    whole = blocked.transpose(0, 4, 1, 5, 2, 3).reshape(
        batches * config.batch, blocks * config.block, *shape[2:4]
    )[:, :, top : top + h, left : left + w]
    return whole[:n, :c], whole[:n, c:]


@dataclass(frozen=True)
class Compiled:
    """A segment with the arena it was compiled into."""

    config: CoreConfig
    segment: Segment
    arena: Arena

    @property
    def instructions(self) -> list[Instruction]:
        raw = self.arena.image[self.segment.insn_offset].tobytes()
        isa = InstructionSet.of(self.config)
        words = (raw[n : n + INSN_BYTES] for n in range(0, len(raw), INSN_BYTES))
        return [isa.decode(int.from_bytes(word, "little")) for word in words]

    @property
    def launch(self) -> Launch:
        return Launch(
            insn_base=_BASE + self.segment.insn_offset,
            insn_count=self.segment.insn_count,
            bases=dict.fromkeys(Memory, _BASE),
            limit_low=_BASE,
            limit_high=_BASE + self.arena.size,
        )

    def verify(self) -> Report:
        """What the verifier says, knowing the image and where the inputs lie."""
        chunks = {_BASE + offset: data for offset, data in self.arena.image.items()}
        filled = [
            (_BASE + tensor.offset, tensor_bytes(tensor.shape, tensor.pads, self.config))
            for tensor in self.segment.inputs
        ]
        return verify_program(self.launch, self.config, Image(chunks, filled))

    def dram(self, inputs: Mapping[str, Int8], rng: np.random.Generator) -> Dram:
        """The arena with a guard page on both sides, random where the host writes nothing."""
        dram = Dram.filled(_BASE - PAGE, self.arena.size + 2 * PAGE, GUARD)
        dram.write(_BASE, rng.bytes(self.arena.size))
        for offset, data in self.arena.image.items():
            dram.write(_BASE + offset, data)
        for tensor in self.segment.inputs:
            dram.write(_BASE + tensor.offset, pack(inputs[tensor.name], tensor, self.config))
        return dram

    def run(self, run: Run, inputs: Mapping[str, Int8], seed: int = 0) -> dict[str, Int8]:
        """The outputs by name; fails when anything else than tensors was written."""
        rng = np.random.default_rng(seed)
        dram = self.dram(inputs, rng)
        before = dram.copy()
        outcome = run(self.launch, dram, OnChip.random(self.config, rng))
        assert outcome.ok, outcome.message
        assert dram.read(_BASE - PAGE, PAGE) == bytes([GUARD]) * PAGE
        assert dram.read(_BASE + self.arena.size, PAGE) == bytes([GUARD]) * PAGE
        for offset, data in self._constants().items():
            assert dram.read(_BASE + offset, data.size) == data.tobytes(), f"image at {offset}"
        for tensor in self.segment.inputs:
            size = len(pack(inputs[tensor.name], tensor, self.config))
            where = _BASE + tensor.offset
            assert dram.read(where, size) == before.read(where, size), tensor.name
        return {tensor.name: self._output(dram, tensor) for tensor in self.segment.outputs}

    def _constants(self) -> dict[int, npt.NDArray[np.uint8]]:
        """Blocks of the image that are not tensors with a border, which are written inside."""
        size = self.config.layout.out_bytes
        stored = [i.dram_base * size for i in self.instructions if isinstance(i, Store)]
        return {
            offset: data
            for offset, data in self.arena.image.items()
            if not any(offset <= byte < offset + data.size for byte in stored)
        }

    def _output(self, dram: Dram, tensor: ArenaTensor) -> Int8:
        rest = dram.end - PAGE - (_BASE + tensor.offset)
        values, lanes = unpack(dram.read(_BASE + tensor.offset, rest), tensor, self.config)
        assert not lanes.any(), "lanes without a channel must be 0"
        return values


def compile_layers(
    layers: Sequence[AccelLayer], config: CoreConfig, outputs: tuple[str, ...] | None = None
) -> Compiled:
    """Compile layers whose inputs are those that no layer gives."""
    results = {layer.result for layer in layers}
    inputs = tuple(dict.fromkeys(s for x in layers for s in x.sources if s not in results))
    arena = Arena()
    segment = schedule_segment(
        layers,
        config,
        name="test",
        inputs=inputs,
        outputs=outputs or (layers[-1].result,),
        arena=arena,
    )
    return Compiled(config, segment, arena)
