"""Random programs that are legal by construction, and whose result no legal order changes."""

import random
from collections import Counter
from dataclasses import dataclass

from programs.assembled import words_as_bytes
from programs.image import Image, make_image
from programs.instructions import Maker
from programs.tokens import TokenPlacer
from vitral.assembly import disassemble
from vitral.config import CoreConfig
from vitral.isa import (
    Finish,
    Instruction,
    InstructionSet,
    Opcode,
    Profile,
    Stage,
    queue_of,
)
from vitral.program import Dram, Launch, OnChip

__all__ = ["Program", "generate"]


@dataclass(frozen=True)
class Program:
    """A program and the state it starts from; runs go on copies of `dram` and `onchip`."""

    seed: int
    config: CoreConfig
    launch: Launch
    dram: Dram
    onchip: OnChip
    words: tuple[int, ...]
    coverage: Counter[str]

    @property
    def text(self) -> str:
        """The listing, one numbered line per instruction."""
        isa = InstructionSet.of(self.config)
        lines = (disassemble(word, self.launch.profile, isa) for word in self.words)
        return "\n".join(f"{number:4} {line}" for number, line in enumerate(lines))


def generate(
    seed: int,
    config: CoreConfig,
    *,
    length: int | None = None,
    profile: Profile | None = None,
) -> Program:
    """The program of a seed: about `length` instructions, plus those that only move tokens.
    The same arguments always give the same program.
    """
    rng = random.Random(f"{seed} {config.digest}")
    profile = (
        rng.choice((Profile.VTA, Profile.VITRAL, Profile.VITRAL)) if profile is None else profile
    )
    image = make_image(config, profile, rng)
    maker = Maker(config, profile, image, rng)
    placer = TokenPlacer(config, image.dram.data.size, rng)
    for _ in range(rng.randrange(4, 20) if length is None else length):
        insn, accesses, own_pop = maker.next()
        placer.place(insn, accesses, own_pop=own_pop)
    placer.drain(Finish())
    insns = [item.insn for item in placer.placed]
    words = _words(insns, config, profile, rng)
    return Program(
        seed=seed,
        config=config,
        launch=_place_code(words, profile, image, rng),
        dram=image.dram,
        onchip=image.onchip,
        words=tuple(words),
        coverage=maker.coverage + _token_coverage(insns),
    )


def _place_code(words: list[int], profile: Profile, image: Image, rng: random.Random) -> Launch:
    start = image.dram.base + image.code[0] + rng.randrange(8) * 64
    image.dram.write(start, words_as_bytes(words))
    low, high = image.dram.base, image.dram.end
    return Launch(
        insn_base=start,
        insn_count=len(words),
        profile=profile,
        bases=image.bases,
        limit_low=low + image.code[0] if rng.random() < 0.5 else 0,
        limit_high=image.dram.base + image.work[1] if rng.random() < 0.5 else high,
    )


def _words(
    insns: list[Instruction], config: CoreConfig, profile: Profile, rng: random.Random
) -> list[int]:
    """Encodings; in the VTA profile some carry bits that must be ignored."""
    isa = InstructionSet.of(config)
    words = [isa.encode(insn, profile) for insn in insns]
    if profile is Profile.VTA:
        noise = [rng.getrandbits(128) & _ignored(insn, isa) for insn in insns]
        words = [
            word | (bits if rng.random() < 0.3 else 0)
            for word, bits in zip(words, noise, strict=True)
        ]
    return words


def _ignored(insn: Instruction, isa: InstructionSet) -> int:
    """Bits that the VTA profile ignores in an instruction."""
    fmt = isa.format_of(Opcode[type(insn).__name__.upper()])
    mask = (1 << 128) - 1 & ~fmt.used_mask(Profile.VTA)
    foreign = {
        Stage.LOAD: ("pop_prev", "push_prev"),
        Stage.STORE: ("pop_next", "push_next"),
    }
    return mask | sum(fmt[name].mask for name in foreign.get(queue_of(insn), ()))


def _token_coverage(insns: list[Instruction]) -> Counter[str]:
    flags = ("pop_prev", "pop_next", "push_prev", "push_next")
    return Counter(
        f"token {queue_of(insn).name} {flag}"
        for insn in insns
        for flag in flags
        if getattr(insn, flag)
    )
