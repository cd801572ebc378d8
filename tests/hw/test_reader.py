"""The read arbiter: every client gets its own beats, in order; turns are fair; stop stops."""

import random
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator
from bench.axi import BusLog, Stall, read_slave

from vitral.config import CoreConfig
from vitral.hw.bus.reader import Reader

CONFIG = CoreConfig(outstanding=4)
CLIENTS = 3
MEMORY = np.random.default_rng(2).integers(0, 256, 1 << 14, dtype=np.uint8)


def words(address: int, beats: int) -> list[int]:
    data = MEMORY[address : address + 8 * beats].tobytes()
    return [int.from_bytes(data[8 * k :][:8], "little") for k in range(beats)]


def run(
    requests: list[list[tuple[int, int]]],
    *,
    p: float = 0.0,
    stop_at: int | None = None,
    defer: bool = False,
) -> tuple[list[list[int]], BusLog]:
    """The beats that each client received, and the bus's log."""
    reader = Reader(CONFIG, clients=CLIENTS)
    slave, log = read_slave(reader.channel, MEMORY, limit=16, latency=20, stall=Stall(p, 1))
    got: list[list[int]] = [[] for _ in range(CLIENTS)]

    def asker(number: int) -> Any:
        async def ask(ctx: Any) -> None:
            request = reader.clients[number].request
            for address, beats in requests[number]:
                ctx.set(request.p, {"address": address, "len": beats - 1})
                ctx.set(request.valid, 1)
                while not (await ctx.tick().sample(request.ready))[2]:
                    pass
                ctx.set(request.valid, 0)
                if p:
                    await ctx.tick()

        return ask

    async def watch(ctx: Any) -> None:
        total = sum(beats for client in requests for _, beats in client)
        ports = [(client.valid, client.data) for client in reader.clients]
        for cycle in range(6000):
            ctx.set(reader.stop, stop_at is not None and cycle >= stop_at)
            ctx.set(reader.defer, defer)
            sampled = await ctx.tick().sample(reader.busy, *(s for port in ports for s in port))
            for number in range(CLIENTS):
                valid, data = sampled[3 + 2 * number : 5 + 2 * number]
                if valid:
                    got[number].append(data)
            if stop_at is not None and cycle > stop_at and not sampled[2]:
                break
            if sum(map(len, got)) == total:
                break

    sim = Simulator(reader)
    sim.add_clock(1e-6)
    sim.add_testbench(slave, background=True)
    for number in range(CLIENTS):
        sim.add_testbench(asker(number), background=True)
    sim.add_testbench(watch)
    sim.run()
    return got, log


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5])
def test_clients_get_their_own_beats_in_order(p: float) -> None:
    rng = random.Random(8)
    requests = [
        [(4096 * k + 128 * rng.randrange(30), rng.randrange(1, 17)) for _ in range(12)]
        for k in range(CLIENTS)
    ]
    got, log = run(requests, p=p)
    for number, client in enumerate(requests):
        assert got[number] == [word for ask in client for word in words(*ask)]
    assert log.most_in_flight <= CONFIG.outstanding


def test_clients_take_turns() -> None:
    requests = [[(4096 * k + 128 * n, 16) for n in range(6)] for k in range(CLIENTS)]
    _, log = run(requests)
    owners = [address // 4096 for address, _ in log.bursts]
    for turn in range(6):
        assert sorted(owners[CLIENTS * turn :][:CLIENTS]) == list(range(CLIENTS))


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_the_first_client_can_let_the_others_go_first(p: float) -> None:
    requests = [[(4096 * k + 128 * n, 16) for n in range(6)] for k in range(CLIENTS)]
    got, log = run(requests, p=p, defer=True)
    owners = [address // 4096 for address, _ in log.bursts]
    assert sorted(owners) == sorted(6 * list(range(CLIENTS)))
    if not p:  # with pauses the others leave gaps; at the very start nobody else asks
        assert 0 not in owners[1:-6]
    for number, client in enumerate(requests):
        assert got[number] == [word for ask in client for word in words(*ask)]


def test_stop_lets_no_new_burst_start_and_drains() -> None:
    requests = [[(4096 * k + 128 * n, 16) for n in range(30)] for k in range(CLIENTS)]
    got, log = run(requests, stop_at=60, p=0.3)
    assert log.in_flight == 0
    assert sum(map(len, got)) == sum(beats for _, beats in log.bursts)
    assert len(log.bursts) < 30
