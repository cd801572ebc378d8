"""The bridge's answers, byte for byte, to whole, damaged, cut off and nonsensical requests."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator

from vitral.config import CoreConfig
from vitral.hw.bridge.bridge import Bridge
from vitral.hw.bridge.ram import AxiRam
from vitral.hw.bus.registers import RegisterFile
from vitral.registers import MAGIC, register
from vitral.serial_frames import (
    BURST_WORDS,
    HEADER_BYTES,
    HELLO_MAGIC,
    REPLY_SYNC,
    Op,
    Reply,
    crc16,
    encode_request,
)

MEMORY = 4096
IDLE = 64
CONFIG = CoreConfig()
INSN_COUNT = register("insn_count").offset
PAUSE = "pause"


class System(wiring.Component):
    """Bridge, memory, and the core's registers without a core."""

    def __init__(self, *, dead: bool = False) -> None:
        self.bridge = Bridge(memory_bytes=MEMORY, idle_cycles=IDLE, core_cycles=32)
        self.ram = AxiRam(nbytes=MEMORY, addr_bits=32, data_bits=64)
        self.registers = RegisterFile(CONFIG)
        self.dead = dead
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bridge = self.bridge
        m.submodules.ram = self.ram
        m.submodules.registers = self.registers
        wiring.connect(m, self.bridge.word, self.ram.word)
        if not self.dead:
            wiring.connect(m, self.bridge.axi, self.registers.axi)
        return m


def talk(requests: Sequence[bytes | str], *, dead: bool = False) -> list[bytes]:
    """What is answered to each request; `PAUSE` waits until the bridge has forgotten."""
    system = System(dead=dead)
    bridge = system.bridge
    answers: list[bytes] = []

    async def host(ctx: Any) -> None:
        for request in requests:
            if isinstance(request, str):
                await ctx.tick().repeat(2 * IDLE)
                continue
            for byte in request:
                ctx.set(bridge.rx_data, byte)
                ctx.set(bridge.rx_valid, 1)
                await ctx.tick()
                ctx.set(bridge.rx_valid, 0)
                await ctx.tick().repeat(2)
            answers.append(await listen(ctx))

    async def listen(ctx: Any) -> bytes:
        """Bytes until none comes for a while; every third cycle takes one."""
        answer, quiet, cycle = bytearray(), 0, 0
        while quiet < 40:
            ctx.set(bridge.tx.ready, cycle % 3 == 0)
            _, _, valid, ready, byte = await ctx.tick().sample(
                bridge.tx.valid, bridge.tx.ready, bridge.tx.payload
            )
            cycle += 1
            quiet = 0 if valid else quiet + 1
            if valid and ready:
                answer.append(byte)
        return bytes(answer)

    sim = Simulator(system)
    sim.add_clock(1e-6)
    sim.add_testbench(host)
    sim.run()
    return answers


def reply(tag: int, payload: bytes = b"", status: Reply = Reply.OK) -> bytes:
    whole = bytes([REPLY_SYNC, status, tag]) + payload
    return whole + crc16(whole)


def word(value: int) -> bytes:
    return value.to_bytes(4, "little")


def noise(nbytes: int, seed: int) -> bytes:
    return np.random.default_rng(seed).bytes(nbytes)


HELLO = encode_request(Op.HELLO, 1, 0)
HELLO_REPLY = reply(1, word(HELLO_MAGIC) + word(MEMORY))


def test_hello_says_magic_and_memory() -> None:
    assert talk([HELLO]) == [HELLO_REPLY]


def test_registers_are_read_and_written() -> None:
    value = 0x89ABCDEF
    assert talk(
        [
            encode_request(Op.READ_REGISTER, 7, register("id").offset),
            encode_request(Op.WRITE_REGISTER, 8, INSN_COUNT, payload=word(value)),
            encode_request(Op.READ_REGISTER, 9, INSN_COUNT),
        ]
    ) == [reply(7, word(MAGIC)), reply(8), reply(9, word(value))]


def test_a_register_write_sent_again_is_done_once() -> None:
    """The same tag: answered, not done; another value with it shows that. HELLO forgets it."""
    first = encode_request(Op.WRITE_REGISTER, 5, INSN_COUNT, payload=word(11))
    again = encode_request(Op.WRITE_REGISTER, 5, INSN_COUNT, payload=word(22))
    read = encode_request(Op.READ_REGISTER, 6, INSN_COUNT)
    assert talk([first, again, read, HELLO, again, read]) == [
        *(reply(5), reply(5), reply(6, word(11))),
        *(HELLO_REPLY, reply(5), reply(6, word(22))),
    ]


def test_memory_is_written_and_read() -> None:
    places = [(0, 1), (8, 3), (MEMORY - 8 * 7, 7), (2048, BURST_WORDS // 4)]
    requests, wanted = [], []
    for first, words in places:
        data = noise(8 * words, words)
        requests.append(encode_request(Op.WRITE_MEMORY, 1, first, words=words, payload=data))
        requests.append(encode_request(Op.READ_MEMORY, 2, first, words=words))
        wanted += [reply(1), reply(2, data)]
    assert talk(requests) == wanted


def test_memory_is_cleared() -> None:
    data = noise(8 * 12, 4)
    assert talk(
        [
            encode_request(Op.WRITE_MEMORY, 1, 64, words=12, payload=data),
            encode_request(Op.CLEAR_MEMORY, 2, 64 + 16, words=9),
            encode_request(Op.READ_MEMORY, 3, 64, words=12),
        ]
    ) == [reply(1), reply(2), reply(3, data[:16] + bytes(72) + data[-8:])]


def test_what_is_not_there_is_refused() -> None:
    requests = [
        encode_request(Op.READ_REGISTER, 3, 0x1000),
        encode_request(Op.READ_REGISTER, 3, 0x002),
        encode_request(Op.READ_REGISTER, 3, 0x000, words=2),
        encode_request(Op.WRITE_REGISTER, 3, 0x8000_0020, payload=word(1)),
        encode_request(Op.READ_MEMORY, 3, MEMORY),
        encode_request(Op.READ_MEMORY, 3, MEMORY - 8, words=2),
        encode_request(Op.READ_MEMORY, 3, 0xFFFF_FFF8, words=2),
        encode_request(Op.READ_MEMORY, 3, 4),
        encode_request(Op.CLEAR_MEMORY, 3, MEMORY - 8, words=2),
        encode_request(Op.WRITE_MEMORY, 3, MEMORY - 8, words=2, payload=bytes(16)),
        encode_request(99, 3, 0),  # type: ignore[arg-type]
    ]
    assert talk([*requests, HELLO]) == [
        *(len(requests) * [reply(3, status=Reply.REFUSED)]),
        HELLO_REPLY,
    ]


def test_a_refused_write_writes_nothing() -> None:
    data = noise(8, 1)
    write = encode_request(Op.WRITE_MEMORY, 1, MEMORY - 8, payload=data)
    beyond = encode_request(Op.WRITE_MEMORY, 2, MEMORY - 8, words=2, payload=bytes(16))
    read = encode_request(Op.READ_MEMORY, 3, MEMORY - 8)
    assert talk([write, beyond, read])[-1] == reply(3, data)


WRITE = encode_request(Op.WRITE_REGISTER, 4, INSN_COUNT, payload=word(77))
READ = encode_request(Op.READ_REGISTER, 5, INSN_COUNT)
"""Shows what WRITE did."""


def damaged(place: int) -> bytes:
    return bytes(byte ^ (1 << place % 8) * (at == place) for at, byte in enumerate(WRITE))


def test_a_damaged_header_is_not_answered() -> None:
    places = range(HEADER_BYTES)
    requests = [part for place in places for part in (damaged(place), PAUSE, READ)]
    assert talk(requests) == len(places) * [b"", reply(5, word(0))]


def test_a_damaged_payload_is_said_and_not_written() -> None:
    places = range(HEADER_BYTES, len(WRITE))
    requests = [part for place in places for part in (damaged(place), READ)]
    said = [reply(4, status=Reply.DAMAGED), reply(5, word(0))]
    assert talk([*requests, WRITE, READ]) == len(places) * said + [reply(4), reply(5, word(77))]


def test_a_request_that_stops_is_forgotten() -> None:
    lengths = range(1, len(WRITE))
    requests = [part for kept in lengths for part in (WRITE[:kept], PAUSE, READ)]
    assert talk(requests) == len(lengths) * [b"", reply(5, word(0))]


def test_noise_before_a_request_is_skipped() -> None:
    junk = bytes(byte for byte in noise(200, 3) if byte != 0xA5)
    assert talk([junk + HELLO]) == [HELLO_REPLY]


def test_a_core_that_does_not_answer_is_said() -> None:
    read = encode_request(Op.READ_REGISTER, 5, 0)
    assert talk([read, HELLO], dead=True) == [reply(5, status=Reply.SILENT), HELLO_REPLY]
