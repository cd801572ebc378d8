"""Random programs with one mistake, of which every simulator must say the same."""

import random
from collections.abc import Callable
from dataclasses import replace

from programs.generate import Program
from vitral.isa import (
    Config,
    ConfigRegister,
    Field,
    InstructionSet,
    Opcode,
    Profile,
    Stage,
    window_value,
)

__all__ = ["MISTAKES", "broken"]

TOKEN_FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
Mistake = Callable[[Program, int, random.Random], "list[int] | None"]


def broken(program: Program, mistake: str, seed: int) -> Program | None:
    """The program with a mistake in one instruction, or None when it has no place for it.

    What such a program leaves in memory depends on the order of execution; its status does not.
    """
    rng = random.Random(f"{mistake} {program.seed} {seed}")
    places = list(range(len(program.words)))
    rng.shuffle(places)
    for place in places:
        words = MISTAKES[mistake](program, place, rng)
        if words is not None and words != list(program.words):
            return _with_words(program, words)
    return None


def _with_words(program: Program, words: list[int]) -> Program:
    dram = program.dram.copy()
    for number, word in enumerate(words):
        dram.write(program.launch.insn_base + 16 * number, word.to_bytes(16, "little"))
    launch = replace(program.launch, insn_count=len(words))
    return replace(program, dram=dram, launch=launch, words=tuple(words))


def _changed(program: Program, place: int, word: int) -> list[int]:
    return [word if n == place else old for n, old in enumerate(program.words)]


def _opcode(program: Program, place: int) -> Opcode:
    return Opcode(program.words[place] & 7)


def _set(program: Program, place: int, field: Field, value: int) -> list[int]:
    word = program.words[place] & ~field.mask | field.insert(value, "test")
    return _changed(program, place, word)


def _toggled_token(program: Program, place: int, rng: random.Random) -> list[int] | None:
    """A token flag of the stage more or less: a lost, or a left-over, token."""
    isa = InstructionSet.of(program.config)
    insn = isa.decode(program.words[place], program.launch.profile)
    fmt = isa.format_of(_opcode(program, place))
    name = rng.choice(TOKEN_FLAGS)
    toggled = program.words[place] ^ fmt[name].mask
    try:
        known = getattr(isa.decode(toggled, program.launch.profile), name)
    except ValueError:
        return None  # not a flag of that stage
    return _changed(program, place, toggled) if known != getattr(insn, name) else None


def _undefined_opcode(program: Program, place: int, rng: random.Random) -> list[int]:
    undefined = 7 if program.launch.profile is Profile.VITRAL else rng.choice((5, 6, 7))
    return _changed(program, place, program.words[place] & ~7 | undefined)


def _reserved_bit(program: Program, place: int, rng: random.Random) -> list[int] | None:
    if program.launch.profile is Profile.VTA:
        return None
    fmt = InstructionSet.of(program.config).format_of(_opcode(program, place))
    spare = [bit for bit in range(128) if not fmt.used_mask(Profile.VITRAL) >> bit & 1]
    return (
        _changed(program, place, program.words[place] | 1 << rng.choice(spare)) if spare else None
    )


def _sram_past_the_end(program: Program, place: int, rng: random.Random) -> list[int] | None:
    """Only where something is transferred at all."""
    if not _transfers(program, place):
        return None
    fmt = InstructionSet.of(program.config).format_of(_opcode(program, place))
    return _set(program, place, fmt["sram_base"], 65535)


def _dram_far_away(program: Program, place: int, rng: random.Random) -> list[int] | None:
    if not _transfers(program, place):
        return None
    fmt = InstructionSet.of(program.config).format_of(_opcode(program, place))
    return _set(program, place, fmt["dram_base"], 0xFFFFFFFF)


def _transfers(program: Program, place: int) -> bool:
    if _opcode(program, place) not in (Opcode.LOAD, Opcode.STORE):
        return False
    fmt = InstructionSet.of(program.config).format_of(_opcode(program, place))
    word = program.words[place]
    return bool(fmt["y_size"].extract(word) and fmt["x_size"].extract(word))


def _index_overflow(program: Program, place: int, rng: random.Random) -> list[int] | None:
    if _opcode(program, place) not in (Opcode.GEMM, Opcode.WINDOW, Opcode.ALU):
        return None
    fmt = InstructionSet.of(program.config).format_of(_opcode(program, place))
    names = ("iter_out", "iter_in", "uop_bgn", "uop_end")
    outer, inner, begin, end = (fmt[name].extract(program.words[place]) for name in names)
    if not outer or not inner or begin >= end:
        return None
    return _set(program, place, fmt["uop_end"], program.config.layout.uop_depth + 1)


def _window_past_inp(program: Program, place: int, rng: random.Random) -> list[int] | None:
    """The instruction before a WINDOW spreads its taps far apart."""
    isa = InstructionSet.of(program.config)
    if place == 0 or _opcode(program, place) is not Opcode.WINDOW:
        return None
    before = isa.decode(program.words[place - 1], program.launch.profile)
    if any(getattr(before, name) for name in TOKEN_FLAGS):
        return None
    far = Config(
        stage=Stage.COMPUTE,
        register=ConfigRegister.WINDOW & isa.configure["register"].range[1],
        value=window_value(rng.choice((2, 3, 4)), 32767),
    )
    return _changed(program, place - 1, isa.encode(far))


def _early_finish(program: Program, place: int, rng: random.Random) -> list[int] | None:
    if place == len(program.words) - 1:
        return None
    return _changed(program, place, int(Opcode.FINISH))


def _no_finish(program: Program, place: int, rng: random.Random) -> list[int]:
    return list(program.words[:-1])


MISTAKES: dict[str, Mistake] = {
    "token": _toggled_token,
    "opcode": _undefined_opcode,
    "reserved": _reserved_bit,
    "sram": _sram_past_the_end,
    "dram": _dram_far_away,
    "index": _index_overflow,
    "window": _window_past_inp,
    "early finish": _early_finish,
    "no finish": _no_finish,
}
