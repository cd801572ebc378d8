"""Stores: exactly the wanted bytes are written, once each, in legal bursts."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from amaranth import ResetInserter, Signal
from amaranth.sim import Simulator
from bench.axi import BusLog, Stall, write_slave

from vitral.config import CoreConfig
from vitral.hw.core.interfaces import granule_bytes
from vitral.hw.core.store_engine import StoreEngine
from vitral.isa import Cause, Memory, Store

GUARD = 0xA5
SMALL: dict[str, Any] = {
    "uop_buffer": 1024,
    "inp_buffer": 4096,
    "wgt_buffer": 32768,
    "acc_buffer": 65536,
}
CONFIG = CoreConfig(**SMALL)


@dataclass
class Result:
    dram: np.ndarray
    tickets: list[int]
    fault: tuple[int, int] | None
    log: BusLog
    cycles: int = 0


def _size(config: CoreConfig, store: Store) -> int:
    layout = config.layout
    return layout.acc_bytes if store.memory is Memory.ACC else layout.out_bytes


def _payload(config: CoreConfig, stores: list[Store]) -> np.ndarray:
    total = sum(store.x_size * store.y_size * _size(config, store) for store in stores)
    return np.random.default_rng(5).integers(0, 256, total, dtype=np.uint8)


def run(
    config: CoreConfig,
    stores: list[Store],
    *,
    p: float = 0.0,
    latency: int = 8,
    seed: int = 1,
    base: int = 0,
    size: int = 1 << 16,
    limits: tuple[int, int] = (0, 1 << 32),
    error_burst: int | None = None,
    stop_at: int | None = None,
) -> Result:
    """Runs the stores to the end, the fault, or until drained after `stop_at`."""
    engine = StoreEngine(config)
    dram = np.full(size, GUARD, np.uint8)
    slave, log = write_slave(
        engine.channel,
        dram,
        limit=config.burst_beats,
        latency=latency,
        stall=Stall(p, seed),
        base=base,
        error_burst=error_burst,
    )
    result = Result(dram, [], None, log)
    granule = granule_bytes(config)
    payload = _payload(config, stores).reshape(-1, granule)

    async def feed(ctx: Any) -> None:
        late = Stall(p / 2, seed + 1)
        for word in payload:
            while late():
                await ctx.tick()
            ctx.set(engine.data.p, int.from_bytes(word.tobytes(), "little"))
            ctx.set(engine.data.valid, 1)
            while not (await ctx.tick().sample(engine.data.ready))[2]:
                pass
            ctx.set(engine.data.valid, 0)

    async def drive(ctx: Any) -> None:
        held = Stall(p, seed + 2)
        ctx.set(engine.base_out, base)
        ctx.set(engine.base_acc, base)
        ctx.set(engine.limits.low, limits[0])
        ctx.set(engine.limits.high, limits[1])
        issued = 0
        while len(result.tickets) < len(stores) and result.fault is None:
            if issued < len(stores):
                _put(ctx, engine.command, stores[issued], issued)
            ctx.set(engine.command.valid, issued < len(stores))
            ctx.set(engine.done.ready, not held())
            ctx.set(engine.stop, stop_at is not None and result.cycles >= stop_at)
            (
                _,
                _,
                taken,
                done,
                ready,
                ticket,
                fault,
                cause,
                index,
                pending,
            ) = await ctx.tick().sample(
                engine.command.ready,
                engine.done.valid,
                engine.done.ready,
                engine.done.p.index,
                engine.fault.valid,
                engine.fault.cause,
                engine.fault.index,
                engine.pending,
            )
            issued += bool(taken and issued < len(stores))
            if done and ready:
                result.tickets.append(ticket)
            if fault:
                result.fault = (cause, index)
            result.cycles += 1
            if stop_at is not None and result.cycles > stop_at and not pending:
                return
            assert result.cycles < 50000, f"stuck after {len(result.tickets)} stores"

    sim = Simulator(engine)
    sim.add_clock(1e-6)
    sim.add_testbench(slave, background=True)
    sim.add_testbench(feed, background=True)
    sim.add_testbench(drive)
    sim.run()
    return result


def _put(ctx: Any, command: Any, store: Store, index: int) -> None:
    ctx.set(command.p.ticket.index, index)
    ctx.set(command.p.wide, store.memory is Memory.ACC)
    for name in ("dram_base", "y_size", "x_size", "x_stride"):
        ctx.set(getattr(command.p, name), getattr(store, name))


def check(config: CoreConfig, stores: list[Store], **how: Any) -> Result:
    result = run(config, stores, **how)
    assert result.fault is None
    assert result.tickets == list(range(len(stores)))
    assert result.log.most_in_flight <= config.outstanding
    want = np.full_like(result.dram, GUARD)
    payload = _payload(config, stores)
    writes: dict[int, int] = {}
    at = 0
    for store in stores:
        size = _size(config, store)
        for y in range(store.y_size):
            start = (store.dram_base + y * store.x_stride) * size
            row = payload[at : at + store.x_size * size]
            want[start : start + len(row)] = row
            at += len(row)
            for byte in range(start, start + len(row)):
                writes[byte] = writes.get(byte, 0) + 1
    assert np.array_equal(result.dram, want), f"{stores} {how}"
    base = how.get("base", 0)
    assert result.log.written == {base + byte: n for byte, n in writes.items()}
    return result


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9])
def test_rows_of_out_and_acc(p: float) -> None:
    stores = [
        Store(dram_base=3, y_size=3, x_size=5, x_stride=7),
        Store(memory=Memory.ACC, dram_base=40, y_size=2, x_size=2, x_stride=3),
        Store(dram_base=400, y_size=1, x_size=1),
    ]
    check(CONFIG, stores, p=p)


@pytest.mark.parametrize(("block", "bits"), [(4, 64), (4, 512), (8, 128), (16, 256), (32, 64)])
@pytest.mark.parametrize("p", [0.0, 0.4])
def test_strobes_are_exact_for_every_block_and_bus(block: int, bits: int, p: float) -> None:
    config = replace(CONFIG, block=block, data_bits=bits)
    stores = [
        Store(dram_base=16 * k + k % 8, y_size=2, x_size=1 + k, x_stride=9 + k % 2)
        for k in range(8)
    ]
    stores += [Store(memory=Memory.ACC, dram_base=121 + k, y_size=1, x_size=1) for k in range(4)]
    check(config, stores, p=p)


@pytest.mark.parametrize("burst", [1, 16, 256])
@pytest.mark.parametrize("block", [4, 16])
def test_bursts_around_a_page_end(burst: int, block: int) -> None:
    config = replace(CONFIG, burst_beats=burst, block=block, acc_buffer=8192)
    size = config.layout.out_bytes
    stores = [
        Store(dram_base=(4096 - 256 + 8 * k) // size, y_size=1, x_size=1 + (7 * k) % 70)
        for k in range(0, 64, 5)
    ]
    check(config, stores, latency=2)


def test_abutting_rows_are_one_transfer() -> None:
    apart = Store(dram_base=64, y_size=8, x_size=1, x_stride=2)
    joined = Store(dram_base=0, y_size=8, x_size=1, x_stride=1)
    assert len(check(CONFIG, [joined, apart]).log.bursts) == 1 + 8


def test_burst_may_start_anywhere_and_fill_the_page() -> None:
    store = Store(dram_base=0x40FC0 // 16, y_size=1, x_size=4)
    result = check(CONFIG, [store], size=1 << 19, base=0)
    assert result.log.bursts == [(0x40FC0, 8)]


def test_empty_stores_keep_their_place() -> None:
    empty = Store(y_size=0, x_size=5)
    real = Store(dram_base=9, y_size=1, x_size=2)
    check(CONFIG, [empty, real, empty, replace(real, dram_base=30), empty], p=0.3)


def test_later_store_issues_before_the_answer_to_an_earlier_one() -> None:
    stores = [Store(dram_base=8 * k, y_size=1, x_size=4) for k in range(4)]
    result = check(CONFIG, stores, latency=100)
    assert result.cycles < 150


def test_stores_run_at_the_rate_of_the_bus() -> None:
    stores = [Store(dram_base=128 * k, y_size=1, x_size=128) for k in range(2)]
    result = check(CONFIG, stores)
    assert result.cycles <= 2 * 256 + 16


@pytest.mark.parametrize(
    ("limits", "fault"),
    [((64, 256), None), ((65, 256), (Cause.DRAM_BOUNDS, 0)), ((64, 255), (Cause.DRAM_BOUNDS, 1))],
)
def test_limits_are_exact(limits: tuple[int, int], fault: tuple[int, int] | None) -> None:
    stores = [Store(dram_base=4, y_size=1, x_size=2), Store(dram_base=14, y_size=1, x_size=2)]
    result = run(CONFIG, stores, limits=limits)
    assert result.fault == fault
    assert all(limits[0] <= byte < limits[1] for byte in result.log.written)


def test_bus_error_names_the_instruction() -> None:
    stores = [Store(dram_base=16 * k, y_size=1, x_size=12) for k in range(3)]
    assert run(CONFIG, stores, error_burst=3).fault == (Cause.BUS_WRITE, 1)


def test_stop_finishes_the_promised_beats_without_writing() -> None:
    stores = [Store(dram_base=0, y_size=1, x_size=64)]
    result = run(CONFIG, stores, stop_at=40, p=0.5)
    assert sum(beats for _, beats in result.log.bursts) == len(result.log.beats)
    assert result.log.in_flight == 0
    assert len(result.log.written) < 64 * 16


def test_a_reset_in_the_middle_of_a_burst_is_forgotten() -> None:
    """After it, beats are counted from the start again."""
    clear = Signal()
    engine = StoreEngine(CONFIG)
    w = engine.channel.w
    lasts: list[int] = []

    async def beats(ctx: Any, count: int) -> list[int]:
        """Reset, a STORE of 8 beats, and WLAST of the first `count` of them that come."""
        ctx.set(clear, 1)
        await ctx.tick()
        ctx.set(clear, 0)
        _put(ctx, engine.command, Store(y_size=1, x_size=4, x_stride=4), 0)
        ctx.set(engine.command.valid, 1)
        await ctx.tick()
        ctx.set(engine.command.valid, 0)
        seen: list[int] = []
        for _ in range(50):
            valid, last = (await ctx.tick().sample(w.valid, w.p.last))[2:]
            seen += [last] * valid
            if len(seen) == count:
                break
        return seen

    async def bench(ctx: Any) -> None:
        ctx.set(engine.limits.high, 1 << 32)
        for port in (engine.channel.aw.ready, w.ready, engine.data.valid):
            ctx.set(port, 1)
        await beats(ctx, 3)
        lasts.extend(await beats(ctx, 8))

    sim = Simulator(ResetInserter(clear)(engine))
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert lasts == [0] * 7 + [1]
