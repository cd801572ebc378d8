"""Fetch: order, routing, and every fault with its instruction's number."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.sim import Simulator
from bench.axi import Stall, read_slave

from vitral.config import CoreConfig
from vitral.hw.bus.reader import Reader
from vitral.hw.core.fetch import Fetch
from vitral.isa import (
    Alu,
    Cause,
    Config,
    Finish,
    Gemm,
    Instruction,
    InstructionSet,
    Load,
    Memory,
    Profile,
    Stage,
    Store,
    queue_of,
)

CONFIG = CoreConfig()
BASE = 0x10C0
STAGES = {Stage.LOAD: "load", Stage.COMPUTE: "compute", Stage.STORE: "store"}
VARIETY = [
    Load(memory=Memory.INP),
    Load(memory=Memory.UOP, push_next=True),
    Gemm(uop_end=5, iter_in=3),
    Load(memory=Memory.PARAM),
    Store(requant=True),
    Alu(use_imm=True, imm=-3),
    Load(memory=Memory.WGT, pop_next=True),
    Config(stage=Stage.LOAD, register=1, value=-1),
    Config(stage=Stage.COMPUTE, value=7),
    Load(memory=Memory.ACC_8BIT),
]


class Bench(wiring.Component):
    def __init__(self, config: CoreConfig) -> None:
        self.fetch = Fetch(config)
        self.reader = Reader(config, clients=1)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fetch = self.fetch
        m.submodules.reader = self.reader
        wiring.connect(m, self.fetch.read, self.reader.clients[0])
        return m


def run(
    words: list[int],
    *,
    config: CoreConfig = CONFIG,
    profile: Profile = Profile.VITRAL,
    p: float = 0.0,
    base: int = BASE,
    limits: tuple[int, int] = (0, 1 << 32),
    error_beat: int | None = None,
    count: int | None = None,
    idle_after: int = 30,
) -> tuple[list[tuple[Stage, int, int]], tuple[int, int] | None]:
    """((stage, index, word) in the order of arrival, fault) of a program."""
    bench = Bench(config)
    fetch = bench.fetch
    program = b"".join(word.to_bytes(16, "little") for word in words)
    memory = np.zeros(BASE + 65536, np.uint8)
    memory[base : base + len(program)] = np.frombuffer(program, np.uint8)
    slave, _ = read_slave(
        bench.reader.channel,
        memory,
        limit=config.burst_beats,
        stall=Stall(p, 3),
        error_beat=error_beat,
    )
    arrived: list[tuple[Stage, int, int]] = []
    fault = None
    total = len(words) if count is None else count

    async def drive(ctx: Any) -> None:
        nonlocal fault
        stall = Stall(p, 4)
        ctx.set(fetch.base, base)
        ctx.set(fetch.count, total)
        ctx.set(fetch.profile, int(profile))
        ctx.set(fetch.limits.low, limits[0])
        ctx.set(fetch.limits.high, limits[1])
        ctx.set(fetch.launch, 1)
        await ctx.tick()
        ctx.set(fetch.launch, 0)
        quiet = 0
        while fault is None and quiet < idle_after + 40 and len(arrived) < total + 1:
            ready = {stage: not stall() for stage in Stage}
            for stage, name in STAGES.items():
                ctx.set(getattr(fetch, name).ready, ready[stage])
            ctx.set(fetch.idle, quiet >= idle_after)
            tick = ctx.tick().sample(fetch.fault.valid, fetch.fault.cause, fetch.fault.index)
            for name in STAGES.values():
                queue = getattr(fetch, name)
                tick = tick.sample(queue.valid, queue.p.index, queue.p.word)
            sampled = (await tick)[2:]
            quiet += 1
            for k, stage in enumerate(STAGES):
                valid, index, word = sampled[3 + 3 * k : 6 + 3 * k]
                if valid and ready[stage]:
                    arrived.append((stage, index, word))
                    quiet = 0
            if sampled[0]:
                fault = (sampled[1], sampled[2])

    sim = Simulator(bench)
    sim.add_clock(1e-6)
    sim.add_testbench(slave, background=True)
    sim.add_testbench(drive)
    sim.run()
    return arrived, fault


def _encode(insns: list[Instruction], profile: Profile = Profile.VITRAL) -> list[int]:
    isa = InstructionSet.of(CONFIG)
    return [isa.encode(insn, profile) for insn in insns]


@pytest.mark.parametrize("p", [0.0, 0.5])
@pytest.mark.parametrize("bits", [64, 128, 256, 512])
def test_every_instruction_reaches_its_queue_in_order(bits: int, p: float) -> None:
    insns: list[Instruction] = VARIETY * 7 + [Finish()]
    words = _encode(insns)
    arrived, fault = run(words, config=replace(CONFIG, data_bits=bits, burst_beats=8), p=p)
    assert fault is None
    assert arrived == [
        (queue_of(i), n, w) for n, (i, w) in enumerate(zip(insns, words, strict=True))
    ]


def test_single_beat_bursts_suffice() -> None:
    words = _encode([*VARIETY, Finish()])
    arrived, fault = run(words, config=replace(CONFIG, burst_beats=1))
    assert fault is None
    assert [word for _, _, word in arrived] == words


FINISH = 3
UNDEFINED = {
    "opcode": (7, Cause.UNDEFINED_OPCODE),
    "memory": (7 << 7, Cause.UNDEFINED_FIELD),
    "reserved": (FINISH | 1 << 100, Cause.RESERVED_BITS),
}


@pytest.mark.parametrize("position", [0, 1, 5])
@pytest.mark.parametrize("name", UNDEFINED)
def test_illegal_word_faults_in_its_place(name: str, position: int) -> None:
    word, cause = UNDEFINED[name]
    words = _encode([*VARIETY[:6], Finish()])
    words[position] = word
    arrived, fault = run(words)
    assert fault == (cause, position)
    assert [index for _, index, _ in arrived] == list(range(position))


def test_vta_profile_ignores_spare_bits() -> None:
    arrived, fault = run([FINISH | 1 << 100], profile=Profile.VTA)
    assert (arrived, fault) == ([(Stage.COMPUTE, 0, FINISH | 1 << 100)], None)
    assert run([5], profile=Profile.VTA)[1] == (Cause.UNDEFINED_OPCODE, 0)


def test_finish_must_be_last_and_must_be() -> None:
    words = _encode([VARIETY[0], Finish(), VARIETY[1]])
    assert run(words)[1] == (Cause.FINISH_NOT_LAST, 1)
    arrived, fault = run(_encode(VARIETY[:3]))
    assert (len(arrived), fault) == (3, (Cause.NO_FINISH, 3))
    assert run([])[1] == (Cause.EMPTY_PROGRAM, 0)


@pytest.mark.parametrize("bits", [64, 256])
@pytest.mark.parametrize("inside", [0, 1, 4, 6, 9])
def test_limit_stops_fetch_at_the_first_instruction_outside(inside: int, bits: int) -> None:
    words = _encode([*VARIETY, Finish()])
    config = replace(CONFIG, data_bits=bits)
    for slack in (0, 15):
        arrived, fault = run(words, config=config, limits=(0, BASE + 16 * inside + slack))
        assert fault == (Cause.DRAM_BOUNDS, inside)
        assert len(arrived) == inside
    assert run(words, limits=(BASE + 1, 1 << 32))[1] == (Cause.DRAM_BOUNDS, 0)


def test_bus_error_names_its_instruction() -> None:
    words = _encode([*VARIETY, Finish()])
    assert run(words, error_beat=11)[1] == (Cause.BUS_READ, 5)
