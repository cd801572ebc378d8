"""A program's instructions as the verifier handles them: decoded, with queue and token channels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.config import INSN_BYTES, CoreConfig
from vitral.errors import IsaError
from vitral.isa import (
    Finish,
    Instruction,
    InstructionSet,
    Load,
    Opcode,
    Profile,
    Stage,
    Store,
    queue_of,
)
from vitral.verify.report import Finding

__all__ = ["CHANNELS", "Op", "decode_ops"]

CHANNELS: tuple[tuple[Stage, Stage], ...] = (
    (Stage.LOAD, Stage.COMPUTE),
    (Stage.COMPUTE, Stage.LOAD),
    (Stage.COMPUTE, Stage.STORE),
    (Stage.STORE, Stage.COMPUTE),
)
"""Token counters: from, to."""


@dataclass(slots=True)
class Op:
    """One instruction. Of transfers `insn` has base addresses 0; `sram` and `dram` have them.

    `pops` and `pushes` number `CHANNELS`.
    """

    index: int
    insn: Instruction
    stage: Stage
    pops: tuple[int, ...]
    pushes: tuple[int, ...]
    sram: int
    dram: int

    @property
    def transfers(self) -> bool:
        """Whether it is a LOAD or STORE that moves anything."""
        insn = self.insn
        return isinstance(insn, Load | Store) and insn.x_size > 0 and insn.y_size > 0

    def __str__(self) -> str:
        name = type(self.insn).__name__.upper()
        memory = getattr(self.insn, "memory", None)
        return f"{name} {memory.name}" if memory is not None else name


def decode_ops(
    data: npt.NDArray[np.uint8], config: CoreConfig, profile: Profile
) -> tuple[list[Op], list[Finding]]:
    """The instructions in `data`, uint8 (n * 16,), and what is wrong with the words themselves."""
    decoder = _Decoder(InstructionSet.of(config), profile)
    raw = data.tobytes()
    ops: list[Op] = []
    findings: list[Finding] = []
    for index in range(len(raw) // INSN_BYTES):
        word = int.from_bytes(raw[index * INSN_BYTES : (index + 1) * INSN_BYTES], "little")
        try:
            ops.append(decoder.op(index, word))
        except IsaError as error:
            findings.append(Finding(index, str(error)))
    return ops, findings + _frame_findings(ops, findings)


def _frame_findings(ops: list[Op], decoding: list[Finding]) -> list[Finding]:
    """FINISH must be there, once, at the end."""
    ends = [op.index for op in ops if isinstance(op.insn, Finish)]
    last = max([op.index for op in ops[-1:]] + [item.index or 0 for item in decoding], default=-1)
    findings = [
        Finding(index, "FINISH is not the last instruction") for index in ends if index != last
    ]
    if not ends or ends[-1] != last:
        empty = last < 0
        findings.append(Finding(None, "empty program" if empty else "program ends without FINISH"))
    return findings


class _Decoder:
    """Decodes each form of transfer once, whatever its base addresses."""

    def __init__(self, isa: InstructionSet, profile: Profile) -> None:
        self._isa = isa
        self._profile = profile
        self._forms: dict[int, Op] = {}
        self._opcode = isa.load["opcode"].mask
        self._sram = {Opcode.LOAD: isa.load["sram_base"], Opcode.STORE: isa.store["sram_base"]}
        self._dram = {Opcode.LOAD: isa.load["dram_base"], Opcode.STORE: isa.store["dram_base"]}
        self._bases = {code: self._sram[code].mask | self._dram[code].mask for code in self._sram}

    def op(self, index: int, word: int) -> Op:
        code = word & self._opcode
        if code not in self._bases:
            form = self._form(word)
            return Op(index, form.insn, form.stage, form.pops, form.pushes, 0, 0)
        form = self._form(word & ~self._bases[Opcode(code)])
        sram = self._sram[Opcode(code)].extract(word)
        dram = self._dram[Opcode(code)].extract(word)
        return Op(index, form.insn, form.stage, form.pops, form.pushes, sram, dram)

    def _form(self, word: int) -> Op:
        form = self._forms.get(word)
        if form is None:
            insn = self._isa.decode(word, self._profile)
            stage = queue_of(insn)
            form = Op(-1, insn, stage, _pops(insn, stage), _pushes(insn, stage), 0, 0)
            self._forms[word] = form
        return form


def _pops(insn: Instruction, stage: Stage) -> tuple[int, ...]:
    flags = ((insn.pop_prev, stage - 1), (insn.pop_next, stage + 1))
    return tuple(CHANNELS.index((Stage(other), stage)) for flag, other in flags if flag)


def _pushes(insn: Instruction, stage: Stage) -> tuple[int, ...]:
    flags = ((insn.push_prev, stage - 1), (insn.push_next, stage + 1))
    return tuple(CHANNELS.index((stage, Stage(other))) for flag, other in flags if flag)
