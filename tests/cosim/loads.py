"""cocotb: the way of a LOAD from memory into the on-chip arrays, which are read back whole."""

import json
import os
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.triggers import RisingEdge
from cosim.bench import WithMemory
from cosim.monitor import watch_bus

from vitral.config import CoreConfig
from vitral.hw.core.interfaces import INDEX_BITS, LoadCommand
from vitral.isa import Load, Memory

PADS = {Memory.INP: 0x5A, Memory.WGT: 0xC3, Memory.ACC: -123456789}
SENTINEL = 0xA5
MEMORY_BYTES = 1 << 17
SENTINELS = 1 << 16
"""Byte address from which memory holds sentinels only; random bytes are below."""

PATIENCE = 2000
"""Cycles without a beat or a ticket after which a load is stuck."""

MEMORIES = [Memory[name] for name in os.environ["MEMORIES"].split()]
Bytes = npt.NDArray[np.uint8]


class Loads(WithMemory):
    """A load path, and `wanted`: uint8 (depth, element bytes) of each array."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, MEMORY_BYTES)
        self.config = CoreConfig(**json.loads(os.environ["CONFIG"]))
        self.broken = watch_bus(dut, self.config)
        self.dram = np.random.default_rng(7).integers(0, 256, MEMORY_BYTES, dtype=np.uint8)
        self.dram[SENTINELS:] = SENTINEL
        self.memory.write(0, self.dram.tobytes())
        self.wanted = {
            memory: np.full((self._depth(memory), self._bytes(memory)), SENTINEL, np.uint8)
            for memory in MEMORIES
            if memory is not Memory.ACC_8BIT
        }

    def _bytes(self, memory: Memory) -> int:
        layout = self.config.layout
        octets = memory is Memory.ACC_8BIT
        return layout.acc8_bytes if octets else getattr(layout, f"{memory.name.lower()}_bytes")

    def _depth(self, memory: Memory) -> int:
        return getattr(self.config.layout, f"{memory.name.lower()}_depth")

    async def begin(self) -> None:
        """Reset, registers, sentinels in every element, stalls from then on."""
        dut = self.dut
        dut.command_valid.value = 0
        dut.done_ready.value = 1
        dut.limits_low.value = 0
        dut.limits_high.value = MEMORY_BYTES
        for memory in MEMORIES:
            getattr(dut, f"base_{memory.name.lower()}").value = 0
            if memory in PADS:
                port = getattr(dut, f"pad_{memory.name.lower()}")
                port.value = PADS[memory] % (1 << len(port))
        for memory in self.wanted:
            getattr(dut, f"read_{memory.name.lower()}_en").value = 0
        await self.reset()
        for memory, array in self.wanted.items():
            first = SENTINELS // array.shape[1]
            await self.run([_flat(memory, 0, first, len(array))])
            await self.check(memory)
        if stalls := float(os.environ["STALLS"]):
            self.stall(stalls, int(os.environ["SEED"]))

    async def run(self, loads: Sequence[Load]) -> None:
        """Offers the loads one after the other and waits for their tickets, in order."""
        dut = self.dut
        sent, back, quiet = 0, 0, 0
        while back < len(loads):
            assert quiet < PATIENCE, f"stuck: {back} of {len(loads)} loads done"
            dut.command_valid.value = int(sent < len(loads))
            if sent < len(loads):
                dut.command_payload.value = _command(loads[sent], sent)
            await RisingEdge(dut.aclk)
            assert not int(dut.fault_valid.value), f"fault {int(dut.fault_cause.value)}"
            sent += sent < len(loads) and int(dut.command_ready.value)
            if int(dut.done_valid.value):
                assert int(dut.done_payload.value) % (1 << INDEX_BITS) == back
                back += 1
            moved = int(dut.done_valid.value) or int(dut.m_axi_rvalid.value)
            quiet = 0 if moved else quiet + 1
        dut.command_valid.value = 0
        for load in loads:
            apply(load, self.dram, self._bytes(load.memory), self.wanted)

    async def check(self, memory: Memory) -> None:
        """Reads all elements of an array, and compares."""
        got = await self._contents(memory)
        wrong = np.flatnonzero((got != self.wanted[memory]).any(axis=1))
        assert not wrong.size, f"{memory.name}: elements {wrong[:8]} of {wrong.size} differ"
        assert not self.broken, self.broken[0]

    async def _contents(self, memory: Memory) -> Bytes:
        dut, name, shape = self.dut, memory.name.lower(), self.wanted[memory].shape
        enable = getattr(dut, f"read_{name}_en")
        address = getattr(dut, f"read_{name}_address")
        data = getattr(dut, f"read_{name}_data")
        enable.value = 1
        words = []
        for element in range(shape[0] + 1):
            address.value = element % shape[0]
            await RisingEdge(dut.aclk)
            words.append(int(data.value).to_bytes(shape[1], "little"))
        enable.value = 0
        return np.frombuffer(b"".join(words[1:]), np.uint8).reshape(shape)


def _command(load: Load, index: int) -> int:
    values = {f.name: int(getattr(load, f.name)) for f in fields(load)}
    names = [name for name, _ in LoadCommand.as_shape() if name != "ticket"]
    payload: dict[int | str, Any] = {name: values[name] for name in names}
    payload["ticket"] = {"index": index}
    return LoadCommand.const(payload).as_bits()


def _flat(memory: Memory, sram: int, dram: int, count: int) -> Load:
    return Load(
        memory=memory, sram_base=sram, dram_base=dram, y_size=1, x_size=count, x_stride=count
    )


def apply(load: Load, dram: Bytes, size: int, arrays: dict[Memory, Bytes]) -> None:
    """What a LOAD of elements of `size` bytes does: rows of DRAM inside an area of pads."""
    if not load.x_size or not load.y_size:
        return
    octets = load.memory is Memory.ACC_8BIT
    memory = Memory.ACC if octets else load.memory
    rows = load.dram_base + np.arange(load.y_size)[:, None] * load.x_stride
    values = dram.reshape(-1, size)[rows + np.arange(load.x_size)]
    if octets:
        values = values.view(np.int8).astype("<i4").view(np.uint8)
    top, left = load.y_pad_0, load.x_pad_0
    height = top + load.y_size + load.y_pad_1
    width = left + load.x_size + load.x_pad_1
    lane = np.dtype("<i4") if memory is Memory.ACC else np.dtype(np.int8)
    pad = np.array(PADS.get(memory, 0) if load.pad_value else 0).astype(lane)
    lanes = values.shape[2] // lane.itemsize
    area = np.full((height, width, lanes), pad, lane).view(np.uint8)
    area[top : top + load.y_size, left : left + load.x_size] = values
    count = height * width
    arrays[memory][load.sram_base : load.sram_base + count] = area.reshape(count, -1)


async def started(dut: Any) -> Loads:
    bench = Loads(dut)
    await bench.begin()
    return bench


@cocotb.test(skip=Memory.UOP not in MEMORIES)
async def micro_ops_change_exactly_their_range(dut: Any) -> None:
    bench = await started(dut)
    for base in range(4):
        for count in range(1, 6):
            load = _flat(Memory.UOP, base + 24 * count, 5 * base + count + 1, count)
            await bench.run([load])
            await bench.check(Memory.UOP)
    await bench.run([_flat(Memory.UOP, 1, 3, 300)])
    await bench.check(Memory.UOP)


@cocotb.test()
async def padded_areas(dut: Any) -> None:
    bench = await started(dut)
    for memory in MEMORIES:
        if memory is Memory.UOP:
            continue
        zeros = Load(
            memory=memory,
            sram_base=2,
            dram_base=3,
            y_size=3,
            x_size=5,
            x_stride=8,
            y_pad_0=1,
            y_pad_1=2,
            x_pad_0=1,
            x_pad_1=3,
        )
        target = Memory.ACC if memory is Memory.ACC_8BIT else memory
        for load in (zeros, replace(zeros, sram_base=65, dram_base=9, pad_value=True)):
            await bench.run([load])
            await bench.check(target)


@cocotb.test(skip=Memory.INP not in MEMORIES)
async def rows_across_a_page(dut: Any) -> None:
    bench = await started(dut)
    base = 0x1FC0 // bench.config.layout.inp_bytes
    load = Load(
        memory=Memory.INP,
        sram_base=3,
        dram_base=base,
        y_size=2,
        x_size=40,
        x_stride=48,
        y_pad_0=1,
        y_pad_1=1,
        x_pad_0=1,
        x_pad_1=1,
    )
    await bench.run([load])
    await bench.check(Memory.INP)


@cocotb.test()
async def many_in_flight_end_in_order(dut: Any) -> None:
    """Overlapping areas, each memory in turn, empty loads between them."""
    bench = await started(dut)
    rng = np.random.default_rng(11)
    loads = []
    for number in range(16):
        memory = MEMORIES[number % len(MEMORIES)]
        width, height = (int(n) for n in rng.integers(0 if number % 5 == 0 else 1, 6, 2))
        pads: dict[str, Any] = (
            {} if memory is Memory.UOP else {"x_pad_0": 1, "y_pad_1": int(rng.integers(3))}
        )
        loads.append(
            Load(
                memory=memory,
                sram_base=int(rng.integers(0, 40)),
                dram_base=int(rng.integers(0, 120)),
                y_size=height,
                x_size=width,
                x_stride=width + int(rng.integers(3)),
                pad_value=bool(rng.integers(2)) and memory is not Memory.UOP,
                **pads,
            )
        )
    await bench.run(loads)
    for memory in bench.wanted:
        await bench.check(memory)
