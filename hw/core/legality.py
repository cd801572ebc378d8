"""Says of an instruction word whether it is legal and which stage it belongs to.

Nothing is declared here: the tables of which the logic is made are read off
`vitral.isa.InstructionSet.decode`, by asking it about every combination of the fields that
matter and then about every other bit.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from vitral.config import CoreConfig
from vitral.hw.core.interfaces import CAUSE_BITS
from vitral.isa import (
    INSN_BITS,
    Cause,
    DecodeError,
    Field,
    InstructionSet,
    Opcode,
    Profile,
    Stage,
    queue_of,
)

__all__ = ["Legality"]

STAGE_BITS = 2

_SELECTORS: dict[Opcode, tuple[str, ...]] = {
    Opcode.LOAD: ("memory", "pad_value"),
    Opcode.STORE: ("memory", "requant", "advance"),
    Opcode.GEMM: (),
    Opcode.FINISH: (),
    Opcode.ALU: ("alu_opcode",),
    Opcode.CONFIG: ("stage", "register"),
    Opcode.WINDOW: (),
}
"""The fields of each instruction on which its legality and its stage depend."""


@dataclass(frozen=True)
class _Verdict:
    """What all words with certain selectors share: cause, stage, and bits that must be 0.

    Bits of `undefined` make an undefined field, those of `spare` are reserved.
    """

    cause: Cause
    stage: Stage = Stage.LOAD
    spare: int = 0
    undefined: int = 0


class Legality(wiring.Component):
    """Combinational check of one instruction word.

    Ports
    -----
    word, profile
        The instruction and the profile it is read in.
    cause
        UNDEFINED_OPCODE, UNDEFINED_FIELD, RESERVED_BITS or 0, as `InstructionSet.decode` says.
    stage
        Whose queue a legal instruction goes to.
    finish
        The instruction is FINISH.
    """

    def __init__(self, config: CoreConfig) -> None:
        self._isa = InstructionSet.of(config)
        super().__init__(
            {
                "word": In(INSN_BITS),
                "profile": In(1),
                "cause": Out(CAUSE_BITS),
                "stage": Out(STAGE_BITS),
                "finish": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        opcode_field = self._isa.finish["opcode"]
        opcode = self._bits(opcode_field)
        cause = Signal(CAUSE_BITS)
        spare = Signal(INSN_BITS)
        undefined = Signal(INSN_BITS)
        with m.Switch(Cat(opcode, self.profile)):
            for profile in Profile:
                for value in range(1 << opcode_field.width):
                    with m.Case(value | profile << opcode_field.width):
                        self._judge(m, value, profile, cause, spare, undefined)
        with m.If(cause != 0):
            m.d.comb += self.cause.eq(cause)
        with m.Elif((self.word & undefined).any()):
            m.d.comb += self.cause.eq(Cause.UNDEFINED_FIELD)
        with m.Elif((self.word & spare).any()):
            m.d.comb += self.cause.eq(Cause.RESERVED_BITS)
        m.d.comb += [
            self.finish.eq(opcode == Opcode.FINISH),
        ]
        return m

    def _bits(self, field: Field):
        return self.word[field.low : field.high + 1]

    def _judge(
        self,
        m: Module,
        opcode: int,
        profile: Profile,
        cause: Signal,
        spare: Signal,
        undefined: Signal,
    ) -> None:
        """Assigns the verdict of one opcode, chosen by its selectors."""
        table = dict(self._verdicts(opcode, profile))
        usual = Counter(table.values()).most_common(1)[0][0]

        def give(verdict: _Verdict) -> None:
            m.d.comb += [
                cause.eq(verdict.cause),
                self.stage.eq(verdict.stage),
                spare.eq(Const(verdict.spare, INSN_BITS)),
                undefined.eq(Const(verdict.undefined, INSN_BITS)),
            ]

        give(usual)
        fields = self._selectors(opcode)
        with m.Switch(Cat(*(self._bits(field) for field in fields))):
            for selector, verdict in table.items():
                if verdict != usual:
                    with m.Case(selector):
                        give(verdict)

    def _selectors(self, opcode: int) -> list[Field]:
        if opcode not in set(Opcode):
            return []
        fmt = self._isa.format_of(Opcode(opcode))
        return [fmt[name] for name in _SELECTORS[Opcode(opcode)]]

    def _verdicts(self, opcode: int, profile: Profile) -> Iterator[tuple[int, _Verdict]]:
        """(selector bits, verdict) for every combination of the selectors."""
        fields = self._selectors(opcode)
        for values in product(*(range(1 << field.width) for field in fields)):
            word, selector, at = opcode, 0, 0
            for field, value in zip(fields, values, strict=True):
                word |= value << field.low
                selector |= value << at
                at += field.width
            yield selector, self._verdict(word, profile)

    def _verdict(self, word: int, profile: Profile) -> _Verdict:
        cause = self._cause(word, profile)
        if cause is not Cause.NONE:
            return _Verdict(cause)
        fields = self._selectors(word & self._isa.finish["opcode"].mask)
        known = sum(field.mask for field in fields) | self._isa.finish["opcode"].mask
        bad = {Cause.RESERVED_BITS: 0, Cause.UNDEFINED_FIELD: 0}
        for bit in range(INSN_BITS):
            cause = self._cause(word | 1 << bit, profile)
            if cause in bad and not known >> bit & 1:
                bad[cause] |= 1 << bit
        return _Verdict(
            Cause.NONE,
            queue_of(self._isa.decode(word, profile)),
            bad[Cause.RESERVED_BITS],
            bad[Cause.UNDEFINED_FIELD],
        )

    def _cause(self, word: int, profile: Profile) -> Cause:
        try:
            self._isa.decode(word, profile)
        except DecodeError as error:
            return error.cause
        return Cause.NONE
