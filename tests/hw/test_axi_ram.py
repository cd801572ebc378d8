"""Memory behind AXI: random bursts in both directions, with stalls, while words come between."""

import random
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from vitral.hw.bridge.ram import AxiRam

NBYTES = 2048
BEAT = 8
WORDS = NBYTES // BEAT
OKAY, DECERR = 0, 3
SIZE, INCR, FIXED = 3, 1, 0
SHORT, WRAP = 2, 2


class Bench:
    """A memory and what it should hold, uint8 (bytes,)."""

    def __init__(self, seed: int, *, stalls: float = 0.0) -> None:
        self.ram = AxiRam(nbytes=NBYTES, addr_bits=32, data_bits=64)
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.stalls = stalls
        self.held = np.zeros(NBYTES, np.uint8)

    def run(self, *testbenches: Any) -> None:
        sim = Simulator(self.ram)
        sim.add_clock(1e-6)
        for testbench in testbenches:
            sim.add_testbench(testbench)
        sim.run()

    async def pause(self, ctx: Any) -> None:
        while self.rng.random() < self.stalls:
            await ctx.tick()

    async def handshake(self, ctx: Any, valid: Any, ready: Any) -> None:
        ctx.set(valid, 1)
        for _ in range(100):
            if (await ctx.tick().sample(ready))[2]:
                ctx.set(valid, 0)
                return
        raise AssertionError("no ready in 100 cycles")

    async def address(
        self, ctx: Any, channel: str, at: int, beats: int, size: int = SIZE, burst: int = INCR
    ) -> None:
        axi = self.ram.axi
        for name, value in {"addr": at, "len": beats - 1, "size": size, "burst": burst}.items():
            ctx.set(getattr(axi, channel + name), value)
        await self.pause(ctx)
        await self.handshake(ctx, getattr(axi, f"{channel}valid"), getattr(axi, f"{channel}ready"))

    async def write(self, ctx: Any, at: int, beats: int, **kind: int) -> int:
        """Writes random bytes with random strobes; the response."""
        axi = self.ram.axi
        await self.address(ctx, "aw", at, beats, **kind)
        answers = []
        for beat in range(beats):
            data = self.data.integers(0, 256, BEAT, dtype=np.uint8)
            strobes = self.data.integers(0, 2, BEAT).astype(bool)
            ctx.set(axi.wdata, int.from_bytes(data.tobytes(), "little"))
            ctx.set(axi.wstrb, int(np.packbits(strobes, bitorder="little")[0]))
            ctx.set(axi.wlast, beat == beats - 1)
            await self.pause(ctx)
            await self.handshake(ctx, axi.wvalid, axi.wready)
            answers.append((at + beat * BEAT, data, strobes))
        await self.pause(ctx)
        ctx.set(axi.bready, 1)
        for _ in range(100):
            _, _, valid, response = await ctx.tick().sample(axi.bvalid, axi.bresp)
            if valid:
                break
        else:
            raise AssertionError("no response in 100 cycles")
        ctx.set(axi.bready, 0)
        if response == OKAY:
            for place, data, strobes in answers:
                self.held[place : place + BEAT][strobes] = data[strobes]
        return response

    async def read(self, ctx: Any, at: int, beats: int, **kind: int) -> tuple[bytes, set[int]]:
        """(bytes, responses); RLAST must come with the last beat only."""
        axi = self.ram.axi
        await self.address(ctx, "ar", at, beats, **kind)
        found, responses, lasts = bytearray(), set(), []
        for _ in range(100 * beats):
            ctx.set(axi.rready, self.rng.random() >= self.stalls)
            _, _, valid, ready, data, last, response = await ctx.tick().sample(
                axi.rvalid, axi.rready, axi.rdata, axi.rlast, axi.rresp
            )
            if valid and ready:
                found += data.to_bytes(BEAT, "little")
                responses.add(response)
                lasts.append(last)
                if last:
                    break
        ctx.set(axi.rready, 0)
        assert lasts == [0] * (beats - 1) + [1]
        return bytes(found), responses


@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_random_bursts(stalls: float) -> None:
    bench = Bench(3, stalls=stalls)

    async def master(ctx: Any) -> None:
        for _ in range(40):
            beats = bench.rng.randrange(1, 17)
            at = BEAT * bench.rng.randrange(WORDS - beats + 1)
            if bench.rng.random() < 0.5:
                assert await bench.write(ctx, at, beats) == OKAY
            else:
                found, responses = await bench.read(ctx, at, beats)
                assert found == bench.held[at : at + BEAT * beats].tobytes()
                assert responses == {OKAY}

    bench.run(master)
    assert bench.held.any()


def test_words_come_between_beats_and_change_none() -> None:
    """The core reads the lower half over and over, the host writes and reads the upper one."""
    bench = Bench(5, stalls=0.3)
    half = NBYTES // 2
    finished = []

    async def master(ctx: Any) -> None:
        assert await bench.write(ctx, 0, 16) == OKAY
        for _ in range(20):
            found, _ = await bench.read(ctx, 0, 16)
            assert found == bench.held[:128].tobytes()
        finished.append("master")

    async def host(ctx: Any) -> None:
        word = bench.ram.word
        rng = random.Random(6)
        for _ in range(40):
            value = rng.getrandbits(64)
            ctx.set(word.address, half // BEAT + rng.randrange(half // BEAT))
            ctx.set(word.write_data, value)
            await bench.handshake(ctx, word.write, word.write_ready)
            await bench.handshake(ctx, word.read, word.read_ready)
            assert ctx.get(word.read_data) == value
            await ctx.tick().repeat(rng.randrange(1, 6))
        finished.append("host")

    bench.run(master, host)
    assert sorted(finished) == ["host", "master"]


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        (NBYTES, {}),
        (1 << 31, {}),
        (0, {"size": SHORT}),
        (0, {"burst": FIXED}),
        (0, {"burst": WRAP}),
    ],
)
def test_what_it_cannot_do_is_answered_with_an_error(at: int, kind: dict[str, int]) -> None:
    bench = Bench(7)

    async def master(ctx: Any) -> None:
        assert await bench.write(ctx, 0, 4) == OKAY
        assert await bench.write(ctx, at, 4, **kind) == DECERR
        _, responses = await bench.read(ctx, at, 4, **kind)
        assert responses == {DECERR}
        found, responses = await bench.read(ctx, 0, 4)
        assert (found, responses) == (bench.held[:32].tobytes(), {OKAY})

    bench.run(master)
