"""The instruction set: every field, its bits and its meaning, for any core configuration.

The base profile is VTA HW_VER 0.0.2 bit for bit; the Vitral profile adds meanings in encodings
that VTA leaves unused. Decoders, simulators, assembler and the ISA page are computed from the
tables here; no other file knows a bit position.
"""

from dataclasses import replace
from functools import lru_cache

from vitral.config import CoreConfig
from vitral.encoding import INSN_BITS, UOP_BITS, WORD_BITS, Field, Format, Packer
from vitral.errors import IsaError
from vitral.instructions import (
    Advance,
    Alu,
    AluOp,
    Cause,
    Config,
    ConfigRegister,
    DecodeError,
    Finish,
    Gemm,
    Instruction,
    Load,
    Memory,
    Opcode,
    Profile,
    Rounding,
    Stage,
    Store,
    Uop,
    Window,
    queue_of,
)

__all__ = [
    "Advance",
    "Alu",
    "AluOp",
    "Cause",
    "Config",
    "ConfigRegister",
    "DecodeError",
    "Field",
    "Finish",
    "Format",
    "Gemm",
    "INSN_BITS",
    "Instruction",
    "InstructionSet",
    "Load",
    "Memory",
    "Opcode",
    "PARAM_FIELDS",
    "Profile",
    "Rounding",
    "Stage",
    "Store",
    "UOP_BITS",
    "Uop",
    "WINDOW_FIELDS",
    "Window",
    "queue_of",
    "window_of",
    "window_value",
]

ITER_BITS = 14


def _header() -> Packer:
    return (
        Packer()
        .add("opcode", 3, "operation")
        .add("pop_prev", 1, "wait for a token from the previous stage")
        .add("pop_next", 1, "wait for a token from the next stage")
        .add("push_prev", 1, "give a token to the previous stage afterwards")
        .add("push_next", 1, "give a token to the next stage afterwards")
    )


def _memory_header() -> Packer:
    return (
        _header()
        .add("memory", 3, "memory id")
        .add("sram_base", 16, "first on-chip element")
        .add("dram_base", 32, "first DRAM element, added to the memory's base address")
    )


def _sizes(packer: Packer) -> Packer:
    return (
        packer.add("y_size", 16, "rows", at=WORD_BITS)
        .add("x_size", 16, "elements per row")
        .add("x_stride", 16, "elements between the starts of two DRAM rows")
    )


def _load_format() -> Format:
    packer = _memory_header()
    packer.add("pad_value", 1, "pad with the memory's pad register", profile=Profile.VITRAL)
    _sizes(packer)
    for name, side in (("y_pad_0", "above"), ("y_pad_1", "below")):
        packer.add(name, 4, f"pad rows {side}")
    for name, side in (("x_pad_0", "left of"), ("x_pad_1", "right of")):
        packer.add(name, 4, f"pad elements {side} each row")
    return packer.format("LOAD")


def _store_format() -> Format:
    packer = _memory_header()
    packer.add("requant", 1, "requantise with the parameter memory", profile=Profile.VITRAL)
    packer.add("rounding", 2, "rounding mode", profile=Profile.VITRAL)
    packer.add("advance", 2, "next parameter entry per row or element", profile=Profile.VITRAL)
    _sizes(packer)
    packer.add("param_base", 16, "first parameter entry", profile=Profile.VITRAL)
    return packer.format("STORE")


def _loop_header(config: CoreConfig) -> Packer:
    bits = config.layout.uop_index_bits
    return (
        _header()
        .add("reset", 1, "write 0 (GEMM; ALU ignores it)")
        .add("uop_bgn", bits, "first micro-op")
        .add("uop_end", bits + 1, "one past the last micro-op")
        .add("iter_out", ITER_BITS, "outer loop count")
        .add("iter_in", ITER_BITS, "inner loop count")
    )


def _gemm_format(config: CoreConfig) -> Format:
    return _product_format("GEMM", "write the product instead of adding it", config)


def _window_format(config: CoreConfig) -> Format:
    """GEMM's layout; the whole instruction is Vitral's."""
    gemm = _product_format("WINDOW", "write the result instead of combining it", config)
    fields = [
        replace(field, name="maximum", meaning="largest input instead of the sum of products")
        if field.name == "reset"
        else field
        for field in gemm
    ]
    return Format("WINDOW", tuple(fields)).check()


def _product_format(name: str, overwrite: str, config: CoreConfig) -> Format:
    """Layout of instructions that combine INP and WGT elements into ACC elements."""
    layout = config.layout
    packer = _loop_header(config)
    for operand, bits in (
        ("dst", layout.acc_index_bits),
        ("src", layout.inp_index_bits),
        ("wgt", layout.wgt_index_bits),
    ):
        packer.add(f"{operand}_factor_out", bits, f"added to {operand} per outer iteration")
        packer.add(f"{operand}_factor_in", bits, f"added to {operand} per inner iteration")
    packer.add("overwrite", 1, overwrite, at=WORD_BITS - 1, profile=Profile.VITRAL)
    return packer.format(name)


def _alu_format(config: CoreConfig) -> Format:
    packer = _loop_header(config)
    packer.fields = [field for field in packer.fields if field.name != "reset"]
    for name in ("dst", "src"):
        bits = config.layout.acc_index_bits
        packer.add(f"{name}_factor_out", bits, f"added to {name} per outer iteration")
        packer.add(f"{name}_factor_in", bits, f"added to {name} per inner iteration")
    packer.add("alu_opcode", 3, "ALU operation")
    packer.add("use_imm", 1, "second operand is the immediate")
    packer.add("imm", 16, "immediate, sign-extended", signed=True)
    return packer.format("ALU")


def _config_format() -> Format:
    packer = _header()
    packer.add("stage", 2, "stage whose register is written", profile=Profile.VITRAL)
    packer.add("register", 7, "number of the register", profile=Profile.VITRAL)
    packer.add("value", 32, "value", at=WORD_BITS, signed=True, profile=Profile.VITRAL)
    return packer.format("CONFIG")


def _uop_format(name: str, fields: tuple[tuple[str, int, str], ...]) -> Format:
    packer = Packer()
    for field, width, meaning in fields:
        packer.add(field, width, meaning)
    return packer.format(name, UOP_BITS)


def _param_format() -> Format:
    packer = Packer()
    packer.add("bias", 32, "int32, added to the accumulator (33-bit sum)", signed=True)
    packer.add("mult", 31, "unsigned multiplier")
    packer.add("shift", 8, "unsigned right shift of the product", at=64)
    packer.add("zero_point", 16, "int16, added after rounding", at=80, signed=True)
    packer.add("low", 16, "int16, smallest result", signed=True)
    packer.add("high", 16, "int16, largest result", signed=True)
    return packer.format("PARAM lane")


PARAM_FIELDS = _param_format()
"""One lane (output channel) of a parameter entry: 16 bytes, little endian."""


def _window_fields() -> Format:
    packer = Packer()
    packer.add("extra_taps", 2, "taps beyond the first")
    packer.add("half_step", 14, "half of the even number below the distance between taps")
    return packer.format("WINDOW register", 32)


WINDOW_FIELDS = _window_fields()
"""Value of ConfigRegister.WINDOW; its other bits must be 0."""


def window_value(taps: int, distance: int) -> int:
    """Value of ConfigRegister.WINDOW for `taps` INP elements, `distance` (odd) elements apart.

    Raises
    ------
    IsaError
        When taps or distance cannot be encoded.
    """
    if distance % 2 == 0:
        raise IsaError(f"WINDOW: distance must be odd, got {distance}")
    values = {"extra_taps": taps - 1, "half_step": distance // 2}
    return sum(field.insert(values[field.name], "WINDOW") for field in WINDOW_FIELDS)


def window_of(value: int) -> tuple[int, int]:
    """Taps and distance that a value of ConfigRegister.WINDOW stands for."""
    fields = {field.name: field.extract(value) for field in WINDOW_FIELDS}
    return 1 + fields["extra_taps"], 1 + 2 * fields["half_step"]


_INSN_CLASS: dict[Opcode, type[Instruction]] = {
    Opcode.LOAD: Load,
    Opcode.STORE: Store,
    Opcode.GEMM: Gemm,
    Opcode.FINISH: Finish,
    Opcode.ALU: Alu,
    Opcode.CONFIG: Config,
    Opcode.WINDOW: Window,
}
_OPCODE = {cls: opcode for opcode, cls in _INSN_CLASS.items()}
_FIELD_TYPES = {
    "pop_prev": bool,
    "pop_next": bool,
    "push_prev": bool,
    "push_next": bool,
    "reset": bool,
    "maximum": bool,
    "overwrite": bool,
    "use_imm": bool,
    "requant": bool,
    "pad_value": bool,
    "memory": Memory,
    "alu_opcode": AluOp,
    "rounding": Rounding,
    "advance": Advance,
    "stage": Stage,
}
_LOADABLE = {
    Profile.VTA: {Memory.UOP, Memory.WGT, Memory.INP, Memory.ACC, Memory.ACC_8BIT},
    Profile.VITRAL: {
        Memory.UOP,
        Memory.WGT,
        Memory.INP,
        Memory.ACC,
        Memory.ACC_8BIT,
        Memory.PARAM,
    },
}
_STORABLE = {Profile.VTA: {Memory.OUT}, Profile.VITRAL: {Memory.OUT, Memory.ACC}}
_PADDABLE = {Memory.INP, Memory.WGT, Memory.ACC, Memory.ACC_8BIT}
_UNUSED_TOKENS = {
    Stage.LOAD: ("pop_prev", "push_prev"),
    Stage.COMPUTE: (),
    Stage.STORE: ("pop_next", "push_next"),
}


class InstructionSet:
    """Formats, encoder and decoder of one configuration.

    Use :meth:`of`, which keeps one instance per configuration.

    Raises
    ------
    ConfigError
        When an instruction does not fit 128 bits or a micro-op 32.
    """

    def __init__(self, config: CoreConfig) -> None:
        layout = config.layout
        self.config = config
        self.load = _load_format()
        self.store = _store_format()
        self.gemm = _gemm_format(config)
        self.alu = _alu_format(config)
        self.finish = _header().format("FINISH")
        self.configure = _config_format()
        self.window = _window_format(config)
        self.gemm_uop = _uop_format(
            "GEMM micro-op",
            (
                ("dst", layout.acc_index_bits, "ACC element"),
                ("src", layout.inp_index_bits, "INP element"),
                ("wgt", layout.wgt_index_bits, "WGT element"),
            ),
        )
        self.alu_uop = _uop_format(
            "ALU micro-op",
            (
                ("dst", layout.acc_index_bits, "ACC element, also first operand"),
                ("src", layout.acc_index_bits, "ACC element, second operand"),
            ),
        )

        self._plans = {opcode: _plan(self.format_of(opcode)) for opcode in Opcode}
        self._encodable: set[tuple[object, ...]] = set()
        """What was encoded so far: profile, opcode, and the fields on which it depends whether
        the profile has the instruction."""

    @staticmethod
    @lru_cache(maxsize=64)
    def of(config: CoreConfig) -> "InstructionSet":
        return InstructionSet(config)

    def format_of(self, opcode: Opcode) -> Format:
        return {
            Opcode.LOAD: self.load,
            Opcode.STORE: self.store,
            Opcode.GEMM: self.gemm,
            Opcode.FINISH: self.finish,
            Opcode.ALU: self.alu,
            Opcode.CONFIG: self.configure,
            Opcode.WINDOW: self.window,
        }[opcode]

    def encode(self, insn: Instruction, profile: Profile = Profile.VITRAL) -> int:
        """The 128-bit word of an instruction.

        Raises
        ------
        IsaError
            When a field is out of range or the profile does not have the instruction.
        """
        opcode = _OPCODE[type(insn)]
        word = int(opcode)
        kind: list[object] = [opcode, profile]
        for name, position, mask, low, high, tells in self._plans[opcode]:
            value = int(getattr(insn, name))
            if not low <= value <= high:
                raise IsaError(f"{opcode.name}: {name} must be {low}..{high}, got {value}")
            word |= (value << position) & mask
            if tells:
                kind.append(value)
        if (known := tuple(kind)) not in self._encodable:
            if self.decode(word, profile) != insn:
                raise IsaError(
                    f"{opcode.name} has fields that the {profile.name} profile does not know"
                )
            self._encodable.add(known)
        return word

    def decode(self, word: int, profile: Profile = Profile.VITRAL) -> Instruction:
        """The instruction of a 128-bit word.

        Raises
        ------
        DecodeError
            For an undefined opcode, then an undefined field, then reserved bits.
        """
        code = word & 7
        last = Opcode.ALU if profile is Profile.VTA else Opcode.WINDOW
        if code > last:
            raise DecodeError(Cause.UNDEFINED_OPCODE, f"undefined opcode {code}")
        opcode = Opcode(code)
        values = self._field_values(opcode, word, profile)
        insn = _INSN_CLASS[opcode](**values)  # pyright: ignore[reportArgumentType]  # cast above
        _check_combination(insn, profile)
        return self._check_reserved(opcode, insn, word, profile)

    def _field_values(self, opcode: Opcode, word: int, profile: Profile) -> dict[str, int]:
        values: dict[str, int] = {}
        for field in self.format_of(opcode):
            if field.profile > profile or field.name == "opcode":
                continue
            kind = _FIELD_TYPES.get(field.name, int)
            raw = field.extract(word)
            try:
                values[field.name] = kind(raw)
            except ValueError:
                raise DecodeError(
                    Cause.UNDEFINED_FIELD, f"{opcode.name}: undefined {field.name} {raw}"
                ) from None
        return values

    def _check_reserved(
        self, opcode: Opcode, insn: Instruction, word: int, profile: Profile
    ) -> Instruction:
        unused = _UNUSED_TOKENS[queue_of(insn)]
        if profile is Profile.VTA:
            return replace(insn, **dict.fromkeys(unused, False))
        fmt = self.format_of(opcode)
        spare = word & ~fmt.used_mask(profile)
        for name in (*unused, *_reserved_fields(insn)):
            spare |= word & fmt[name].mask
        if spare:
            low = (spare & -spare).bit_length() - 1
            raise DecodeError(Cause.RESERVED_BITS, f"{opcode.name}: reserved bit {low} is set")
        return insn

    def encode_uop(self, uop: Uop, *, alu: bool = False) -> int:
        """The 32-bit word of a micro-op, in the GEMM or the ALU form."""
        fmt = self.alu_uop if alu else self.gemm_uop
        if alu and uop.wgt:
            raise IsaError(f"ALU micro-op: wgt must be 0, got {uop.wgt}")
        return sum(field.insert(getattr(uop, field.name), fmt.name) for field in fmt)

    def decode_uop(self, word: int, *, alu: bool = False) -> Uop:
        fmt = self.alu_uop if alu else self.gemm_uop
        return Uop(**{field.name: field.extract(word) for field in fmt})


def _plan(fmt: Format) -> list[tuple[str, int, int, int, int, bool]]:
    """Per field but the opcode: name, position, mask, range, and whether more than its range
    decides if it is legal."""
    return [
        (f.name, f.low, f.mask, *f.range, f.name in _FIELD_TYPES or f.profile > Profile.VTA)
        for f in fmt
        if f.name != "opcode"
    ]


def _check_combination(insn: Instruction, profile: Profile) -> None:
    match insn:
        case Load(memory=memory, pad_value=pad_value):
            if memory not in _LOADABLE[profile]:
                raise DecodeError(Cause.UNDEFINED_FIELD, f"LOAD: {memory.name} cannot be loaded")
            if pad_value and memory not in _PADDABLE:
                raise DecodeError(Cause.UNDEFINED_FIELD, f"LOAD: {memory.name} has no pad register")
        case Store(memory=memory, requant=requant):
            if memory not in _STORABLE[profile]:
                raise DecodeError(Cause.UNDEFINED_FIELD, f"STORE: {memory.name} cannot be stored")
            if requant and memory is not Memory.OUT:
                raise DecodeError(Cause.UNDEFINED_FIELD, "STORE: only OUT can be requantised")
        case Config(stage=stage, register=register, value=value):
            number = stage * 128 + register
            if number not in set(ConfigRegister):
                raise DecodeError(
                    Cause.UNDEFINED_FIELD, f"CONFIG: {stage.name} has no register {register}"
                )
            if number == ConfigRegister.WINDOW and value & ~WINDOW_FIELDS.used_mask(profile):
                raise DecodeError(
                    Cause.UNDEFINED_FIELD,
                    f"CONFIG: WINDOW must be 0..{WINDOW_FIELDS.used_mask(profile)}, got {value}",
                )
        case _:
            pass


def _reserved_fields(insn: Instruction) -> tuple[str, ...]:
    """Fields that the Vitral profile wants 0 in this very instruction."""
    if isinstance(insn, Store) and not insn.requant:
        return ("rounding", "advance", "param_base")
    return ()
