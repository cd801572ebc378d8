"""cocotb: the way of a STORE into memory: exactly the wanted bytes, whatever READY does."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.triggers import RisingEdge
from cosim.bench import Clocked, WithMemory
from cosim.monitor import watch_bus

from vitral.config import CoreConfig
from vitral.hw.core.interfaces import INDEX_BITS, StoreCommand, granule_bytes
from vitral.isa import Memory, Store

GUARD = 0xA5
MEMORY_BYTES = 1 << 14
LIMIT = 20000
Bytes = npt.NDArray[np.uint8]
CONFIG = CoreConfig(**json.loads(os.environ["CONFIG"]))
BEATS = CONFIG.layout.out_bytes // CONFIG.layout.beat_bytes
"""Beats of an OUT element."""


def _size(store: Store) -> int:
    layout = CONFIG.layout
    return layout.acc_bytes if store.memory is Memory.ACC else layout.out_bytes


def _payload(stores: Sequence[Store]) -> Bytes:
    total = sum(s.x_size * s.y_size * _size(s) for s in stores)
    return np.random.default_rng(5).integers(0, 256, total, dtype=np.uint8)


class Stores:
    """Offers commands and granules to a store path; counts what comes back.

    `sent` counts granules taken, `done` tickets, `accepted` holds (data, strobes) of W beats.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.sent = self.done = 0
        self.accepted: list[tuple[int, int]] = []
        for name in ("command_valid", "data_valid", "base_out", "base_acc", "limits_low"):
            getattr(dut, name).value = 0
        dut.limits_high.value = MEMORY_BYTES
        dut.done_ready.value = 1

    def start(self, stores: Sequence[Store]) -> None:
        granules = _payload(stores).reshape(-1, granule_bytes(CONFIG))
        words = [int.from_bytes(granule.tobytes(), "little") for granule in granules]
        cocotb.start_soon(self._commands(stores))
        cocotb.start_soon(self._data(words))
        cocotb.start_soon(self._watch())

    async def _commands(self, stores: Sequence[Store]) -> None:
        dut = self.dut
        for index, store in enumerate(stores):
            names = ("dram_base", "y_size", "x_size", "x_stride")
            payload: dict[int | str, Any] = {name: getattr(store, name) for name in names}
            payload |= {"ticket": {"index": index}, "wide": store.memory is Memory.ACC}
            dut.command_payload.value = StoreCommand.const(payload).as_bits()
            dut.command_valid.value = 1
            await self._taken(dut.command_ready)
        dut.command_valid.value = 0

    async def _data(self, words: Sequence[int]) -> None:
        dut = self.dut
        for word in words:
            dut.data_payload.value = word
            dut.data_valid.value = 1
            await self._taken(dut.data_ready)
            self.sent += 1
        dut.data_valid.value = 0

    async def _taken(self, ready: Any) -> None:
        await RisingEdge(self.dut.aclk)
        while not int(ready.value):
            await RisingEdge(self.dut.aclk)

    async def _watch(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.aclk)
            assert not int(dut.fault_valid.value), f"fault {int(dut.fault_cause.value)}"
            if int(dut.m_axi_wvalid.value) and int(dut.m_axi_wready.value):
                self.accepted.append((int(dut.m_axi_wdata.value), int(dut.m_axi_wstrb.value)))
            if int(dut.done_valid.value):
                assert int(dut.done_payload.value) % (1 << INDEX_BITS) == self.done
                self.done += 1

    async def finish(self, count: int) -> None:
        """Waits for that many tickets."""
        for _ in range(LIMIT):
            if self.done == count:
                return
            await RisingEdge(self.dut.aclk)
        raise AssertionError(f"{self.done} of {count} stores done after {LIMIT} cycles")


def _expected(stores: Sequence[Store]) -> tuple[Bytes, Counter[int]]:
    """Memory afterwards, and how often each byte is written."""
    memory = np.full(MEMORY_BYTES, GUARD, np.uint8)
    times: Counter[int] = Counter()
    left = _payload(stores)
    for store in stores:
        size = _size(store)
        for y in range(store.y_size):
            start = (store.dram_base + y * store.x_stride) * size
            row, left = left[: store.x_size * size], left[store.x_size * size :]
            memory[start : start + row.size] = row
            times.update(range(start, start + row.size))
    return memory, times


class StoreBench(WithMemory):
    """A store path with a memory of guard bytes."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, MEMORY_BYTES)
        self.stores = Stores(dut)
        self.broken = watch_bus(dut, CONFIG)
        self.memory.write(0, bytes([GUARD]) * MEMORY_BYTES)

    def check(self, stores: Sequence[Store]) -> None:
        wanted, times = _expected(stores)
        got = np.frombuffer(self.memory.read(0, MEMORY_BYTES), np.uint8)
        wrong = np.flatnonzero(got != wanted)
        assert not wrong.size, f"{wrong.size} bytes differ, the first at {wrong[0]:#x}"
        strobes = sum(strobes.bit_count() for _, strobes in self.stores.accepted)
        assert strobes == times.total(), f"{strobes} strobes for {times.total()} bytes"
        assert not self.broken, self.broken[0]


def _mixed() -> list[Store]:
    """Rows of both forms at odd places, an empty one, one across a page, two that abut."""
    return [
        Store(dram_base=3, y_size=3, x_size=5, x_stride=7),
        Store(memory=Memory.ACC, dram_base=20, y_size=2, x_size=2, x_stride=3),
        Store(y_size=0, x_size=4),
        Store(dram_base=0xFC0 // 16, y_size=1, x_size=40, x_stride=40),
        Store(dram_base=600, y_size=4, x_size=2, x_stride=2),
        Store(dram_base=701, y_size=1, x_size=1, x_stride=1),
    ]


@cocotb.test()
async def rows_with_stalls(dut: Any) -> None:
    bench = StoreBench(dut)
    await bench.reset()
    if stalls := float(os.environ["STALLS"]):
        bench.stall(stalls, int(os.environ["SEED"]))
    stores = _mixed()
    bench.stores.start(stores)
    await bench.stores.finish(len(stores))
    bench.check(stores)


@cocotb.test()
async def ready_stuck_low(dut: Any) -> None:
    """For 1,000 cycles, on each channel: no ticket meanwhile, nothing lost afterwards."""
    write = ("aw_channel", "w_channel", "b_channel")
    bench = StoreBench(dut)
    await bench.reset()
    stores = [Store(dram_base=40 * n, y_size=2, x_size=9, x_stride=11) for n in range(len(write))]
    for number, name in enumerate(write):
        channel = getattr(bench.memory.write_if, name)
        channel.pause = True
        await bench.cycles(2)
        if not number:
            bench.stores.start(stores)
        before = bench.stores.done
        await bench.cycles(1000)
        assert bench.stores.done == before, name
        channel.pause = False
        if number == len(write) - 1:
            break
        await bench.cycles(3)
    await bench.stores.finish(len(stores))
    bench.check(stores)


class Slave:
    """A write slave whose READYs are scripted, cycle by cycle.

    Beat n waits `late[n]` cycles for WREADY once its WVALID is up, bursts `address_late` cycles
    for AWREADY; a response follows when both have come.
    """

    def __init__(self, dut: Any, late: Sequence[int], address_late: int = 0) -> None:
        self.dut, self.late, self.address_late = dut, late, address_late
        self.waited: list[int] = []
        for name in ("awready", "wready", "bvalid", "bresp", "bid", "arready", "rvalid"):
            getattr(dut, f"m_axi_{name}").value = 0
        cocotb.start_soon(self._data())
        cocotb.start_soon(self._address())
        self.bursts = self.lasts = self.answered = 0
        cocotb.start_soon(self._respond())

    async def _data(self) -> None:
        dut = self.dut
        for late in self.late:
            waited = 0
            dut.m_axi_wready.value = int(late == 0)
            while True:
                await RisingEdge(dut.aclk)
                if not int(dut.m_axi_wvalid.value):
                    continue
                if waited == late:
                    break
                waited += 1
                dut.m_axi_wready.value = int(waited == late)
            self.waited.append(waited)
            self.lasts += int(dut.m_axi_wlast.value)
        dut.m_axi_wready.value = 0

    async def _address(self) -> None:
        dut = self.dut
        while True:
            waited = 0
            dut.m_axi_awready.value = int(self.address_late == 0)
            while True:
                await RisingEdge(dut.aclk)
                if not int(dut.m_axi_awvalid.value):
                    continue
                if waited == self.address_late:
                    break
                waited += 1
                dut.m_axi_awready.value = int(waited == self.address_late)
            self.bursts += 1

    async def _respond(self) -> None:
        dut = self.dut
        while True:
            owed = min(self.bursts, self.lasts) > self.answered
            dut.m_axi_bvalid.value = int(owed)
            await RisingEdge(dut.aclk)
            self.answered += owed


async def scripted(
    dut: Any, stores: Sequence[Store], late: Sequence[int], address_late: int = 0
) -> list[tuple[int, int]]:
    """Runs stores against a `Slave`; the accepted beats."""
    clock, slave = Clocked(dut), Slave(dut, late, address_late)
    driver = Stores(dut)
    broken = watch_bus(dut, CONFIG)
    await clock.reset()
    driver.start(stores)
    await driver.finish(len(stores))
    await clock.cycles(4)
    assert slave.waited == list(late)
    assert slave.answered == slave.bursts == slave.lasts
    assert not broken, broken[0]
    return driver.accepted


def _beats(stores: Sequence[Store]) -> list[tuple[int, int]]:
    """All beats of stores of whole beats."""
    size = CONFIG.layout.beat_bytes
    words = _payload(stores).reshape(-1, size)
    return [(int.from_bytes(word.tobytes(), "little"), (1 << size) - 1) for word in words]


@cocotb.test(skip=BEATS != 2)
async def second_halves_wait(dut: Any) -> None:
    """128-bit elements on a 64-bit bus, WREADY low for 3 cycles on every second half."""
    stores = [Store(dram_base=5, y_size=1, x_size=6, x_stride=6)]
    assert await scripted(dut, stores, [0, 3] * 6) == _beats(stores)


@cocotb.test()
async def one_element_with_late_data_ready(dut: Any) -> None:
    """A single beat where the bus is as wide as an element."""
    stores = [Store(dram_base=9, y_size=1, x_size=1, x_stride=1)]
    assert await scripted(dut, stores, [40, 25][:BEATS]) == _beats(stores)


@cocotb.test()
async def one_element_with_late_address_ready(dut: Any) -> None:
    stores = [Store(dram_base=9, y_size=1, x_size=1, x_stride=1)]
    assert await scripted(dut, stores, [0] * BEATS, address_late=40) == _beats(stores)
