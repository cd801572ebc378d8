"""The load stage: tokens before and after, order of pushes, pad registers, what it waits for."""

from typing import Any

from amaranth.sim import Simulator

from vitral.config import CoreConfig
from vitral.hw.core.interfaces import Wait
from vitral.hw.core.load import LoadStage
from vitral.isa import Config, Instruction, InstructionSet, Load, Memory, Profile, Stage

CONFIG = CoreConfig()
ISA = InstructionSet.of(CONFIG)
AREA: dict[str, Any] = {
    "sram_base": 3,
    "dram_base": 70,
    "y_size": 2,
    "x_size": 4,
    "x_stride": 9,
    "y_pad_1": 5,
}


def simulate(bench: Any, profile: Profile = Profile.VITRAL) -> None:
    part = LoadStage(CONFIG)

    async def run(ctx: Any) -> None:
        ctx.set(part.profile, int(profile))
        ctx.set(part.command.ready, 1)
        ctx.set(part.next.room, 1)
        await bench(ctx, part)

    sim = Simulator(part)
    sim.add_clock(1e-6)
    sim.add_testbench(run)
    sim.run()


def offer(ctx: Any, part: LoadStage, insn: Instruction | int, index: int = 0) -> None:
    word = insn if isinstance(insn, int) else ISA.encode(insn)
    ctx.set(part.insn.p.word, word)
    ctx.set(part.insn.p.index, index)
    ctx.set(part.insn.valid, 1)


def test_command_has_the_fields_of_the_instruction() -> None:
    async def bench(ctx: Any, part: LoadStage) -> None:
        offer(ctx, part, Load(memory=Memory.WGT, pad_value=True, push_next=True, **AREA), 77)
        assert ctx.get(part.command.valid) == 1
        for name, value in {**AREA, "memory": Memory.WGT, "pad_value": 1, "x_pad_0": 0}.items():
            assert ctx.get(getattr(part.command.p, name)) == value, name
        assert ctx.get(part.command.p.ticket.index) == 77
        assert (ctx.get(part.insn.ready), ctx.get(part.next.take)) == (1, 0)

    simulate(bench)


def test_vta_profile_ignores_pad_value_and_previous_tokens() -> None:
    word = ISA.encode(Load(memory=Memory.INP, pad_value=True, **AREA))
    word |= ISA.load["pop_prev"].mask | ISA.load["push_prev"].mask

    async def bench(ctx: Any, part: LoadStage) -> None:
        offer(ctx, part, word)
        assert (ctx.get(part.command.valid), ctx.get(part.command.p.pad_value)) == (1, 0)

    simulate(bench, Profile.VTA)


def test_waits_for_its_token_and_takes_it_with_the_command() -> None:
    async def bench(ctx: Any, part: LoadStage) -> None:
        offer(ctx, part, Load(memory=Memory.INP, pop_next=True, **AREA))
        assert (ctx.get(part.command.valid), ctx.get(part.wait)) == (0, Wait.POP_NEXT)
        ctx.set(part.next.available, 1)
        assert (ctx.get(part.command.valid), ctx.get(part.next.take)) == (1, 1)
        ctx.set(part.command.ready, 0)
        assert (ctx.get(part.next.take), ctx.get(part.insn.ready)) == (0, 0)

    simulate(bench)


def test_gives_tokens_only_for_tickets_that_ask_and_when_there_is_room() -> None:
    async def bench(ctx: Any, part: LoadStage) -> None:
        offer(ctx, part, Load(memory=Memory.INP, push_next=True, **AREA))
        tag = ctx.get(part.command.p.ticket.tag)
        ctx.set(part.insn.valid, 0)
        ctx.set(part.done.valid, 1)
        assert (ctx.get(part.next.give), ctx.get(part.done.ready)) == (0, 1)
        ctx.set(part.done.p.tag, tag)
        ctx.set(part.done.p.index, 5)
        assert (ctx.get(part.next.give), ctx.get(part.done.ready)) == (1, 1)
        ctx.set(part.next.room, 0)
        assert (ctx.get(part.next.give), ctx.get(part.done.ready)) == (0, 0)
        assert (ctx.get(part.wait), ctx.get(part.index)) == (Wait.PUSH_NEXT, 5)

    simulate(bench)


def test_config_sets_its_pad_register_for_later_commands_only() -> None:
    async def bench(ctx: Any, part: LoadStage) -> None:
        for register, port in ((0, part.pad_inp), (1, part.pad_wgt)):
            offer(ctx, part, Config(stage=Stage.LOAD, register=register, value=-7, push_next=True))
            assert ctx.get(part.command.p.x_size) == ctx.get(part.command.p.y_size) == 0
            assert ctx.get(part.command.p.ticket.tag) == 1
            assert ctx.get(port) == 0
            await ctx.tick()
            assert ctx.get(port) == -7 & 0xFF

    simulate(bench)


def test_wait_codes_of_the_engine() -> None:
    async def bench(ctx: Any, part: LoadStage) -> None:
        assert (ctx.get(part.wait), ctx.get(part.idle)) == (Wait.IDLE, 1)
        ctx.set(part.engine_busy, 1)
        assert (ctx.get(part.wait), ctx.get(part.idle)) == (Wait.BUSY, 0)
        ctx.set(part.engine_waiting, 1)
        assert ctx.get(part.wait) == Wait.MEMORY

    simulate(bench)
