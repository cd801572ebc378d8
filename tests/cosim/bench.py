"""Clock and reset, a memory of cocotbext-axi, and a register-port master, for cocotb tests."""

import random
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

from vitral.isa import Cause, Memory, Profile
from vitral.program import Launch
from vitral.registers import register

__all__ = ["Bench", "Clocked", "WithMemory", "pauses"]

PERIOD_NS = 10
STEP = 4


def pauses(probability: float, seed: int) -> Iterator[bool]:
    """Endless seeded stalls; True holds a channel back for a cycle."""
    generator = random.Random(seed)
    while True:
        yield generator.random() < probability


class Clocked:
    """Clock and reset of a design with ports `aclk` and `aresetn`."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        cocotb.start_soon(Clock(dut.aclk, PERIOD_NS, unit="ns").start())

    async def reset(self) -> None:
        """Eight cycles of reset; the masters learn of it from the edges."""
        self.dut.aresetn.value = 1
        await self.cycles(1)
        self.dut.aresetn.value = 0
        await self.cycles(8)
        self.dut.aresetn.value = 1
        await self.cycles(2)

    async def cycles(self, count: int) -> None:
        for _ in range(count):
            await RisingEdge(self.dut.aclk)


class WithMemory(Clocked):
    """With a `memory` behind the port `m_axi`."""

    def __init__(self, dut: Any, memory_bytes: int) -> None:
        super().__init__(dut)
        self.memory: Any = AxiRam(
            AxiBus.from_prefix(dut, "m_axi"),
            dut.aclk,
            dut.aresetn,
            reset_active_level=False,
            size=memory_bytes,
        )
        for part in (self.memory.write_if, self.memory.read_if):
            part.log.setLevel("WARNING")

    def stall(self, probability: float, seed: int) -> None:
        """Seeded stalls on all five channels of the memory."""
        channels = (
            self.memory.write_if.aw_channel,
            self.memory.write_if.w_channel,
            self.memory.write_if.b_channel,
            self.memory.read_if.ar_channel,
            self.memory.read_if.r_channel,
        )
        for number, channel in enumerate(channels):
            channel.set_pause_generator(pauses(probability, 16 * seed + number))


class Bench(WithMemory):
    """A core: with a `registers` master behind the port `s_axi`."""

    def __init__(self, dut: Any, memory_bytes: int) -> None:
        super().__init__(dut, memory_bytes)
        self.registers: Any = AxiLiteMaster(
            AxiLiteBus.from_prefix(dut, "s_axi"), dut.aclk, dut.aresetn, reset_active_level=False
        )
        for part in (self.registers.write_if, self.registers.read_if):
            part.log.setLevel("WARNING")

    async def write(self, name: str, value: int, word: int = 0) -> None:
        """Write one 32-bit word of a register."""
        offset = register(name).offset + STEP * word
        await self.registers.write(offset, value.to_bytes(STEP, "little"))

    async def read(self, name: str, word: int = 0) -> int:
        """Read one 32-bit word of a register."""
        data = await self.registers.read(register(name).offset + STEP * word, STEP)
        return int.from_bytes(data.data, "little")

    async def write64(self, name: str, value: int) -> None:
        for word in range(2):
            await self.write(name, value >> 32 * word & 0xFFFFFFFF, word)

    async def field(self, name: str, field: str) -> int:
        """Read one bit field of a register."""
        return register(name)[field].extract(await self.read(name))

    async def start(self, launch: Launch) -> None:
        """Write everything a launch needs, then start."""
        await self.write64("insn_base", launch.insn_base)
        await self.write("insn_count", launch.insn_count)
        for memory in Memory:
            await self.write64(f"{memory.name.lower()}_base", launch.base(memory))
        await self.write("irq_enable", 1)
        control = register("control")
        profile = control["profile"].insert(int(launch.profile is Profile.VITRAL))
        await self.write("control", control["start"].mask | profile)

    async def finish(self, limit_us: int = 2000) -> tuple[Cause, int]:
        """Wait for the interrupt, acknowledge it; the status as (cause, instruction)."""
        if not int(self.dut.irq.value):
            await with_timeout(RisingEdge(self.dut.irq), limit_us, "us")
        status = await self.read("status")
        fields = register("status")
        assert fields["done"].extract(status) == 1
        assert fields["busy"].extract(status) == 0
        await self.write("irq_status", 1)
        await ReadOnly()
        assert int(self.dut.irq.value) == 0
        await RisingEdge(self.dut.aclk)
        return Cause(fields["cause"].extract(status)), await self.read("error_index")
