"""Tokens: each link counts apart, up to its capacity."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from vitral.config import CoreConfig
from vitral.hw.core.tokens import TokenCounters

LINKS = [
    ("load_next", "compute_prev"),
    ("compute_prev", "load_next"),
    ("compute_next", "store_prev"),
    ("store_prev", "compute_next"),
]


def simulate(capacity: int, bench: Any) -> None:
    part = TokenCounters(CoreConfig(token_capacity=capacity))

    async def run(ctx: Any) -> None:
        await bench(ctx, part)

    sim = Simulator(part)
    sim.add_clock(1e-6)
    sim.add_testbench(run)
    sim.run()


@pytest.mark.parametrize(("giver", "taker"), LINKS)
@pytest.mark.parametrize("capacity", [1, 3])
def test_link_fills_and_empties(capacity: int, giver: str, taker: str) -> None:
    async def bench(ctx: Any, part: TokenCounters) -> None:
        give, take = getattr(part, giver), getattr(part, taker)
        others = [getattr(part, name) for _, name in LINKS if name != taker]
        ctx.set(give.give, 1)
        for count in range(capacity):
            assert (ctx.get(take.available), ctx.get(give.room)) == (count > 0, 1)
            await ctx.tick()
        ctx.set(give.give, 0)
        assert (ctx.get(take.available), ctx.get(give.room), ctx.get(part.left)) == (1, 0, 1)
        assert not any(ctx.get(other.available) for other in others)
        ctx.set(take.take, 1)
        await ctx.tick().repeat(capacity)
        ctx.set(take.take, 0)
        assert (ctx.get(take.available), ctx.get(give.room), ctx.get(part.left)) == (0, 1, 0)

    simulate(capacity, bench)


def test_give_and_take_in_one_cycle_keep_the_count() -> None:
    async def bench(ctx: Any, part: TokenCounters) -> None:
        ctx.set(part.load_next.give, 1)
        await ctx.tick()
        ctx.set(part.compute_prev.take, 1)
        await ctx.tick().repeat(10)
        ctx.set(part.load_next.give, 0)
        assert ctx.get(part.compute_prev.available) == 1
        await ctx.tick()
        assert ctx.get(part.compute_prev.available) == 0

    simulate(2, bench)
