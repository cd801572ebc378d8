"""Text form of instructions and micro-ops: a disassembler and the assembler that reads it back.

One line per instruction, `#` starts a comment, mnemonics and names in either case::

    LOAD INP sram=16 dram=0x12345 y=4 x=8 stride=14 pad=1,0,1,1 pop_next push_next
    GEMM uop=2:11 iter=14,14 dst=14,1 src=16,1 wgt=3,5
    WINDOW overwrite uop=0:3 iter=14,14 dst=14,1 src=16,1 wgt=0,0
    ALU SHR imm=8 uop=3:4 iter=1,64 dst=0,1 src=0,1
    STORE OUT requant sram=32 dram=0x800 y=2 x=8 stride=16 rounding=half_up advance=row param=4
    CONFIG INP_PAD value=-128
    FINISH
    .word 0x...

Pads are top, bottom, left, right; loop counts and factors outer, inner; `uop` is first:end.
What the assembler would refuse, the disassembler prints as `.word`, with the reason behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from vitral.errors import IsaError
from vitral.isa import (
    INSN_BITS,
    UOP_BITS,
    Advance,
    Alu,
    AluOp,
    Config,
    ConfigRegister,
    Finish,
    Gemm,
    Instruction,
    InstructionSet,
    Load,
    Memory,
    Profile,
    Rounding,
    Store,
    Uop,
    Window,
)

__all__ = [
    "assemble",
    "assemble_uops",
    "check_static",
    "disassemble",
    "disassemble_uop",
]

SHIFT_LIMIT = 31
"""Largest amount of an immediate shift, either way; more is legal in the machine but pointless."""

_REGISTER_STRIDE = 128


@dataclass(frozen=True)
class _Key:
    """`name=value`: the fields it sets, how they are joined, and whether zeros may be left out."""

    name: str
    fields: tuple[str, ...]
    separator: str = ","
    optional: bool = False
    kind: type[IntEnum] | None = None
    hexadecimal: bool = False

    def show(self, values: tuple[int, ...]) -> str:
        return f"{self.name}={self.separator.join(self._one(value) for value in values)}"

    def _one(self, value: int) -> str:
        if self.kind is not None:
            return self.kind(value).name.lower()
        return hex(value) if self.hexadecimal else str(int(value))

    def read(self, text: str) -> dict[str, int]:
        parts = text.split(self.separator)
        if len(parts) != len(self.fields):
            raise IsaError(
                f"{self.name} needs {len(self.fields)} value(s) joined by"
                f" '{self.separator}', got '{text}'"
            )
        read = _number if self.kind is None else _member(self.kind)
        return {field: read(part) for field, part in zip(self.fields, parts, strict=True)}


_TRANSFER = (
    _Key("sram", ("sram_base",)),
    _Key("dram", ("dram_base",), hexadecimal=True),
    _Key("y", ("y_size",)),
    _Key("x", ("x_size",)),
    _Key("stride", ("x_stride",)),
)
_LOOPS = (
    _Key("uop", ("uop_bgn", "uop_end"), separator=":"),
    _Key("iter", ("iter_out", "iter_in")),
    _Key("dst", ("dst_factor_out", "dst_factor_in")),
    _Key("src", ("src_factor_out", "src_factor_in")),
)
_WGT = _Key("wgt", ("wgt_factor_out", "wgt_factor_in"))
_KEYS: dict[type[Instruction], tuple[_Key, ...]] = {
    Load: (
        *_TRANSFER,
        _Key("pad", ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), optional=True),
    ),
    Store: (
        *_TRANSFER,
        _Key("rounding", ("rounding",), optional=True, kind=Rounding),
        _Key("advance", ("advance",), optional=True, kind=Advance),
        _Key("param", ("param_base",), optional=True),
    ),
    Gemm: (*_LOOPS, _WGT),
    Window: (*_LOOPS, _WGT),
    Alu: (_Key("imm", ("imm",), optional=True), *_LOOPS),
    Config: (_Key("value", ("value",)),),
    Finish: (),
}
_MODES: dict[type[Instruction], tuple[str, ...]] = {
    Load: ("pad_value",),
    Store: ("requant",),
    Gemm: ("reset", "overwrite"),
    Window: ("maximum", "overwrite"),
}
_TOKENS = ("pop_prev", "pop_next", "push_prev", "push_next")
_SELECTOR: dict[type[Instruction], type[IntEnum]] = {
    Load: Memory,
    Store: Memory,
    Alu: AluOp,
    Config: ConfigRegister,
}
_MNEMONICS: dict[str, type[Instruction]] = {cls.__name__.upper(): cls for cls in _KEYS}
_UOP_MNEMONICS = {"UOP": False, "ALUOP": True}


def disassemble(word: int, profile: Profile, isa: InstructionSet) -> str:
    """One line of text that :func:`assemble` turns into exactly this word again.

    Raises
    ------
    IsaError
        When `word` is not a 128-bit number.
    """
    _check_width(word, INSN_BITS, "instruction")
    raw = f".word 0x{word:0{INSN_BITS // 4}x}"
    try:
        insn = isa.decode(word, profile)
    except IsaError as error:
        return f"{raw}  # {error}"
    text = _show(insn)
    try:
        exact = _parse(text, isa, profile) == word
        reason = "ignored bits are set"
    except IsaError as error:
        exact, reason = False, str(error)
    return text if exact else f"{raw}  # {text}; {reason}"


def assemble(text: str, isa: InstructionSet, profile: Profile = Profile.VITRAL) -> list[int]:
    """The 128-bit words of a program text.

    Raises
    ------
    IsaError
        With the line number, the field, its range and what was written.
    """
    return _each_line(text, lambda line: _parse(line, isa, profile))


def disassemble_uop(word: int, isa: InstructionSet, *, alu: bool = False) -> str:
    """One micro-op as text: ``UOP dst= src= wgt=``, or ``ALUOP dst= src=`` when `alu`."""
    _check_width(word, UOP_BITS, "micro-op")
    uop = isa.decode_uop(word, alu=alu)
    if isa.encode_uop(uop, alu=alu) != word:
        return f".uop 0x{word:0{UOP_BITS // 4}x}"
    wgt = "" if alu else f" wgt={uop.wgt}"
    return f"{'ALUOP' if alu else 'UOP'} dst={uop.dst} src={uop.src}{wgt}"


def assemble_uops(text: str, isa: InstructionSet) -> list[int]:
    """The 32-bit words of a list of micro-ops; raises IsaError like :func:`assemble`."""
    return _each_line(text, lambda line: _parse_uop(line, isa))


def check_static(insn: Instruction, isa: InstructionSet) -> None:
    """Refuse what is sure to fault, or is not meant, whatever the memories hold.

    Raises
    ------
    IsaError
        For an on-chip range, micro-op range or parameter entry past its memory, and for an
        immediate shift of more than 31.
    """
    match insn:
        case Load():
            _check_load(insn, isa)
        case Store():
            _check_store(insn, isa)
        case Gemm() | Window() | Alu():
            _check_loops(insn, isa)
        case _:
            pass


def _check_load(insn: Load, isa: InstructionSet) -> None:
    if not insn.y_size or not insn.x_size:
        return
    rows = insn.y_pad_0 + insn.y_size + insn.y_pad_1
    columns = insn.x_pad_0 + insn.x_size + insn.x_pad_1
    name = "acc" if insn.memory is Memory.ACC_8BIT else insn.memory.name.lower()
    depth = getattr(isa.config.layout, f"{name}_depth")
    _check_end(f"LOAD {insn.memory.name}", "sram", insn.sram_base + rows * columns, depth)


def _check_store(insn: Store, isa: InstructionSet) -> None:
    count = insn.y_size * insn.x_size
    if not count:
        return
    layout = isa.config.layout
    _check_end("STORE", "sram", insn.sram_base + count, layout.acc_depth)
    if insn.requant:
        steps = {Advance.NONE: 1, Advance.ROW: insn.y_size, Advance.ELEMENT: count}
        _check_end("STORE", "param", insn.param_base + steps[insn.advance], layout.param_depth)


def _check_loops(insn: Gemm | Window | Alu, isa: InstructionSet) -> None:
    name = type(insn).__name__.upper()
    runs = insn.iter_out and insn.iter_in and insn.uop_bgn < insn.uop_end
    if runs:
        _check_end(name, "uop", insn.uop_end, isa.config.layout.uop_depth)
    match insn:
        case Alu(alu_opcode=AluOp.SHR, use_imm=True, imm=imm) if abs(imm) > SHIFT_LIMIT:
            raise IsaError(f"ALU SHR: imm must be {-SHIFT_LIMIT}..{SHIFT_LIMIT}, got {imm}")
        case _:
            pass


def _check_end(owner: str, what: str, end: int, depth: int) -> None:
    if end > depth:
        raise IsaError(f"{owner}: {what} range ends at {end}, the memory has {depth} elements")


def _check_width(word: int, bits: int, what: str) -> None:
    if not 0 <= word < 1 << bits:
        raise IsaError(f"{what} must be a number of {bits} bits, got {word:#x}")


def _show(insn: Instruction) -> str:
    cls = type(insn)
    parts = [cls.__name__.upper()]
    if cls in _SELECTOR:
        parts.append(_selected(insn).name)
    parts += [mode for mode in _MODES.get(cls, ()) if getattr(insn, mode)]
    for key in _KEYS[cls]:
        values = tuple(getattr(insn, field) for field in key.fields)
        if _wanted(key, insn, values):
            parts.append(key.show(values))
    parts += [token for token in _TOKENS if getattr(insn, token)]
    return " ".join(parts)


def _wanted(key: _Key, insn: Instruction, values: tuple[int, ...]) -> bool:
    if isinstance(insn, Alu) and key.name == "imm":
        return insn.use_imm
    return any(values) or not key.optional


def _selected(insn: Instruction) -> IntEnum:
    match insn:
        case Load(memory=memory) | Store(memory=memory):
            return memory
        case Alu(alu_opcode=operation):
            return operation
        case Config(stage=stage, register=register):
            return ConfigRegister(stage * _REGISTER_STRIDE + register)
        case _:
            raise AssertionError(f"{insn} has no selector")


def _each_line(text: str, parse: Callable[[str], int]) -> list[int]:
    words: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        code = line.split("#", 1)[0].strip()
        if not code:
            continue
        try:
            words.append(parse(code))
        except IsaError as error:
            raise IsaError(f"line {number}: {error}") from None
    return words


def _parse(line: str, isa: InstructionSet, profile: Profile) -> int:
    mnemonic, *operands = line.split()
    if mnemonic.lower() == ".word":
        return _raw(mnemonic, operands, INSN_BITS)
    cls = _MNEMONICS.get(mnemonic.upper())
    if cls is None:
        raise IsaError(f"unknown instruction '{mnemonic}', known are {', '.join(_MNEMONICS)}")
    insn = _build(cls, operands)
    word = isa.encode(insn, profile)
    check_static(insn, isa)
    return word


def _build(cls: type[Instruction], operands: list[str]) -> Instruction:
    name = cls.__name__.upper()
    values: dict[str, Any] = {}
    if cls in _SELECTOR:
        kind = _SELECTOR[cls]
        if not operands:
            raise IsaError(f"{name} needs one of {', '.join(item.name for item in kind)}")
        values.update(_select(cls, _member(kind)(operands[0])))
        operands = operands[1:]
    flags = (*_MODES.get(cls, ()), *_TOKENS)
    keys = {key.name: key for key in _KEYS[cls]}
    for operand in operands:
        key, assigned, value = operand.lower().partition("=")
        if not assigned and key in flags:
            fresh: dict[str, Any] = {key: True}
        elif assigned and key in keys:
            fresh = keys[key].read(value)
        else:
            known = ", ".join((*(f"{each}=" for each in keys), *flags))
            raise IsaError(f"{name}: unknown operand '{operand}', known are {known}")
        if fresh.keys() & values.keys():
            raise IsaError(f"{name}: {key} is given twice")
        values.update(fresh)
    if cls is Alu:
        values["use_imm"] = "imm" in values
    return cls(**values)


def _select(cls: type[Instruction], choice: IntEnum) -> dict[str, Any]:
    if cls is Alu:
        return {"alu_opcode": choice}
    if cls is Config:
        stage, register = divmod(int(choice), _REGISTER_STRIDE)
        return {"stage": stage, "register": register}
    return {"memory": choice}


def _parse_uop(line: str, isa: InstructionSet) -> int:
    mnemonic, *operands = line.split()
    if mnemonic.lower() == ".uop":
        return _raw(mnemonic, operands, UOP_BITS)
    alu = _UOP_MNEMONICS.get(mnemonic.upper())
    if alu is None:
        raise IsaError(f"unknown micro-op '{mnemonic}', known are UOP, ALUOP, .uop")
    values: dict[str, int] = {}
    for operand in operands:
        key, assigned, value = operand.lower().partition("=")
        if not assigned or key not in ("dst", "src", "wgt") or key in values:
            raise IsaError(f"micro-op: '{operand}' is not one of dst=, src=, wgt=, once each")
        values[key] = _number(value)
    return isa.encode_uop(Uop(**values), alu=alu)


def _raw(mnemonic: str, operands: list[str], bits: int) -> int:
    if len(operands) != 1:
        raise IsaError(f"{mnemonic} needs one number, got {len(operands)} operands")
    word = _number(operands[0])
    _check_width(word, bits, mnemonic)
    return word


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise IsaError(f"'{text}' is not a number; write 12, -3 or 0x1f") from None


def _member(kind: type[IntEnum]) -> Callable[[str], IntEnum]:
    def find(text: str) -> IntEnum:
        try:
            return kind[text.upper()]
        except KeyError:
            names = ", ".join(item.name.lower() for item in kind)
            raise IsaError(f"'{text}' is not one of {names}") from None

    return find
