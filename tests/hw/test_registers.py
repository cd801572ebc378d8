"""The register port: any order of address and data, strobes, and no answer lost."""

from typing import Any

import pytest
from amaranth.sim import Simulator
from bench.axi import Stall

from vitral.config import CoreConfig
from vitral.hw.bus.registers import RegisterFile
from vitral.isa import Memory
from vitral.registers import MAGIC, REGISTERS, Access, register

CONFIG = CoreConfig()


def _bound(process: Any, part: RegisterFile) -> Any:
    async def run(ctx: Any) -> None:
        await process(ctx, part)

    return run


def simulate(bench: Any, *others: Any) -> RegisterFile:
    part = RegisterFile(CONFIG)
    sim = Simulator(part)
    sim.add_clock(1e-6)
    for process in others:
        sim.add_testbench(_bound(process, part), background=True)
    sim.add_testbench(_bound(bench, part))
    sim.run()
    return part


async def send(ctx: Any, axi: Any, prefix: str, delay: int, **values: int) -> None:
    """Offers one AW, W or AR after `delay` cycles until it is taken."""
    for _ in range(delay):
        await ctx.tick()
    for name, value in values.items():
        ctx.set(getattr(axi, name), value)
    ctx.set(getattr(axi, f"{prefix}valid"), 1)
    while not (await ctx.tick().sample(getattr(axi, f"{prefix}ready")))[2]:
        pass
    ctx.set(getattr(axi, f"{prefix}valid"), 0)


async def answer(ctx: Any, axi: Any, prefix: str, delay: int) -> tuple[int, int]:
    """Takes one B or R after holding it back for `delay` cycles: (resp, data)."""
    for _ in range(delay):
        await ctx.tick()
    ctx.set(getattr(axi, f"{prefix}ready"), 1)
    data = axi.rdata if prefix == "r" else axi.bresp
    while True:
        _, _, valid, resp, value = await ctx.tick().sample(
            getattr(axi, f"{prefix}valid"), getattr(axi, f"{prefix}resp"), data
        )
        if valid:
            ctx.set(getattr(axi, f"{prefix}ready"), 0)
            return resp, value


async def read(ctx: Any, part: RegisterFile, offset: int, delay: int = 0) -> int:
    await send(ctx, part.axi, "ar", 0, araddr=offset)
    resp, value = await answer(ctx, part.axi, "r", delay)
    assert resp == 0
    return value


async def write(ctx: Any, part: RegisterFile, offset: int, value: int, strobes: int = 15) -> None:
    """Both channels in the same cycle."""
    axi = part.axi
    ctx.set(axi.awaddr, offset)
    ctx.set(axi.awvalid, 1)
    await send(ctx, axi, "w", 0, wdata=value, wstrb=strobes)
    ctx.set(axi.awvalid, 0)
    assert (await answer(ctx, axi, "b", 0))[0] == 0


def test_constants_and_resets() -> None:
    async def bench(ctx: Any, part: RegisterFile) -> None:
        assert await read(ctx, part, register("id").offset) == MAGIC
        assert await read(ctx, part, register("digest").offset) == CONFIG.digest32
        for entry in REGISTERS:
            if entry.access is Access.WRITE:
                for word in range(entry.words):
                    got = await read(ctx, part, entry.offset + 4 * word)
                    assert got == entry.reset >> 32 * word & 0xFFFFFFFF, entry.name
        assert await read(ctx, part, 0xFFC) == 0

    simulate(bench)


def test_every_register_is_written_apart() -> None:
    async def bench(ctx: Any, part: RegisterFile) -> None:
        written = {}
        for entry in REGISTERS:
            for word in range(entry.words):
                value = (0x01010101 * (len(written) + 7)) & 0xFFFFFFC0
                await write(ctx, part, entry.offset + 4 * word, value)
                written[entry.name, word] = (entry, value)
        await write(ctx, part, 0xFFC, 0xFFFFFFFF)
        for (_, word), (entry, value) in written.items():
            if entry.access is Access.WRITE:
                assert await read(ctx, part, entry.offset + 4 * word) == value, entry.name

    simulate(bench)


@pytest.mark.parametrize("first", ["aw", "w"])
def test_address_and_data_in_any_order(first: str) -> None:
    offset = register("insn_count").offset

    async def bench(ctx: Any, part: RegisterFile) -> None:
        parts = [("aw", {"awaddr": offset}), ("w", {"wdata": 0x12345678, "wstrb": 15})]
        if first == "w":
            parts.reverse()
        for k, (prefix, values) in enumerate(parts):
            await send(ctx, part.axi, prefix, 5 * k, **values)
        assert (await answer(ctx, part.axi, "b", 3))[0] == 0
        assert await read(ctx, part, offset, delay=4) == 0x12345678

    simulate(bench)


def test_two_addresses_before_two_data() -> None:
    offsets = (register("insn_count").offset, register("watchdog").offset)

    async def addresses(ctx: Any, part: RegisterFile) -> None:
        for offset in offsets:
            await send(ctx, part.axi, "aw", 0, awaddr=offset)

    async def bench(ctx: Any, part: RegisterFile) -> None:
        for value in (11, 22):
            await send(ctx, part.axi, "w", 6, wdata=value, wstrb=15)
        for _ in offsets:
            await answer(ctx, part.axi, "b", 0)
        assert [await read(ctx, part, offset) for offset in offsets] == [11, 22]

    simulate(bench, addresses)


def test_strobes_select_bytes() -> None:
    offset = register("insn_count").offset

    async def bench(ctx: Any, part: RegisterFile) -> None:
        await write(ctx, part, offset, 0x11223344)
        await write(ctx, part, offset, 0xAABBCCDD, strobes=0b0101)
        assert await read(ctx, part, offset) == 0x11BB33DD
        await write(ctx, part, offset, 0, strobes=0)
        assert await read(ctx, part, offset) == 0x11BB33DD

    simulate(bench)


def test_bases_are_aligned() -> None:
    async def bench(ctx: Any, part: RegisterFile) -> None:
        for memory in Memory:
            offset = register(f"{memory.name.lower()}_base").offset
            await write(ctx, part, offset, 0xFFFFFFFF)
            await write(ctx, part, offset + 4, 0xFFFFFFFF)
            assert await read(ctx, part, offset) == 0xFFFFFFC0
            assert await read(ctx, part, offset + 4) == 0xFFFFFFFF

    simulate(bench)


def test_commands_last_one_cycle() -> None:
    pulses: list[int] = []

    async def watch(ctx: Any, part: RegisterFile) -> None:
        async for _, _, control, clear in ctx.tick().sample(part.control, part.irq_status_clear):
            if control or clear:
                pulses.append(control << 4 | clear)

    async def bench(ctx: Any, part: RegisterFile) -> None:
        await write(ctx, part, register("control").offset, 2)
        await write(ctx, part, register("irq_status").offset, 1)
        await write(ctx, part, register("control").offset, 1, strobes=0b1000)

    simulate(bench, watch)
    assert pulses == [0x20, 1]


def test_no_answer_is_lost_when_held_back() -> None:
    """B and R wait for READY at random; each access has exactly one answer."""
    offset = register("insn_count").offset

    async def bench(ctx: Any, part: RegisterFile) -> None:
        hold = Stall(0.6, 9)
        for value in range(25):
            await send(ctx, part.axi, "w", 2 * hold(), wdata=value, wstrb=15)
            await send(ctx, part.axi, "aw", 3 * hold(), awaddr=offset)
            await answer(ctx, part.axi, "b", 4 * hold())
            assert await read(ctx, part, offset, delay=5 * hold()) == value

    simulate(bench)
