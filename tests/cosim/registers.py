"""cocotb: the register port in any order of its channels, and the commands behind it."""

from typing import Any

import cocotb
from cosim.bench import Bench, pauses

from vitral.isa import Cause
from vitral.program import Launch
from vitral.registers import ADDRESS_BITS, MAGIC, REGISTERS, Access, register

MEMORY_BYTES = 1 << 16
WORD_MASK = 0xFFFFFFFF
UNMAPPED = (1 << ADDRESS_BITS) - 4


async def started(dut: Any) -> Bench:
    bench = Bench(dut, MEMORY_BYTES)
    await bench.reset()
    return bench


@cocotb.test()
async def reset_values(dut: Any) -> None:
    bench = await started(dut)
    assert await bench.read("id") == MAGIC
    for entry in REGISTERS:
        if entry.name in ("digest", "id") or entry.access is Access.PULSE:
            continue
        if entry.name.endswith("_state") or entry.name.startswith("count_"):
            continue
        for word in range(entry.words):
            value = await bench.read(entry.name, word)
            assert value == entry.reset >> 32 * word & WORD_MASK, f"{entry.name}[{word}] {value:#x}"


@cocotb.test()
async def write_data_before_address(dut: Any) -> None:
    bench = await started(dut)
    bench.registers.write_if.aw_channel.pause = True
    task = cocotb.start_soon(bench.write("insn_count", 0x1234))
    await bench.cycles(20)
    bench.registers.write_if.aw_channel.pause = False
    await task
    assert await bench.read("insn_count") == 0x1234


@cocotb.test()
async def write_address_before_data(dut: Any) -> None:
    bench = await started(dut)
    bench.registers.write_if.w_channel.pause = True
    task = cocotb.start_soon(bench.write("insn_count", 0x4321))
    await bench.cycles(20)
    bench.registers.write_if.w_channel.pause = False
    await task
    assert await bench.read("insn_count") == 0x4321


@cocotb.test()
async def two_addresses_before_two_data(dut: Any) -> None:
    bench = await started(dut)
    bench.registers.write_if.w_channel.pause = True
    tasks = [
        cocotb.start_soon(bench.write("insn_count", 0x11)),
        cocotb.start_soon(bench.write("watchdog", 0x22)),
    ]
    await bench.cycles(20)
    bench.registers.write_if.w_channel.pause = False
    for task in tasks:
        await task
    assert (await bench.read("insn_count"), await bench.read("watchdog")) == (0x11, 0x22)


@cocotb.test()
async def byte_strobes(dut: Any) -> None:
    bench = await started(dut)
    offset = register("insn_count").offset
    await bench.write("insn_count", 0x44332211)
    await bench.registers.write(offset + 1, b"\xaa\xbb")
    assert await bench.read("insn_count") == 0x44BBAA11
    await bench.registers.write(offset + 3, b"\xcc")
    assert await bench.read("insn_count") == 0xCCBBAA11


@cocotb.test()
async def stalled_responses_are_not_lost(dut: Any) -> None:
    bench = await started(dut)
    bench.registers.write_if.b_channel.set_pause_generator(pauses(0.7, 1))
    bench.registers.read_if.r_channel.set_pause_generator(pauses(0.7, 2))
    bench.registers.write_if.aw_channel.set_pause_generator(pauses(0.5, 3))
    bench.registers.write_if.w_channel.set_pause_generator(pauses(0.5, 4))
    for value in range(1, 40):
        await bench.write64("limit_low", value << 32 | value)
        assert await bench.read("limit_low") == value
        assert await bench.read("limit_low", 1) == value


@cocotb.test()
async def unmapped_offsets_answer_zero(dut: Any) -> None:
    bench = await started(dut)
    await bench.registers.write(UNMAPPED, b"\xff\xff\xff\xff")
    assert (await bench.registers.read(UNMAPPED, 4)).data == bytes(4)


@cocotb.test()
async def base_addresses_are_aligned(dut: Any) -> None:
    bench = await started(dut)
    await bench.write64("inp_base", (1 << 64) - 1)
    assert await bench.read("inp_base") == WORD_MASK & ~63


@cocotb.test()
async def empty_program_is_an_error(dut: Any) -> None:
    bench = await started(dut)
    await bench.start(Launch(insn_base=0, insn_count=0))
    assert await bench.finish() == (Cause.EMPTY_PROGRAM, 0)
    assert await bench.field("status", "error") == 1


@cocotb.test()
async def start_while_busy_is_refused(dut: Any) -> None:
    bench = await started(dut)
    bench.memory.write(0, (3).to_bytes(16, "little"))
    bench.memory.read_if.r_channel.pause = True
    await bench.start(Launch(insn_base=0, insn_count=1))
    assert await bench.field("status", "busy") == 1
    assert await bench.field("status", "refused") == 0
    await bench.write("control", register("control")["start"].mask)
    assert await bench.field("status", "refused") == 1
    bench.memory.read_if.r_channel.pause = False
    assert await bench.finish() == (Cause.NONE, 0)


@cocotb.test()
async def interrupt_only_when_enabled(dut: Any) -> None:
    bench = await started(dut)
    bench.memory.write(0, (3).to_bytes(16, "little"))
    await bench.start(Launch(insn_base=0, insn_count=1))
    await bench.write("irq_enable", 0)
    while await bench.field("status", "busy"):
        pass
    await bench.cycles(4)
    assert int(dut.irq.value) == 0
    assert await bench.read("irq_status") == 1
    await bench.write("irq_enable", 1)
    await bench.cycles(4)
    assert int(dut.irq.value) == 1
    await bench.write("irq_status", 1)
    await bench.cycles(4)
    assert int(dut.irq.value) == 0


@cocotb.test()
async def soft_reset_ends_a_stuck_program(dut: Any) -> None:
    bench = await started(dut)
    # LOAD INP x_size 0 that waits for a token nobody gives, then FINISH.
    bench.memory.write(0, (0x110).to_bytes(16, "little") + (3).to_bytes(16, "little"))
    await bench.start(Launch(insn_base=0, insn_count=2))
    await bench.cycles(300)
    assert await bench.field("status", "busy") == 1
    assert await bench.field("load_state", "wait") == 3
    await bench.write("control", register("control")["soft_reset"].mask)
    for _ in range(50):
        if not await bench.field("status", "resetting"):
            break
    assert await bench.field("status", "busy") == 0
    bench.memory.write(0, (3).to_bytes(16, "little"))
    await bench.start(Launch(insn_base=0, insn_count=1))
    assert await bench.finish() == (Cause.NONE, 0)
