"""Tables from which the native code decodes, computed by asking the instruction set itself."""

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from vitral.isa import (
    Cause,
    DecodeError,
    Field,
    Format,
    InstructionSet,
    Opcode,
    Profile,
    queue_of,
)
from vitral.sim.functional.emit import I64, Code, Ptr, Value

__all__ = ["Decoder", "field_of"]

ENTRY_WORDS = 8
WORD_BITS = 64
MASK = (1 << WORD_BITS) - 1
OPCODES = 8
TOKEN_FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
_DISCRIMINATORS: dict[Opcode, tuple[str, ...]] = {
    Opcode.LOAD: ("memory", "pad_value"),
    Opcode.STORE: ("memory", "requant", "rounding", "advance"),
    Opcode.ALU: ("alu_opcode",),
    Opcode.CONFIG: ("stage", "register"),
}
"""Fields on whose values it depends whether an instruction exists and where it goes."""


@dataclass(frozen=True)
class _Entry:
    """What to do with instructions of one kind: fault, or queue, after dropping ignored bits."""

    cause: int
    stage: int = 0
    keep: int = 0
    reserved: int = 0
    undefined: int = 0

    def words(self) -> list[int]:
        masks = (self.keep, self.reserved, self.undefined)
        halves = [part for mask in masks for part in (mask & MASK, mask >> WORD_BITS)]
        return [self.cause, self.stage, *halves]


def field_of(low: Value, high: Value, field: Field) -> Value:
    """The field's value as int64, sign-extended when it is signed."""
    word = low if field.low < WORD_BITS else high
    position = field.low % WORD_BITS
    if field.signed:
        return (word << (WORD_BITS - position - field.width)).shr(WORD_BITS - field.width)
    return (word >> position) & ((1 << field.width) - 1)


class Decoder:
    """Emits the lookup of an instruction's entry; the tables are constants of the module."""

    def __init__(self, module: ir.Module, isa: InstructionSet) -> None:
        self.isa = isa
        entries: list[_Entry] = []
        self.first: dict[tuple[Profile, int], int] = {}
        for profile in Profile:
            for code in range(OPCODES):
                self.first[profile, code] = len(entries)
                entries += self._entries(profile, code)
        words = [word for entry in entries for word in entry.words()]
        self.table = _table(module, "entries", words)
        starts = [self.first[profile, code] for profile in Profile for code in range(OPCODES)]
        self.starts = _table(module, "starts", starts)

    def lookup(self, code: Code, profile: Value, low: Value, high: Value) -> Ptr:
        """Words of the entry: cause, stage, low and high of the bits kept, reserved, undefined."""
        opcode = low & (OPCODES - 1)
        key = code.var(0)
        for number, names in _DISCRIMINATORS.items():
            with code.when(opcode.eq(int(number))):
                key.set(self._key(code, low, high, self.isa.format_of(number), names))
        start = Ptr(code, self.starts, I64)[profile * OPCODES + opcode]
        return Ptr(code, self.table, I64) + (start + key.get()) * ENTRY_WORDS

    @staticmethod
    def _key(code: Code, low: Value, high: Value, fmt: Format, names: tuple[str, ...]) -> Value:
        key, position = code.number(0), 0
        for name in names:
            key = key | (field_of(low, high, fmt[name]) << position)
            position += fmt[name].width
        return key

    def _entries(self, profile: Profile, code: int) -> list[_Entry]:
        """One entry per combination of the discriminating fields."""
        try:
            opcode = Opcode(code)
        except ValueError:
            return [_Entry(Cause.UNDEFINED_OPCODE)]
        fmt = self.isa.format_of(opcode)
        fields = [fmt[name] for name in _DISCRIMINATORS.get(opcode, ())]
        count = 1 << sum(field.width for field in fields)
        return [self._entry(profile, fmt, fields, code, key) for key in range(count)]

    def _entry(
        self, profile: Profile, fmt: Format, fields: list[Field], code: int, key: int
    ) -> _Entry:
        word, mask = code, OPCODES - 1
        for field in fields:
            word |= (key & ((1 << field.width) - 1)) << field.low
            key >>= field.width
            mask |= field.mask
        try:
            insn = self.isa.decode(word, profile)
        except DecodeError as error:
            return _Entry(error.cause)
        bad = {Cause.RESERVED_BITS: 0, Cause.UNDEFINED_FIELD: 0}
        for bit in range(128):
            cause = self._cause(word | 1 << bit & ~mask, profile)
            if cause is not Cause.NONE:
                bad[cause] |= 1 << bit
        reserved, undefined = bad.values()
        keep = fmt.used_mask(profile) & ~reserved
        flagged = self.isa.decode(word | _flags(fmt) & ~reserved, profile)
        for name in TOKEN_FLAGS:
            if not getattr(flagged, name):
                keep &= ~fmt[name].mask
        return _Entry(Cause.NONE, int(queue_of(insn)), keep, reserved, undefined)

    def _cause(self, word: int, profile: Profile) -> Cause:
        try:
            self.isa.decode(word, profile)
        except DecodeError as error:
            return error.cause
        return Cause.NONE


def _flags(fmt: Format) -> int:
    return sum(fmt[name].mask for name in TOKEN_FLAGS)


def _table(module: ir.Module, name: str, words: list[int]) -> ir.GlobalVariable:
    kind = ir.ArrayType(I64, len(words))
    table: Any = ir.GlobalVariable(module, kind, name)
    table.initializer = ir.Constant(kind, words)
    table.global_constant = True
    table.linkage = "internal"
    return table
