"""Scratchpads: a beat lands where it is sent, elements read back whole."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from vitral.hw.core.scratchpad import Scratchpad


def simulate(part: Scratchpad, bench: Any) -> None:
    async def run(ctx: Any) -> None:
        await bench(ctx)

    sim = Simulator(part)
    sim.add_clock(1e-6)
    sim.add_testbench(run)
    sim.run()


async def read(ctx: Any, part: Scratchpad, element: int) -> int:
    ctx.set(part.read.address, element)
    ctx.set(part.read.en, 1)
    await ctx.tick()
    ctx.set(part.read.en, 0)
    return ctx.get(part.read.data)


async def write(ctx: Any, part: Scratchpad, **values: int) -> None:
    for name, value in values.items():
        ctx.set(getattr(part.write, name), value)
    await ctx.tick()
    ctx.set(part.write.mask, 0)


@pytest.mark.parametrize(("element", "beat"), [(16, 8), (64, 8), (16, 16)])
def test_wide_elements_are_filled_beat_by_beat(element: int, beat: int) -> None:
    part = Scratchpad(element_bytes=element, depth=8, beat_bytes=beat)
    lanes = element // beat

    async def bench(ctx: Any) -> None:
        for lane in range(lanes):
            await write(ctx, part, mask=1 << lane, row=5, data=(lane + 1) * 0x0101)
        wanted = sum((lane + 1) * 0x0101 << (8 * beat * lane) for lane in range(lanes))
        assert await read(ctx, part, 5) == wanted
        assert await read(ctx, part, 4) == 0
        await write(ctx, part, mask=(1 << lanes) - 1, row=4, data=0x77)
        assert await read(ctx, part, 4) == sum(0x77 << (8 * beat * k) for k in range(lanes))

    simulate(part, bench)


@pytest.mark.parametrize("parts", [2, 4])
def test_parts_of_an_element_are_read_one_by_one(parts: int) -> None:
    part = Scratchpad(element_bytes=128, depth=4, beat_bytes=8, parts=parts)
    lanes = 16 // parts

    async def bench(ctx: Any) -> None:
        for lane in range(16):
            await write(ctx, part, mask=1 << lane, row=2, data=lane + 1)
        for number in range(parts):
            mask = (1 << lanes) - 1 << number * lanes
            await write(ctx, part, mask=mask, row=3, data=number + 0x70)
        for number in range(parts):
            wanted = sum(number * lanes + k + 1 << 64 * k for k in range(lanes))
            assert await read(ctx, part, 2 * parts + number) == wanted
            wanted = sum(number + 0x70 << 64 * k for k in range(lanes))
            assert await read(ctx, part, 3 * parts + number) == wanted
            assert await read(ctx, part, number) == 0

    simulate(part, bench)


def test_a_pad_between_the_beats_of_an_element_leaves_it_alone() -> None:
    part = Scratchpad(element_bytes=64, depth=8, beat_bytes=8)

    async def bench(ctx: Any) -> None:
        for lane in range(8):
            await write(ctx, part, mask=1 << lane, row=5, data=lane + 1)
            await write(ctx, part, mask=0xFF, row=lane % 4, data=0x55)
        assert await read(ctx, part, 5) == sum(lane + 1 << 64 * lane for lane in range(8))
        assert await read(ctx, part, 3) == sum(0x55 << 64 * lane for lane in range(8))

    simulate(part, bench)


@pytest.mark.parametrize("beat", [8, 16])
def test_narrow_elements_land_in_two_rows_at_once(beat: int) -> None:
    part = Scratchpad(element_bytes=4, depth=32, beat_bytes=beat)
    lanes = beat // 4

    async def bench(ctx: Any) -> None:
        data = sum((lane + 10) << 32 * lane for lane in range(lanes))
        await write(ctx, part, mask=(1 << lanes) - 1, row=2, next=1, data=data)
        wanted = {2 * lanes + lane: lane + 10 for lane in range(1, lanes)} | {3 * lanes: 10}
        for element in range(2 * lanes, 4 * lanes):
            assert await read(ctx, part, element) == wanted.get(element, 0)

    simulate(part, bench)


@pytest.mark.parametrize("element", [4, 16])
def test_data_holds_until_the_next_read(element: int) -> None:
    part = Scratchpad(element_bytes=element, depth=16, beat_bytes=8)

    async def bench(ctx: Any) -> None:
        narrow = {} if element > 8 else {"next": 0}
        await write(ctx, part, mask=1, row=3, data=42, **narrow)
        at = 3 * (8 // element) if element < 8 else 3
        assert await read(ctx, part, at) == 42
        ctx.set(part.read.address, 0)
        await write(ctx, part, mask=1, row=3, data=43, **narrow)
        await ctx.tick().repeat(3)
        assert ctx.get(part.read.data) == 42
        assert await read(ctx, part, at) == 43

    simulate(part, bench)


@pytest.mark.parametrize(("element", "beat"), [(16, 8), (16, 16), (8, 8), (4, 8), (4, 16), (2, 16)])
@pytest.mark.parametrize("distance", [1, 3, 7])
def test_reads_at_an_odd_distance_are_served_at_once(
    element: int, beat: int, distance: int
) -> None:
    part = Scratchpad(element_bytes=element, depth=64, beat_bytes=beat, reads=4)
    columns = max(beat // element, 1)

    async def bench(ctx: Any) -> None:
        for row in range(64 // columns):
            data = sum((row * columns + n + 1) << 8 * element * n for n in range(columns))
            mask = (1 << max(columns, element // beat)) - 1
            if columns > 1:
                await write(ctx, part, mask=mask, row=row, data=data, next=0)
            else:
                await write(ctx, part, mask=mask, row=row, data=data)
        for first in range(64 - 3 * distance):
            for number, port in enumerate(part.read):
                ctx.set(port.en, 1)
                ctx.set(port.address, first + number * distance)
            await ctx.tick()
            for number, port in enumerate(part.read):
                value = ctx.get(port.data) % (1 << 8 * min(element, beat))
                assert value == first + number * distance + 1

    simulate(part, bench)
