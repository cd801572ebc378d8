"""The multiplier array: both bodies give the exact sums, whatever the operands."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, Signal, signed
from amaranth.sim import Simulator
from bench.execute import pack, small_config, unpack

from vitral.hw.core.mac import MacArray
from vitral.hw.core.operands import TAPS
from vitral.hw.core.products import packed_products

EDGES = (-128, -127, -65, -1, 0, 1, 64, 127)


def test_two_products_are_one_exhaustively() -> None:
    """All 2**24 operands of the expression that `packed_products` builds."""
    first, second = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    for x in range(-128, 128):
        product = ((second << 16) + first) * x
        low = product.astype(np.int16)
        high = (product >> 16) + (product >> 15 & 1)
        assert np.array_equal(low, x * first), f"x = {x}"
        assert np.array_equal(high, x * second), f"x = {x}"
        assert abs(product).max() < 1 << 31, f"x = {x}"


class _Pair(Elaboratable):
    """`packed_products` alone."""

    def __init__(self) -> None:
        self.x, self.first, self.second = (Signal(signed(8)) for _ in range(3))
        self.low, self.high = Signal(signed(32)), Signal(signed(32))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low, high = packed_products(self.x, self.first, self.second)
        m.d.comb += [self.low.eq(low), self.high.eq(high)]
        return m


def test_hardware_splits_two_products() -> None:
    """Every x and every second factor with the edges of the first one, and the reverse."""
    dut = _Pair()

    def operands() -> Iterator[tuple[int, int, int]]:
        for edge in EDGES:
            for x in range(-128, 128, 3):
                yield from ((x, edge, other) for other in (*EDGES, x))
                yield from ((x, other, edge) for other in (*EDGES, x))

    async def run(ctx: Any) -> None:
        for x, first, second in operands():
            ctx.set(dut.x, x)
            ctx.set(dut.first, first)
            ctx.set(dut.second, second)
            await ctx.delay(1e-9)
            assert ctx.get(dut.low) == x * first, (x, first, second)
            assert ctx.get(dut.high) == x * second, (x, first, second)

    simulator = Simulator(dut)
    simulator.add_testbench(run)
    simulator.run()


Draw = Callable[[random.Random], int]


@pytest.mark.parametrize("body", ["plain", "packed16"])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    "draw",
    [lambda rng: rng.randrange(-128, 128), lambda rng: rng.choice(EDGES), lambda rng: -128],
    ids=["random", "edges", "smallest"],
)
def test_bodies_give_exact_sums(body: str, batch: int, draw: Draw) -> None:
    """Tiles, windows of 1 to 4 taps, sums and maxima, one after the other."""
    config = replace(small_config(block=8, batch=batch), mac_body=body)
    dut, rng, block = MacArray(config), random.Random(batch), 8

    async def check(ctx: Any, taps: int, maximum: bool) -> None:
        """`taps` 0 is a tile."""
        tap = [[draw(rng) for _ in range(batch * block)] for _ in range(TAPS)]
        wgt = [[draw(rng) for _ in range(block)] for _ in range(block)]
        for port, lanes in zip(dut.tap, tap, strict=True):
            ctx.set(port, pack(lanes, 8))
        ctx.set(dut.wgt, pack([lane for row in wgt for lane in row], 8))
        ctx.set(dut.more, (1 << max(taps - 1, 0)) - 1)
        ctx.set(dut.window, taps > 0)
        for port in (dut.load_maximum, dut.maximum):
            ctx.set(port, maximum)
        for enable in (dut.load, dut.multiply):
            ctx.set(enable, 1)
            await ctx.tick()
            ctx.set(enable, 0)
        got = [unpack(ctx.get(port), 32, 1)[0] for port in dut.dot]
        assert got == _expected(tap, wgt, batch, taps, maximum), (taps, maximum)

    async def run(ctx: Any) -> None:
        for _ in range(4):
            await check(ctx, 0, False)
            for taps in range(1, TAPS + 1):
                await check(ctx, taps, False)
                await check(ctx, taps, True)

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(run)
    simulator.run()


def _expected(
    tap: list[list[int]], wgt: list[list[int]], batch: int, taps: int, maximum: bool
) -> list[int]:
    block, results = len(wgt), []
    for b in range(batch):
        rows = [lanes[b * block :][:block] for lanes in tap]
        for o in range(block):
            if maximum:
                results.append(max(row[o] for row in rows[:taps]))
            elif taps:
                results.append(sum(rows[t][o] * wgt[t][o] for t in range(taps)))
            else:
                results.append(sum(x * w for x, w in zip(rows[0], wgt[o], strict=True)))
    return results
