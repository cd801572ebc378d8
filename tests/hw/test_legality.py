"""The RTL's check of instruction words agrees with the instruction set's decoder."""

import random

import pytest
from amaranth.sim import Simulator

from vitral.config import CoreConfig
from vitral.hw.core.legality import Legality
from vitral.isa import INSN_BITS, Cause, DecodeError, InstructionSet, Opcode, Profile, queue_of

CONFIGS = [CoreConfig(), CoreConfig(block=32)]


def _verdict(isa: InstructionSet, word: int, profile: Profile) -> tuple[Cause, int | None]:
    try:
        insn = isa.decode(word, profile)
    except DecodeError as error:
        return error.cause, None
    return Cause.NONE, queue_of(insn)


def _words(isa: InstructionSet, rng: random.Random) -> list[int]:
    """Words of all densities, most of them with one or two fields set."""
    words = []
    for _ in range(1500):
        opcode = rng.randrange(8)
        word = opcode
        if opcode in set(Opcode):
            fields = list(isa.format_of(Opcode(opcode)))
            for field in rng.sample(fields, min(len(fields), rng.randrange(6))):
                word |= rng.getrandbits(field.width) << field.low
        if rng.random() < 0.2:
            word |= 1 << rng.randrange(INSN_BITS)
        if rng.random() < 0.1:
            word |= rng.getrandbits(INSN_BITS) & ~7
        words.append(word & ~7 | opcode)
    return words


@pytest.mark.parametrize("config", CONFIGS, ids=["default", "block32"])
def test_cause_and_stage_are_the_decoders(config: CoreConfig) -> None:
    isa = InstructionSet.of(config)
    check = Legality(config)
    rng = random.Random(11)
    cases = [(word, profile) for word in _words(isa, rng) for profile in Profile]
    seen = set()

    async def bench(ctx) -> None:
        for word, profile in cases:
            ctx.set(check.word, word)
            ctx.set(check.profile, int(profile))
            await ctx.delay(1e-9)
            cause, stage = _verdict(isa, word, profile)
            seen.add(cause)
            assert ctx.get(check.cause) == cause, f"{word:#034x} {profile.name}"
            if stage is not None:
                assert ctx.get(check.stage) == stage, f"{word:#034x} {profile.name}"
            assert ctx.get(check.finish) == (word & 7 == Opcode.FINISH)

    sim = Simulator(check)
    sim.add_testbench(bench)
    sim.run()
    assert seen == {
        Cause.NONE,
        Cause.UNDEFINED_OPCODE,
        Cause.UNDEFINED_FIELD,
        Cause.RESERVED_BITS,
    }
