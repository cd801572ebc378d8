"""Bursts: for every offset around a page end, few, legal, and together exactly the run."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from vitral.config import CoreConfig
from vitral.hw.bus.bursts import PAGE_BYTES, BurstSplitter


def cut(beat: int, beats: int, *, limit: int, page: int) -> list[tuple[int, int]]:
    """(first beat, beats) of the bursts that a run takes."""
    bursts = []
    while beats:
        take = min(beats, limit, page - beat % page)
        bursts.append((beat, take))
        beat, beats = beat + take, beats - take
    return bursts


def simulate(splitter: BurstSplitter, runs: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Bursts (byte address, beats) of each run; READY comes every other cycle."""
    result: list[list[tuple[int, int]]] = [[] for _ in runs]

    async def feed(ctx: Any) -> None:
        for address, beats in runs:
            ctx.set(splitter.run.p, {"address": address, "beats": beats, "last": 1})
            ctx.set(splitter.run.valid, 1)
            while not (await ctx.tick().sample(splitter.run.ready))[2]:
                pass
        ctx.set(splitter.run.valid, 0)

    async def collect(ctx: Any) -> None:
        cycle = number = 0
        while number < len(runs):
            ctx.set(splitter.burst.ready, cycle % 3 != 2)
            _, _, valid, ready, final, address, length = await ctx.tick().sample(
                splitter.burst.valid,
                splitter.burst.ready,
                splitter.final,
                splitter.burst.p.address,
                splitter.burst.p.len,
            )
            cycle += 1
            if valid and ready:
                result[number].append((address, length + 1))
                number += final
            assert cycle < 20000, "a run did not end"

    sim = Simulator(splitter)
    sim.add_clock(1e-6)
    sim.add_testbench(feed)
    sim.add_testbench(collect)
    sim.run()
    return result


@pytest.mark.parametrize(("limit", "bits"), [(1, 64), (16, 64), (256, 64), (16, 128), (64, 512)])
def test_every_offset_around_a_page_end(limit: int, bits: int) -> None:
    config = CoreConfig(data_bits=bits, burst_beats=limit)
    size, page = bits // 8, PAGE_BYTES * 8 // bits
    longest = 700 if limit > 1 else 40
    starts = [(page - 32 + k, 1 + (53 * k) % longest) for k in range(64)]
    starts += [(page - n, n) for n in (1, 2, limit)] + [(5 * page, page), (5 * page, page + 1)]
    runs = [(beat * size, beats) for beat, beats in starts]
    wanted = [
        [(first * size, n) for first, n in cut(beat, beats, limit=limit, page=page)]
        for beat, beats in starts
    ]
    assert simulate(BurstSplitter(config, count_bits=12), runs) == wanted


def test_named_points() -> None:
    config = CoreConfig()
    runs = [(0x96A40FC0, 8), (0x1FC0, 80)]
    bursts = simulate(BurstSplitter(config, count_bits=8), runs)
    assert bursts[0] == [(0x96A40FC0, 8)]
    assert bursts[1][:2] == [(0x1FC0, 8), (0x2000, 16)]
